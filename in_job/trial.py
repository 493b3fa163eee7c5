"""One trial from command.json to exit.json."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..contract import profilers
from ..contract.codec import from_json, to_json
from ..contract.command import Ranges
from ..contract.finding import Finding
from ..contract.schedule import Schedule
from ..contract.wrapping import WrapRequest
from . import artefacts, config, launch, preflight, process_rank, provenance, redact, tools, vendor
from .files import Reserve, read_json, set_phase, write_json
from .outcome import Facts, Verdict, judge
from .ranks import Ranks
from .supervise import Outcome, Supervisor, flush_streams

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..contract.wrapping import Wrapped


class Trial:
    """Runs one rank's part of a trial.

    Args:
        folder: the trial folder.
        command: what ``command.json`` holds.
        bundle: where run.py lies.
    """

    def __init__(self, folder: Path, command: Mapping[str, Any], bundle: Path) -> None:
        self.folder = folder
        self.command = command
        self.bundle = bundle
        self.started_ns = time.time_ns()
        self._clock = time.monotonic()
        self.seconds: dict[str, float] = {}
        self.warnings: list[str] = []
        self.artefacts: list[dict[str, Any]] = []
        self.collector: str = str(command["collector"])
        self.vendor = "none"
        self.tool = preflight.Tool(None)
        self.argv: tuple[str, ...] = tuple(command["argv"])
        self.env: dict[str, str] = {}
        self.wrapped: Wrapped | None = None
        self.stopped_by: str | None = None
        launch.slurm_ranks(environ := dict(os.environ))
        self.ranks = Ranks(folder, process_rank.from_environ(environ))
        self.rank = self.ranks.place.rank
        self.grace = float(command.get("grace_s") or 60.0)

    def run(self) -> int:
        """Do it; returns the wrapper's exit code (see ``wrapper.main``)."""
        try:
            self.ranks.prepare()
            (self.folder / "hook").mkdir(exist_ok=True)
        except OSError as error:
            print(f"profrun: the trial folder {self.folder} cannot be written: {error}", file=sys.stderr)
            return 73
        reserve = Reserve(self.folder)
        supervisor = Supervisor(self.folder, suffix=self.ranks.suffix, grace=self.grace)
        try:
            verdict, value = self._run(supervisor)
        finally:
            reserve.release()
            supervisor.close()
        return self._finish(verdict, value)

    def _run(self, supervisor: Supervisor) -> tuple[Verdict, dict[str, Any]]:
        self._phase("preflight")
        gpu, how = self._vendor()
        self.vendor = gpu
        self.env, notes = launch.environment(self.command, os.environ, gpu, self.bundle)
        self.warnings += notes
        value = provenance.before(self.command, self.env, gpu, how)
        refused = self._prepare(value)
        self._save("provenance.json", value)
        self._lap("preflight")
        if refused is not None:
            return Verdict("failed", None, None, refused, 69), value
        outcomes = self._execute(supervisor)
        self.stopped_by = outcomes[-1].stopped_by
        self._export(supervisor, outcomes[-1])
        notes_of = self._notes()
        provenance.after(value, notes_of)
        return self._judge(supervisor, outcomes, notes_of), value

    def _vendor(self) -> tuple[str, str]:
        stated = str(self.command.get("vendor", "auto"))
        if stated in ("nvidia", "amd", "none"):
            return stated, "stated in command.json"
        return vendor.detect()

    def _prepare(self, value: dict[str, Any]) -> str | None:
        """Find the tool, check, wrap. Returns why the trial cannot run, or None."""
        concrete, why = tools.resolve(self.collector, self.vendor)
        if concrete is None:
            return why
        options = dict(self.command.get("options") or {})
        if concrete != self.collector and not self.command.get("profiler"):  # a block for each it may become
            options = dict(options.get(concrete) or {})
        self.collector = concrete
        try:
            module = tools.wrap_module(concrete)
        except ImportError as error:
            return f"this bundle has no collector {concrete!r}: {error}"
        self.tool = preflight.find_tool(concrete, options.get("path"))
        findings = [
            *self.tool.findings,
            *preflight.check(
                concrete,
                self.vendor,
                options,
                self.folder,
                stated=self.command.get("vendor", "auto") != "auto",
            ),
        ]
        value["preflight"] = [vars(finding) for finding in findings]
        value["tool"] = {"name": self.tool.name, "path": self.tool.path, "version": self._version()}
        errors = [str(finding) for finding in findings if finding.level == "error"]
        if errors and (self.command.get("image") or {}).get("reference") is None:
            return errors[0].replace("is not in this image", "is not on this machine")
        if errors:
            return errors[0]
        self.warnings += [str(finding) for finding in findings if finding.level == "degraded"]
        options = preflight.degrade(concrete, options, findings)
        self.wrapped = module.wrap(self._request(options))
        self.warnings += self.wrapped.notes
        secrets = self.command.get("secrets")
        if secrets and getattr(module, "KEEPS_ENVIRONMENT", False):
            self.warnings.append(
                f"the files of {concrete} in raw/ may hold the program's whole environment, "
                f"{', '.join(secrets)} included: keep them to yourself; the trace does not hold it"
            )
        self._orders(self.wrapped, options, 0)
        return None

    def _request(self, options: dict[str, Any]) -> WrapRequest:
        ranges = self.command.get("ranges") or {}
        return WrapRequest(
            argv=self.argv,
            schedule=Schedule(**(self.command.get("schedule") or {})),
            options=options,
            out=str(self.ranks.raw),
            tool=self.tool.path or self.tool.name or "",
            version=self.tool.version,
            vendor=self.vendor,
            ranks=int(self.command.get("ranks") or 1),
            ranges=int(ranges.get("modules") or 0),
            steps_found=ranges.get("steps", "auto") != "off",
        )

    def _orders(self, wrapped: Wrapped, options: dict[str, Any], run: int) -> None:
        """Write what the hook is told, and point the environment at it."""
        request = self._request(options)
        ranges = self.command.get("ranges") or {}
        profiler = profilers.profiler(self.collector)
        orders = config.HookConfig(
            folder=str(self.folder),
            collector=self.collector,
            profiler=self.collector,
            hook=wrapped.hook,
            emitter=wrapped.emitter,
            exclusive=profiler.exclusive,
            unwind=bool(profiler.tools),
            schedule=request.schedule,
            ranges=from_json(Ranges, ranges),
            options=options,
            values=dict(self.command.get("values") or {}),
            blocking=bool(self.command.get("blocking")),
            run=run,
            tool_version=self.tool.version or (),
        )
        path = self.folder / "hook" / f"config.rank{self.rank}.{run}.json"
        write_json(path, to_json(orders))
        self.env[config.ENV] = str(path)
        self._options = options

    def _execute(self, supervisor: Supervisor) -> list[Outcome]:
        """The command, then further passes of a counter collection while all goes well."""
        assert self.wrapped is not None
        commands = [self.wrapped.argv, *self.wrapped.passes]
        self.wrapped = replace(self.wrapped, argv=tuple(commands[0]))
        env = {**self.env, **self.wrapped.env}
        outcomes: list[Outcome] = []
        limit = self.command.get("timeout_s")
        self._phase("app")
        flush_streams()
        for run, argv in enumerate(commands):
            if run:
                self._orders(self.wrapped, self._options, run)
                env[config.ENV] = self.env[config.ENV]
            spent = sum(outcome.app_s for outcome in outcomes)
            outcome = supervisor.run(
                argv,
                env=env,
                cwd=self.command.get("cwd") or None,
                app=self.argv,
                tool=self.tool.path,
                limit=None if not limit else max(0.0, float(limit) - spent),
                finalise=self.wrapped.finalise_s,
                on_app_end=lambda: self._phase("finalise"),
            )
            outcomes.append(outcome)
            if outcome.stopped_by or outcome.code != 0:
                break
        self.seconds["app"] = sum(outcome.app_s for outcome in outcomes)
        self.seconds["finalise"] = sum(outcome.finalise_s for outcome in outcomes)
        self._clock = time.monotonic()
        return outcomes

    def _export(self, supervisor: Supervisor, last: Outcome) -> None:
        """Exports run where the report was made, also for what a stopped trial left."""
        wrapped = self.wrapped
        if wrapped is None or not wrapped.export or last.error is not None:
            return
        self._phase("export")
        self._log = supervisor.tail
        supervisor.stopped_by = None
        reports = sorted({path for pattern in wrapped.expected[:1] for path in self.ranks.raw.glob(pattern)})
        for report in reports:
            for command in wrapped.export:
                argv = [part.replace("{file}", str(report)) for part in command]
                env = {**self.env, **wrapped.env}
                env.pop(config.ENV, None)
                done = supervisor.run(  # some exporters write where they stand, whatever the report's path
                    argv, env=env, cwd=str(self.ranks.raw), limit=max(self.grace, wrapped.finalise_s)
                )
                if done.code != 0:
                    said = supervisor.tail.decode("utf-8", "replace").strip().splitlines()
                    reason = done.error or (said[-1] if said else f"exit code {done.code}")
                    self.warnings.append(f"{report.name} could not be exported by {argv[0]}: {reason}")
        self._lap("export")

    def _notes(self) -> list[dict[str, Any]]:
        found = (read_json(path) for path in sorted((self.folder / "hook").glob("process.*.json")))
        own = self.ranks.own()
        return [note for note in found if note is not None and note.get("rank", 0) in own]

    def _judge(
        self, supervisor: Supervisor, outcomes: Sequence[Outcome], notes: list[dict[str, Any]]
    ) -> Verdict:
        assert self.wrapped is not None
        log = getattr(self, "_log", supervisor.tail).decode("utf-8", "replace")
        for rank in self.ranks.own():
            wanted = self.wrapped.expected if rank == self.rank or self.wrapped.hook == "in_process" else ()
            self.artefacts += artefacts.collect(self.folder, rank, wanted)
        self.steps = self._steps()
        self.warnings += self._hook_warnings(notes)
        module = tools.wrap_module(self.collector)
        explain = getattr(module, "reason", None)
        tool_says = None
        if explain is not None:
            tool_says = explain(
                log,
                windowed=self.wrapped.hook in ("cuda", "roctx"),
                reported=not any(row["state"] == "missing" for row in self.artefacts),
            )
        facts = Facts(
            cancelled=(self.folder / "cancel").exists(),
            limit=self.command.get("timeout_s"),
            tool=self.tool.name if self.tool.path else None,
            artefacts=self.artefacts,
            steps=self.steps["count"],
            hooked=(self.folder / "hook" / "loaded").exists(),
            hook=self.wrapped.hook,
            steps_wanted=(self.command.get("ranges") or {}).get("steps", "auto") != "off",
            tool_says=tool_says,
            log=log,
        )
        return judge(outcomes[-1], facts, self.warnings)

    def _hook_warnings(self, notes: list[dict[str, Any]]) -> list[str]:
        """What processes of this rank wanted to be told, each sentence once."""
        told = [str(from_json(Finding, row)) for note in notes for row in note.get("warnings", ())]
        for path in sorted((self.folder / "hook").glob("error.*.txt")):
            lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            told.append(f"profrun's hook failed: {lines[-1] if lines else 'no words'} (hook/{path.name})")
        return list(dict.fromkeys(told))

    def _steps(self) -> dict[str, Any]:
        found = read_json(self.ranks.raw / "steps.json") or {}
        return {
            "how": found.get("how", "none"),
            "count": len(found.get("steps", ())),
            "ranges": int(found.get("ranges_emitted", 0)),
            "out_of_memory": bool(found.get("out_of_memory", False)),
        }

    def _finish(self, verdict: Verdict, value: dict[str, Any]) -> int:
        """Write provenance.json and, last of all, exit.json."""
        self._save("provenance.json", value)
        total = (time.time_ns() - self.started_ns) / 1e9
        steps = getattr(self, "steps", {"how": "none", "count": 0, "ranges": 0})
        document = {
            "format": 1,
            "trial": self.command["trial"],
            "attempt": self.command.get("attempt", 1),
            "rank": self.rank,
            "state": verdict.state,
            "exit_code": verdict.exit_code,
            "signal": None if verdict.signal is None else signal.Signals(verdict.signal).name,
            "reason": verdict.reason,
            "stopped_by": self.stopped_by,
            "started_ns": self.started_ns,
            "ended_ns": time.time_ns(),
            "seconds": {
                **{
                    name: round(self.seconds.get(name, 0.0), 3)
                    for name in ("preflight", "app", "finalise", "export")
                },
                "total": round(total, 3),
            },
            "collector": self.collector,
            "tool": self.tool.name,
            "tool_version": self._version(),
            "vendor": self.vendor,
            "argv": redact.arguments(self.wrapped.argv if self.wrapped is not None else self.argv),
            "steps": {"how": steps["how"], "count": steps["count"]},
            "ranges_emitted": steps["ranges"],
            "artefacts": self.artefacts,
            "warnings": list(dict.fromkeys(self.warnings)),
        }
        try:
            self.ranks.conclude(document, self.grace)
        except OSError as error:
            print(f"profrun: exit.json cannot be written: {error}: {document}", file=sys.stderr)
            return 74
        (self.folder / "phase").unlink(missing_ok=True)
        return verdict.wrapper_code

    def _save(self, name: str, value: dict[str, Any]) -> None:
        if self.rank:
            return
        try:
            write_json(self.folder / name, value)
        except OSError as error:
            self.warnings.append(f"{name} could not be written: {error}")

    def _version(self) -> str | None:
        return None if self.tool.version is None else ".".join(map(str, self.tool.version))

    def _phase(self, name: str) -> None:
        if not self.rank:
            set_phase(self.folder, name, time.time_ns(), pid=os.getpid(), trial=self.command["trial"])

    def _lap(self, name: str) -> None:
        now = time.monotonic()
        self.seconds[name] = now - self._clock
        self._clock = now
