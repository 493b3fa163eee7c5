"""One trial from command.json to exit.json, as the wrapper of one rank runs it."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from ..contract.codec import DocumentError, from_json, to_json
from ..contract.exit import Exit, Seconds, StepsSeen
from ..contract.finding import Finding
from ..contract.machine import dotted
from ..contract.paths import TrialPaths
from ..contract.provenance import ToolUsed
from ..contract.steps import StepsFile
from . import (
    artefacts,
    change_notes,
    hook_errors,
    launch,
    leftovers,
    process_note,
    process_rank,
    provenance,
    recorded_ranks,
    sampling,
    vendor,
)
from .earlier import no_steps_before
from .execution import Execution, Result
from .files import Reserve, is_full, read_json, set_phase, write_json
from .guard import guarded
from .node import node_names
from .outcome import Facts, Verdict, judge
from .prepare import Prepared, prepare
from .private_values import private_of, redactor
from .rank_signs import RankSigns
from .ranks import Ranks, batch_system
from .run_time import write_run
from .scratch import NOT_COPIED, Scratch
from .second_run import FirstRun, clear, second_run
from .supervise import Supervisor
from .withheld import close_files, shown_environment
from .words import complain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from ..contract.command import Command
    from ..contract.exit import Artefact
    from ..contract.redact import Redactor
    from ..contract.wrapping import Wrapped
    from .command_end import Outcome
    from .guard import Guard
    from .process_note import ProcessNote
    from .sampling import Sampling


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
        own = process_rank.from_environ(environ)
        self.ranks = Ranks(self.paths, own)
        self.signs = RankSigns(self.paths.hook, own, command.patience_s)
        self.scratch = Scratch(self.paths, command.scratch, environ)
        self.hide = redactor(private_of(folder), {**environ, **command.env}, command)

    def run(self) -> int:
        """Do it; returns the wrapper's exit code (see ``wrapper.main``)."""
        folder = self.paths.folder
        try:
            self.ranks.prepare()
            self.paths.hook.mkdir(exist_ok=True)
        except OSError as error:
            complain(f"the trial folder {folder} cannot be written: {error}")
            return 73
        with guarded(folder, self.ranks.own.rank, self.command.grace_s) as guard:
            return self._supervised(guard)

    def _supervised(self, guard: Guard | None) -> int:
        """Do it while a guard is there for the case that this process is killed."""
        folder = self.paths.folder
        reserve = Reserve(folder, rank=self.ranks.own.rank)
        supervisor = Supervisor(
            folder,
            suffix=self.ranks.suffix,
            grace=self.command.grace_s,
            echo=self.command.echo,
            output_bytes=self.command.output_bytes,
            overdue=self.signs.overdue,
            guard=guard,
        )
        try:
            try:
                self.signs.begin()
            except OSError as error:
                complain(f"{self.paths.hook} cannot be written: {error}")
                return 73
            try:
                verdict, result = self._run(supervisor)
            finally:
                self.scratch.deliver()  # of a trial that was refused: nothing
                reserve.release()
            self._close(result)
            self._save_provenance(result)
            return self._finish(verdict, result, supervisor)
        finally:
            self.signs.end()
            supervisor.close()

    def _run(self, supervisor: Supervisor) -> tuple[Verdict, Result]:
        self._phase("preflight")
        gpus: str = self.command.vendor
        how = "stated in command.json"
        if gpus == "auto":
            gpus, how = vendor.detect()
        env, told = launch.environment(self.command, os.environ, gpus, self.bundle)
        told += self._end_leftovers()
        env |= leftovers.mark(self.paths.folder, self.ranks.own.rank)
        sampler = sampling.start(
            self.command.sample, self.bundle, self.paths.folder, gpus, self.ranks.own, env
        )
        try:
            return self._sampled(supervisor, sampler, (gpus, how), env, told)
        finally:
            if sampler is not None:
                sampler.end()

    def _end_leftovers(self) -> list[Finding]:
        """End what an earlier attempt of this rank left on this machine; what was ended."""
        own = leftovers.of_rank(self.paths.folder, self.ranks.own.rank)
        ended = leftovers.end_all(own, self.command.grace_s)
        if not ended:
            return []
        why = "its wrapper was killed"
        return [
            Finding(leftovers.CODE, "warning", f"of an earlier attempt {leftovers.ended_text(ended)}", why)
        ]

    def _sampled(
        self,
        supervisor: Supervisor,
        sampler: Sampling | None,
        found: tuple[str, str],
        env: Mapping[str, str],
        told: list[Finding],
    ) -> tuple[Verdict, Result]:
        """Run the program while the sampler runs, where there is one."""
        gpus, how = found
        lead = not self.ranks.own.rank
        result = Result(provenance.before(self.command, env, gpus, how, self.hide, lead=lead), warnings=told)
        if lead:  # of all ranks, one passes them on
            result.warnings += self.command.findings
        self._record_whole(no_steps_before(self.command, self.paths.folder), result)
        wrapped = self._prepare(gpus, result)
        result.seconds = Seconds(preflight=(time.time_ns() - self.started_ns) / 1e9)
        if wrapped is None:
            return _refused(result.prepared), result
        if sampler is not None:
            supervisor.aside.add(sampler.pid)
            result.warnings += sampler.wait_until_ready()
        shown = self._shown(env, result)
        execution = Execution(supervisor, self.ranks, self.scratch, shown, result, self._phase, self.hide)
        outcome = execution.run(self.command, result.prepared, wrapped)
        if self._runs_again(wrapped, outcome, result):
            wrapped = self._prepare(gpus, result)
            assert wrapped is not None
            outcome = execution.run(self.command, result.prepared, wrapped)
        return self._judge(wrapped, outcome, execution.log, result), result

    def _prepare(self, gpus: str, result: Result) -> Wrapped | None:
        """Choose and check the profiler; returns how it wraps the command, None when it cannot run here."""
        records = recorded_ranks.wraps(self.command, self.ranks.own)
        own = self.ranks.own.rank
        told = self.scratch.open(own) if records else None
        prepared = prepare(self.command, gpus, self.paths.folder, self.scratch.rank(own), records=records)
        result.prepared = prepared
        result.warnings += [*([told] if told is not None else []), *prepared.warnings]
        result.provenance = replace(
            result.provenance, preflight=prepared.preflight, tool=_tool_used(prepared)
        )
        self._save_provenance(result)
        return prepared.wrapped

    def _shown(self, env: Mapping[str, str], result: Result) -> Mapping[str, str]:
        """What the program is shown of its environment; a profiler may keep all of it in its files."""
        profiler = result.prepared.profiler
        if profiler is None or not result.prepared.records or not profiler.keeps_environment:
            return env
        close_files(self.scratch.rank(self.ranks.own.rank))
        shown, told = shown_environment(profiler, self.command, env)
        result.warnings += told
        return shown

    def _close(self, result: Result) -> None:
        """Only the owner may read files that may hold secrets."""
        profiler = result.prepared.profiler
        if profiler is not None and profiler.keeps_environment:
            for rank in self.ranks.answered_for():
                close_files(self.paths.rank(rank))

    def _record_whole(self, why: Finding | None, result: Result) -> None:
        """From here on no step is looked for, where there is a reason for that."""
        if why is None or self.command.ranges.whole:
            return
        self.command = replace(self.command, ranges=replace(self.command.ranges, steps="off"))
        result.warnings.append(why)

    def _runs_again(self, wrapped: Wrapped, outcome: Outcome, result: Result) -> bool:
        """Whether the program runs a second time, recorded as a whole; all is made ready for it then."""
        notes = process_note.read_notes(self.paths.hook, self.ranks.covers)
        artefacts = self._artefacts(wrapped)
        critical = any(finding.severity == "critical" for finding in self._told(notes))
        first = FirstRun(self.command, wrapped, outcome, notes, artefacts, critical)
        again, finding = second_run(first, self.ranks)
        if again:
            clear(self.ranks)
            self._record_whole(finding, result)
        elif finding is not None:
            result.warnings.append(finding)
        return again

    def _judge(self, wrapped: Wrapped, outcome: Outcome, log: str, result: Result) -> Verdict:
        notes = process_note.read_notes(self.paths.hook, self.ranks.covers)
        result.provenance = provenance.after(result.provenance, notes, self.hide)
        profiler = result.prepared.profiler
        assert profiler is not None
        if outcome.error is None and outcome.stopped_by is None and outcome.code == 0:
            try:
                name = profiler.name if result.prepared.records else "none"
                write_run(self.command, name, self.ranks, notes, outcome)
            except OSError as error:
                what = f"the time of the run could not be kept: {error}"
                result.warnings.append(Finding("step-times-not-kept", "warning", what))
        result.artefacts = self._artefacts(wrapped)
        result.steps = _steps(self.ranks.raw)
        told = self._told(notes)
        inside = wrapped.hook == "in_process"
        made = self.ranks.answered_for()
        result.warnings += recorded_ranks.told(self.command, self.ranks.own, made, inside=inside)
        facts = Facts(
            cancelled=self.paths.cancel.exists(),
            limit=self.command.timeout_s,
            batch_system=batch_system(),
            tool=result.prepared.tool.name if result.prepared.tool.path else None,
            artefacts=result.artefacts,
            how=result.steps.how if result.steps is not None else "none",
            steps=len(result.steps.steps) if result.steps is not None else 0,
            hooked=any(self.paths.hook.glob(f"*{hook_errors.LOADED}")),
            inside=profiler.title if inside else None,
            torch=any(note.torch is not None for note in notes),
            windowed=wrapped.hook != "none",
            steps_wanted=not self.command.ranges.whole,
            warnings=[*told, *(one for one in result.warnings if one.code == NOT_COPIED)],
            tool_says=self._tool_says(result.prepared, wrapped, log, result.artefacts),
            log=log,
            disk_full=self._lacked_room(outcome, result),
        )
        verdict, more = judge(outcome, facts)
        result.warnings += [*told, *more]
        return verdict

    def _lacked_room(self, outcome: Outcome, result: Result) -> bool:
        """Whether the disk was full; of a trial in which all went well that is not asked."""
        odd = outcome.code != 0 or any(artefact.state != "whole" for artefact in result.artefacts)
        return outcome.disk_full or (odd and is_full(self.paths.folder))

    def _artefacts(self, wrapped: Wrapped) -> list[Artefact]:
        """The files of the ranks that this wrapper answers for, and those that are missing."""
        found: list[Artefact] = []
        inside = wrapped.hook == "in_process"
        for rank in self.ranks.answered_for():
            every = recorded_ranks.is_expected(self.command, rank, self.ranks.own, inside=inside)
            found += artefacts.collect(self.paths.folder, rank, wrapped.expected if every else ())
        return found

    def _tool_says(
        self, prepared: Prepared, wrapped: Wrapped, log: str, left: Iterable[Artefact]
    ) -> str | None:
        """The profiler's own reading of what its tool printed."""
        assert prepared.profiler is not None
        explain = getattr(prepared.profiler.part("wrap"), "reason", None)
        if explain is None or not prepared.records:
            return None
        found: str | None = explain(
            log,
            windowed=wrapped.hook not in ("none", "in_process") and not self.command.ranges.whole,
            reported=not any(artefact.state == "missing" for artefact in left),
        )
        return found

    def _told(self, notes: Sequence[ProcessNote]) -> list[Finding]:
        """What the hooks of the program's processes found, their own errors too."""
        errors = _hook_errors(self.paths.hook, self.ranks.own.rank)
        return [*change_notes.told(notes), *errors]

    def _finish(self, verdict: Verdict, result: Result, supervisor: Supervisor) -> int:
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
            reason=None if verdict.reason is None else self.hide.text(verdict.reason),
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
            argv=self.hide.arguments(prepared.wrapped.argv if prepared.wrapped else self.command.argv),
            steps=StepsSeen() if steps is None else StepsSeen(steps.how, len(steps.steps)),
            ranges_emitted=0 if steps is None else steps.ranges_emitted,
            artefacts=tuple(result.artefacts),
            warnings=tuple(dict.fromkeys(_hidden(one, self.hide) for one in result.warnings)),
            nodes=node_names(os.environ),
        )
        try:
            self.ranks.conclude(
                document,
                self.signs,
                supervisor.hear,
                self.command.grace_s,
                lambda waiting: self._phase("ranks", waiting=waiting),
            )
        except OSError as error:
            complain(f"exit.json cannot be written: {error}: {document}")
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

    def _phase(self, name: str, **more: object) -> None:
        if not self.ranks.own.rank:
            known = {"pid": os.getpid(), "trial": self.command.trial, **more}
            set_phase(self.paths.folder, name, time.time_ns(), **known)


