"""One trial from command.json to exit.json, as the wrapper of one rank runs it."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..contract.codec import DocumentError, from_json, to_json
from ..contract.exit import Exit, Seconds, StepsSeen
from ..contract.finding import Finding
from ..contract.machine import dotted
from ..contract.paths import TrialPaths
from ..contract.provenance import ToolUsed
from ..contract.steps import StepsFile
from ..contract.wrapping import ATTEMPTS
from . import artefacts, config, hook_errors, launch, process_note, process_rank, provenance, redact, vendor
from .files import Reserve, read_json, set_phase, write_json
from .outcome import Facts, Verdict, judge
from .prepare import Prepared, prepare
from .ranks import Ranks
from .recording_watch import RecordingWatch
from .supervise import Supervisor, flush_streams

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from ..contract.command import Command
    from ..contract.exit import Artefact
    from ..contract.provenance import Provenance
    from ..contract.wrapping import Import, Wrapped
    from .supervise import Outcome


@dataclass
class Result:
    """What is known of a trial so far, for exit.json and provenance.json."""

    provenance: Provenance
    prepared: Prepared = field(default_factory=Prepared)
    seconds: Seconds = field(default_factory=Seconds)
    stopped_by: str | None = None
    steps: StepsFile | None = None
    artefacts: list[Artefact] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)


class Trial:
    """Runs one rank's part of a trial.

    Args:
        folder: the trial folder.
        command: what the runner wants.
        bundle: where run.py lies.
    """

    def __init__(self, folder: Path, command: Command, bundle: Path) -> None:
        self.paths = TrialPaths(folder)
        self.command = command
        self.bundle = bundle
        self.started_ns = time.time_ns()
        launch.slurm_ranks(environ := dict(os.environ))
        self.ranks = Ranks(self.paths, process_rank.from_environ(environ))

    def run(self) -> int:
        """Do it; returns the wrapper's exit code (see ``wrapper.main``)."""
        folder = self.paths.folder
        try:
            self.ranks.prepare()
            self.paths.hook.mkdir(exist_ok=True)
        except OSError as error:
            print(f"profrun: the trial folder {folder} cannot be written: {error}", file=sys.stderr)
            return 73
        reserve = Reserve(folder)
        supervisor = Supervisor(folder, suffix=self.ranks.suffix, grace=self.command.grace_s)
        try:
            verdict, result = self._run(supervisor)
        finally:
            reserve.release()
            supervisor.close()
        self._save_provenance(result)
        return self._finish(verdict, result)

    def _run(self, supervisor: Supervisor) -> tuple[Verdict, Result]:
        began = time.monotonic()
        self._phase("preflight")
        gpus: str = self.command.vendor
        how = "stated in command.json"
        if gpus == "auto":
            gpus, how = vendor.detect()
        env, told = launch.environment(self.command, os.environ, gpus, self.bundle)
        result = Result(provenance.before(self.command, env, gpus, how), warnings=told)
        prepared = prepare(self.command, gpus, self.paths.folder, self.ranks.raw)
        result.prepared = prepared
        result.warnings += prepared.warnings
        result.provenance = replace(
            result.provenance, preflight=prepared.preflight, tool=_tool_used(prepared)
        )
        self._save_provenance(result)
        result.seconds = Seconds(preflight=time.monotonic() - began)
        if prepared.wrapped is None:
            return _refused(prepared), result
        outcomes = self._execute(supervisor, prepared, prepared.wrapped, env, result)
        log = supervisor.tail.decode("utf-8", "replace")
        if outcomes[-1].error is None:
            self._import_unfinished(supervisor, prepared, env, result)
            self._export(supervisor, prepared.wrapped, env, result)
        return self._judge(prepared.wrapped, outcomes[-1], log, result), result

    def _execute(
        self,
        supervisor: Supervisor,
        prepared: Prepared,
        wrapped: Wrapped,
        env: Mapping[str, str],
        result: Result,
    ) -> list[Outcome]:
        """The command, then further passes of a counter collection while all goes well."""
        limit = self.command.timeout_s
        outcomes: list[Outcome] = []
        self._phase("app")
        flush_streams()
        for run, argv in enumerate((wrapped.argv, *wrapped.passes)):
            orders = self._orders(prepared, wrapped, run)
            spent = sum(outcome.app_s for outcome in outcomes)
            environ = {**env, **wrapped.env, hook_errors.ENV: str(orders)}
            recording = self._watch(wrapped, environ, result)
            outcome = supervisor.run(
                argv,
                env=environ,
                cwd=self.command.cwd or None,
                app=self.command.argv,
                tool=prepared.tool.path,
                limit=None if not limit else max(0.0, limit - spent),
                finalise=wrapped.finalise_s,
                on_app_end=lambda: self._phase("finalise"),
                recording=recording,
            )
            if recording is not None and recording.finding is not None:
                result.warnings.append(recording.finding)
            outcomes.append(outcome)
            if outcome.stopped_by or outcome.code != 0:
                break
        result.stopped_by = outcomes[-1].stopped_by
        result.seconds = replace(
            result.seconds,
            app=sum(outcome.app_s for outcome in outcomes),
            finalise=sum(outcome.finalise_s for outcome in outcomes),
        )
        return outcomes

    def _watch(self, wrapped: Wrapped, environ: Mapping[str, str], result: Result) -> RecordingWatch | None:
        """What ends the recording when a limit is reached; None where the wrapper has nothing to end."""
        if wrapped.limits is None:
            return None
        gpu = result.provenance.vendor != "none"
        return RecordingWatch(wrapped.limits, self.ranks.raw, environ, gpu=gpu)

    def _orders(self, prepared: Prepared, wrapped: Wrapped, run: int) -> Path:
        """Write what the hook is told in the ``run``-th run of the command; returns the file."""
        assert prepared.profiler is not None
        orders = config.HookConfig(
            folder=str(self.paths.folder),
            collector=self.command.collector,
            profiler=prepared.profiler.name,
            hook=wrapped.hook,
            emitter=wrapped.emitter,
            exclusive=prepared.profiler.exclusive,
            unwind=prepared.tool.path is not None,
            schedule=self.command.schedule,
            ranges=self.command.ranges,
            options=dict(prepared.options),
            values=self.command.values,
            blocking=self.command.blocking,
            run=run,
            tool_version=prepared.tool.version or (),
        )
        path = self.paths.hook / f"config.rank{self.ranks.own.rank}.{run}.json"
        write_json(path, to_json(orders))
        return path

    def _import_unfinished(
        self, supervisor: Supervisor, prepared: Prepared, env: Mapping[str, str], result: Result
    ) -> None:
        """Make reports of what the tool left unfinished; a failed import is tried again."""
        assert prepared.profiler is not None
        assert prepared.wrapped is not None
        part = prepared.profiler.part("unfinished")
        if part is None or prepared.tool.path is None:
            return
        began = time.monotonic()
        environ = {**env, **prepared.wrapped.env}
        limit = max(self.command.grace_s, prepared.wrapped.finalise_s)
        supervisor.stopped_by = None
        for command in part.imports(self.ranks.raw, prepared.tool.path):
            self._phase("finalise")
            result.warnings.append(_import(supervisor, command, environ, limit))
        spent = time.monotonic() - began
        result.seconds = replace(result.seconds, finalise=result.seconds.finalise + spent)

    def _export(
        self, supervisor: Supervisor, wrapped: Wrapped, env: Mapping[str, str], result: Result
    ) -> None:
        """Exports run where the report was made, also for what a stopped trial left."""
        if not wrapped.export:
            return
        began = time.monotonic()
        self._phase("export")
        supervisor.stopped_by = None
        raw = self.ranks.raw
        for report in sorted({path for pattern in wrapped.expected[:1] for path in raw.glob(pattern)}):
            for command in wrapped.export:
                argv = [part.replace("{file}", str(report)) for part in command]
                done = supervisor.run(  # some exporters write where they stand, whatever the report's path
                    argv,
                    env={**env, **wrapped.env},
                    cwd=str(raw),
                    limit=max(self.command.grace_s, wrapped.finalise_s),
                )
                if done.code != 0:
                    what = f"{report.name} could not be exported by {argv[0]}"
                    why = _last_words(done, supervisor.tail)
                    result.warnings.append(Finding("export-failed", "warning", what, why))
        result.seconds = replace(result.seconds, export=time.monotonic() - began)

    def _judge(self, wrapped: Wrapped, outcome: Outcome, log: str, result: Result) -> Verdict:
        own = self.ranks.answered_for()
        notes = process_note.read_notes(self.paths.hook, own)
        result.provenance = provenance.after(result.provenance, notes)
        for rank in own:
            every = rank == self.ranks.own.rank or wrapped.hook == "in_process"
            result.artefacts += artefacts.collect(self.paths.folder, rank, wrapped.expected if every else ())
        result.steps = _steps(self.ranks.raw)
        told = [finding for note in notes for finding in note.warnings]
        told += _hook_errors(self.paths.hook)
        facts = Facts(
            cancelled=self.paths.cancel.exists(),
            limit=self.command.timeout_s,
            batch_system="Slurm" if "SLURM_JOB_ID" in os.environ else None,
            tool=result.prepared.tool.name if result.prepared.tool.path else None,
            artefacts=result.artefacts,
            steps=len(result.steps.steps) if result.steps is not None else 0,
            hooked=(self.paths.hook / "loaded").exists(),
            windowed=wrapped.hook != "none",
            steps_wanted=self.command.ranges.steps != "off",
            warnings=told,
            tool_says=_tool_says(result.prepared, wrapped, log, result.artefacts),
            log=log,
        )
        verdict, more = judge(outcome, facts)
        result.warnings += [*told, *more]
        return verdict

    def _finish(self, verdict: Verdict, result: Result) -> int:
        """Write exit.json, last of all; returns the wrapper's exit code."""
        prepared, steps = result.prepared, result.steps
        ended_ns = time.time_ns()
        document = Exit(
            trial=self.command.trial,
            state=verdict.state,
            attempt=self.command.attempt,
            rank=self.ranks.own.rank,
            exit_code=verdict.exit_code,
            signal=verdict.signal_name,
            reason=verdict.reason,
            code=verdict.code,
            stopped_by=result.stopped_by,
            started_ns=self.started_ns,
            ended_ns=ended_ns,
            seconds=_rounded(replace(result.seconds, total=(ended_ns - self.started_ns) / 1e9)),
            collector=self.command.collector,
            profiler=prepared.profiler.name if prepared.profiler is not None else None,
            tool=prepared.tool.name,
            tool_version=dotted(prepared.tool.version),
            vendor=result.provenance.vendor,
            argv=tuple(redact.arguments(prepared.wrapped.argv if prepared.wrapped else self.command.argv)),
            steps=StepsSeen() if steps is None else StepsSeen(steps.how, len(steps.steps)),
            ranges_emitted=0 if steps is None else steps.ranges_emitted,
            artefacts=tuple(result.artefacts),
            warnings=tuple(dict.fromkeys(result.warnings)),
        )
        try:
            self.ranks.conclude(document, self.command.grace_s)
        except OSError as error:
            print(f"profrun: exit.json cannot be written: {error}: {document}", file=sys.stderr)
            return 74
        self.paths.phase.unlink(missing_ok=True)
        return verdict.wrapper_code

    def _save_provenance(self, result: Result) -> None:
        if self.ranks.own.rank:
            return
        try:
            write_json(self.paths.provenance, to_json(result.provenance))
        except OSError as error:
            what = f"provenance.json could not be written: {error}"
            result.warnings.append(Finding("provenance-lost", "warning", what))

    def _phase(self, name: str) -> None:
        if not self.ranks.own.rank:
            set_phase(self.paths.folder, name, time.time_ns(), pid=os.getpid(), trial=self.command.trial)


