"""Runs the wrapped command of a trial, and what makes whole files of what its profiler leaves."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ..contract.codec import to_json
from ..contract.exit import Seconds
from ..contract.finding import Finding
from ..contract.wrapping import ATTEMPTS
from . import config, hook_errors, window_placer
from .command_end import Outcome
from .files import write_json
from .prepare import Prepared
from .recording_watch import RecordingWatch
from .supervise import flush_streams
from .tool_start import ToolStart

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..contract.command import Command
    from ..contract.exit import Artefact
    from ..contract.provenance import Provenance
    from ..contract.redact import Redactor
    from ..contract.steps import StepsFile
    from ..contract.wrapping import Import, Wrapped
    from .ranks import Ranks
    from .scratch import Scratch
    from .supervise import Supervisor


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


class Execution:
    """Runs a prepared command with all its passes, then makes reports and exports of what it left.

    Args:
        supervisor: runs the commands.
        ranks: this wrapper among those of the other ranks.
        scratch: where the profilers write.
        env: the environment of the program.
        result: takes the times, the reason of an early end, and the warnings.
        phase: told what is done now: app, finalise or export.
        hide: hides the trial's secrets.

    Attributes:
        spent: seconds of the time limit that the program has used.
        log: the end of what the last run printed.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        ranks: Ranks,
        scratch: Scratch,
        env: Mapping[str, str],
        result: Result,
        phase: Callable[[str], None],
        hide: Redactor,
    ) -> None:
        self.supervisor = supervisor
        self.ranks = ranks
        self.scratch = scratch
        self.env = env
        self.result = result
        self.spent = 0.0
        self.log = ""
        self._phase = phase
        self._hide = hide

    def run(self, command: Command, prepared: Prepared, wrapped: Wrapped) -> Outcome:
        """Run it; returns how the program ended: its last pass where there are several.

        Args:
            command: what the runner wants.
            prepared: what is run; ``wrapped`` is its command.
        """
        try:
            outcome = self._execute(command, prepared, wrapped)
            self.log = self.supervisor.tail
            if outcome.error is None:
                limit = max(command.grace_s, wrapped.finalise_s)
                self._import_unfinished(prepared, wrapped, limit)
                self._export(wrapped, limit)
        finally:
            self.result.warnings += self.scratch.deliver()
        return outcome

    @property
    def _folder(self) -> Path:
        """Where the profiler round the program writes."""
        return self.scratch.rank(self.ranks.own.rank)

    def _execute(self, command: Command, prepared: Prepared, wrapped: Wrapped) -> Outcome:
        """The command, then further passes of a counter collection while all goes well."""
        self._phase("app")
        flush_streams()
        outcome = Outcome()
        for run, argv in enumerate((wrapped.argv, *wrapped.passes)):
            orders = self._orders(command, prepared, wrapped, run)
            outcome = self._run_once(argv, orders, command, prepared, wrapped)
            if outcome.stopped_by or outcome.code != 0:
                break
        self.result.stopped_by = outcome.stopped_by
        return outcome

    def _run_once(
        self, argv: Sequence[str], orders: Path, command: Command, prepared: Prepared, wrapped: Wrapped
    ) -> Outcome:
        """Run the program once; a profiler that fails before it starts the program is started again."""
        environ = {**self.env, **wrapped.env, hook_errors.ENV: str(orders)}
        attempts = 0
        while True:
            attempts += 1
            recording = self._watch(command, wrapped, environ)
            start = self._tool_start(orders, prepared)
            outcome = self.supervisor.run(
                argv,
                env=environ,
                cwd=command.cwd or None,
                app=command.argv,
                tool=prepared.tool.path,
                limit=None if not command.timeout_s else max(0.0, command.timeout_s - self.spent),
                finalise=wrapped.finalise_s,
                on_app_end=lambda: self._phase("finalise"),
                recording=recording,
                tool_start=start,
                recorded=lambda: self._left(*wrapped.expected, *wrapped.named_last),
            )
            if recording is not None and recording.finding is not None:
                self.result.warnings.append(recording.finding)
            self._add(outcome)
            words = self._not_started(outcome, start, wrapped)
            if words is None:
                return outcome
            what = f"{prepared.tool.name} failed before it started the program"
            if attempts == ATTEMPTS:
                outcome.error = f"{what}, in {ATTEMPTS} attempts: {words}"
                return outcome
            if attempts == 1:
                told = Finding("profiler-restarted", "info", f"{what}, and was started again", words)
                self.result.warnings.append(told)
            _clear(self._folder)

    def _tool_start(self, orders: Path, prepared: Prepared) -> ToolStart | None:
        """What notices that the profiler fails to start the program; None: its log does not tell."""
        assert prepared.profiler is not None
        if not prepared.records:
            return None
        explain = getattr(prepared.profiler.part("wrap"), "not_started", None)
        return None if explain is None else ToolStart(explain, Path(hook_errors.loaded_mark(str(orders))))

    def _not_started(self, outcome: Outcome, start: ToolStart | None, wrapped: Wrapped) -> str | None:
        """What the tool said where it failed before it started the program; None: it may have started it."""
        if start is None or outcome.stopped_by is not None or outcome.error is not None:
            return None
        if outcome.seen and not outcome.loads_hook:
            return None  # nothing tells whether this process has begun; a Python leaves the hook's mark
        recorded = self._left(*wrapped.expected)
        if (outcome.code is None and not outcome.hung) or (outcome.code == 0 and recorded):
            return None  # the exit code of 0 alone proves nothing: nsys has ended so without its agent
        return start.failure(self.supervisor.tail)

    def _left(self, *patterns: str) -> bool:
        """Whether the profiler has left a file with such a name."""
        return any(any(self._folder.glob(pattern)) for pattern in patterns)

    def _add(self, outcome: Outcome) -> None:
        """Count the time of a run."""
        self.spent += outcome.app_s
        times = self.result.seconds
        self.result.seconds = replace(times, app=self.spent, finalise=times.finalise + outcome.finalise_s)

    def _watch(self, command: Command, wrapped: Wrapped, environ: Mapping[str, str]) -> RecordingWatch | None:
        """What ends the recording when a limit is reached; None where the wrapper has nothing to end."""
        if wrapped.limits is None:
            return None
        gpu = self.result.provenance.vendor != "none"
        return RecordingWatch(wrapped.limits, self._folder, environ, command.schedule.cut, gpu=gpu)

    def _orders(self, command: Command, prepared: Prepared, wrapped: Wrapped, run: int) -> Path:
        """Write what the hook is told in the ``run``-th run of the command; returns the file."""
        assert prepared.profiler is not None
        orders = config.HookConfig(
            folder=str(self.ranks.paths.folder),
            wrapper=self.ranks.own.rank,
            collector=command.collector,
            profiler=prepared.profiler.name if prepared.records else "none",
            hook=wrapped.hook,
            emitter=wrapped.emitter,
            exclusive=prepared.profiler.exclusive and prepared.records,
            unwind=prepared.tool.path is not None,
            schedule=command.schedule,
            ranges=command.ranges,
            options=cast("dict[str, object]", self._hide.value(dict(prepared.options))),
            values=cast("dict[str, object]", self._hide.value(dict(command.values))),
            blocking=command.blocking,
            run=run,
            tool_version=prepared.tool.version or (),
            changes=command.changes,
            results=command.results,
            recorded=command.recorded,
            scratch=None if self.scratch.root is None else str(self.scratch.root),
        )
        if not run:
            window_placer.prepare(command, self.ranks.paths, self.ranks.own.rank)
        path = self.ranks.paths.hook / f"config.rank{self.ranks.own.rank}.{run}.json"
        write_json(path, to_json(orders))
        return path

    def _import_unfinished(self, prepared: Prepared, wrapped: Wrapped, limit: float) -> None:
        """Make reports of what the tool left unfinished; a failed import is tried again."""
        assert prepared.profiler is not None
        part = prepared.profiler.part("unfinished")
        if part is None or prepared.tool.path is None:
            return
        began = time.monotonic()
        environ = {**self.env, **wrapped.env}
        self.supervisor.stopped_by = None
        for unfinished in part.imports(self._folder, prepared.tool.path):
            self._phase("finalise")
            self.result.warnings.append(_import(self.supervisor, unfinished, environ, limit))
        spent = time.monotonic() - began
        times = self.result.seconds
        self.result.seconds = replace(times, finalise=times.finalise + spent)

    def _export(self, wrapped: Wrapped, limit: float) -> None:
        """Exports run where the report was made, also for what a stopped trial left."""
        if not wrapped.export:
            return
        began = time.monotonic()
        self._phase("export")
        self.supervisor.stopped_by = None
        raw = self._folder
        for report in sorted({path for pattern in wrapped.expected[:1] for path in raw.glob(pattern)}):
            for command in wrapped.export:
                argv = [part.replace("{file}", str(report)) for part in command]
                done = (
                    self.supervisor.run(  # some exporters write where they stand, whatever the report's path
                        argv,
                        env={**self.env, **wrapped.env},
                        cwd=str(raw),
                        limit=limit,
                    )
                )
                if done.code != 0:
                    what = f"{report.name} could not be exported by {argv[0]}"
                    why = _last_words(done, self.supervisor.tail)
                    self.result.warnings.append(Finding("export-failed", "warning", what, why))
        times = self.result.seconds
        self.result.seconds = replace(times, export=times.export + time.monotonic() - began)


def _clear(folder: Path) -> None:
    """Remove what a failed start has left. Of an nsys that was killed that is also its session, which the
    next nsys in this folder finds and refuses to take ("Session name 'profrun' is already in use")."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


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


def _last_words(done: Outcome, printed: str) -> str:
    """Why a command failed: its own error, else the last line that it printed."""
    said = printed.strip().splitlines()
    return done.error or (said[-1] if said else f"exit code {done.code}")