def _hidden(finding: Finding, hide: Redactor) -> Finding:
    """A finding without secrets: it may hold the last words of a program."""
    what, why, fix = (hide.text(text) for text in (finding.what, finding.why, finding.fix))
    return replace(finding, what=what, why=why, fix=fix)


def _refused(prepared: Prepared) -> Verdict:
    assert prepared.refusal is not None
    return Verdict("failed", code=prepared.refusal.code, reason=str(prepared.refusal), wrapper_code=69)


def _tool_used(prepared: Prepared) -> ToolUsed:
    return ToolUsed(prepared.tool.name, prepared.tool.path, dotted(prepared.tool.version))


def _steps(raw: Path) -> StepsFile | None:
    try:
        return from_json(StepsFile, read_json(raw / "steps.json"))
    except DocumentError:  # this rank made no steps
        return None


def _hook_errors(folder: Path, rank: int) -> list[Finding]:
    """Errors of the hook in what the wrapper of this rank started, by what they left."""
    return [
        Finding(hook_errors.CODE, "critical", "profrun's hook failed", f"{said} (hook/{name})")
        for said, name in hook_errors.read(folder, rank)
    ]


def _rounded(seconds: Seconds) -> Seconds:
    return Seconds(**{name: round(value, 3) for name, value in vars(seconds).items()})