def _import(supervisor: Supervisor, command: Import, environ: Mapping[str, str], limit: float) -> Finding:
    """Try an import up to ``ATTEMPTS`` times; the unfinished file is deleted when its report is there."""
    name, folder = command.unfinished.name, str(command.unfinished.parent)
    why = ""
    for _ in range(ATTEMPTS):
        done = supervisor.run(command.argv, env=command.environment(environ), cwd=folder, limit=limit)
        if command.settle(done.code):
            command.unfinished.unlink()
            what = f"the profiler left {name} without a report, and profrun made the report of it"
            return Finding("report-imported", "info", what)
        why = _last_words(done, supervisor.tail)
        if done.stopped_by or done.error:
            break
    return Finding("import-failed", "warning", f"{name} could not be imported by {command.argv[0]}", why)


def _last_words(done: Outcome, printed: bytes) -> str:
    """Why a command failed: its own error, else the last line that it printed."""
    said = printed.decode("utf-8", "replace").strip().splitlines()
    return done.error or (said[-1] if said else f"exit code {done.code}")


def _refused(prepared: Prepared) -> Verdict:
    assert prepared.refusal is not None
    return Verdict("failed", code=prepared.refusal.code, reason=str(prepared.refusal), wrapper_code=69)


def _tool_used(prepared: Prepared) -> ToolUsed:
    return ToolUsed(prepared.tool.name, prepared.tool.path, dotted(prepared.tool.version))


def _tool_says(prepared: Prepared, wrapped: Wrapped, log: str, left: Iterable[Artefact]) -> str | None:
    """The profiler's own reading of what its tool printed."""
    assert prepared.profiler is not None
    explain = getattr(prepared.profiler.part("wrap"), "reason", None)
    if explain is None:
        return None
    found: str | None = explain(
        log,
        windowed=wrapped.hook not in ("none", "in_process"),
        reported=not any(artefact.state == "missing" for artefact in left),
    )
    return found


def _steps(raw: Path) -> StepsFile | None:
    try:
        return from_json(StepsFile, read_json(raw / "steps.json"))
    except DocumentError:  # this rank made no steps
        return None


def _hook_errors(folder: Path) -> list[Finding]:
    """Errors of the hook itself, by the files that it left."""
    found = []
    for path in sorted(folder.glob("error.*.txt")):
        lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        why = f"{lines[-1] if lines else 'no words'} (hook/{path.name})"
        found.append(Finding("hook-failed", "critical", "profrun's hook failed", why))
    return found


def _rounded(seconds: Seconds) -> Seconds:
    return Seconds(**{name: round(value, 3) for name, value in vars(seconds).items()})
