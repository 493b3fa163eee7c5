"""The documents of a trial, read as the dataclasses of ``contract``: exit, steps, command and provenance.

Documents that profrun 0.1 wrote are read too: they are of format 1, and become format 2 here.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from profrun.contract.codec import DocumentError, from_json, to_json
from profrun.contract.command import Command
from profrun.contract.denominator import Denominator, found_by
from profrun.contract.exit import Exit
from profrun.contract.paths import OutsideError, TrialPaths, inside
from profrun.contract.states import Status
from profrun.contract.steps import StepsFile
from profrun.errors import InputError
from profrun.in_job.rank_answers import RANK_SILENT, Stop, answered, gathered, read_answers
from profrun.store.files import read_json, write_json

if TYPE_CHECKING:
    from profrun.contract.provenance import Provenance

T = TypeVar("T")

_SEVERITY = {"error": "critical", "degraded": "warning", "note": "info"}
"""The words of profrun 0.1 for the severity of what the preflight found."""


@dataclass(frozen=True)
class Steps:
    """Step times of one trial.

    Attributes:
        how: how steps were found (``StepsFile.how``); None when no rank wrote a file.
        clock: cuda_event, hip_event or wall.
        count: steps seen, of the rank that saw the most.
        measured: duration in ns of each step inside the recorded window (``active``), in order; of several
            ranks the slowest of each step, because the others wait for it.
        all_ns: the same for every step of the trial.
        in_window: whether the schedule records each step of ``all_ns``.
        out_of_memory: some rank ran out of GPU memory.
        profiler_start_ns: of a run: how long the profiler took to start inside it, of the slowest rank; it is
            in none of the durations. None where that is not known.
    """

    how: str | None = None
    clock: str | None = None
    count: int = 0
    measured: tuple[int, ...] = ()
    all_ns: tuple[int, ...] = ()
    out_of_memory: bool = False
    profiler_start_ns: int | None = None
    in_window: tuple[bool, ...] = ()

    @property
    def denominator(self) -> Denominator:
        """Whether these are steps, or the one run of a program without steps."""
        return found_by(self.how)

    @property
    def median_ns(self) -> int | None:
        """Median of ``measured`` in ns, rounded to a whole ns; None when nothing was measured."""
        return median_ns(self.measured)


def median_ns(values: Iterable[int]) -> int | None:
    """Median in whole ns (even count: mean of the two in the middle); None of nothing."""
    found = sorted(values)
    if not found:
        return None
    return round((found[(len(found) - 1) // 2] + found[len(found) // 2]) / 2)


def read_steps(trial: TrialPaths) -> Steps:
    """Step times of all ranks; an empty value when no rank wrote a file.

    Raises:
        InputError: a file is there and is not what the hook writes.
    """
    found = [_read(StepsFile, path) for path in trial.steps()]
    return fold_steps([document for document in found if document is not None])


def fold_steps(ranks: Sequence[StepsFile]) -> Steps:
    """One trial's steps from the documents of its ranks: each step as long as its slowest rank."""
    if not ranks:
        return Steps()
    slowest: dict[int, int] = {}
    starts = [rank.profiler_start_ns for rank in ranks]
    active: set[int] = set()
    for rank in ranks:
        for step in rank.steps:
            if step.dur_ns is None:
                continue
            slowest[step.step] = max(step.dur_ns, slowest.get(step.step, 0))
            if step.window == "active":
                active.add(step.step)
    return Steps(
        how=ranks[0].how,
        clock=ranks[0].clock,
        count=max(len(rank.steps) for rank in ranks),
        measured=tuple(slowest[number] for number in sorted(active)),
        all_ns=tuple(slowest[number] for number in sorted(slowest)),
        out_of_memory=any(rank.out_of_memory for rank in ranks),
        profiler_start_ns=None if None in starts else max(start for start in starts if start is not None),
        in_window=tuple(number in active for number in sorted(slowest)),
    )


def read_exit(trial: TrialPaths, attempt: int | None = None) -> Exit | None:
    """How the trial ended, by this attempt or a later one (any when None).

    Later ones are those that a queue started by itself (requeue, preemption). A file that cannot be read
    counts as not there: an unknown end never counts as success.

    Returns:
        None when the file is not there or is of an earlier attempt.
    """
    try:
        found = _read(Exit, trial.exit)
    except InputError:
        return None
    return None if found is None or (attempt is not None and found.attempt < attempt) else found


def read_command(trial: TrialPaths) -> Command | None:
    """What the wrapper was told; None when it was never written.

    Raises:
        InputError: the file is damaged.
    """
    return _read(Command, trial.command)


def read_provenance(trial: TrialPaths) -> Provenance | None:
    """On what the trial ran; None when that was never written.

    Raises:
        InputError: the file is damaged.
    """
    from profrun.contract.provenance import Provenance  # a dry run, which needs none, is to answer at once

    return _read(Provenance, trial.provenance)


def provenance_beside(trace: Path) -> Provenance | None:
    """``provenance.json`` of the trial whose trace this is; None for a trace that is no trial's.

    Raises:
        InputError: the file is damaged.
    """
    path = trace.absolute()
    return read_provenance(TrialPaths(path.parent)) if path.name == "trace" else None


def status_of(found: Exit) -> Status:
    """The state of a trial that ended like this."""
    return Status(found.state, found.reason, found.exit_code, found.code)


def finalising(trial: TrialPaths) -> Status | None:
    """The state of a running trial whose program has ended, by the phase that its wrapper wrote last: the
    profiler writes its report, or rank 0 waits for other ranks. None while the program runs.
    """
    try:
        told = read_json(trial.phase) or {}
    except InputError:
        return None
    if told.get("phase") == "ranks":
        return Status("finalising", f"waits for {told.get('waiting')}")
    return Status("finalising") if told.get("phase") in ("finalise", "export") else None


def request_cancel(trial: TrialPaths, grace_s: float, *, durable: bool = True) -> None:
    """Tell the wrapper that the signal which follows is a cancel, unless the trial has ended already.

    Raises:
        UnavailableError: the folder cannot be written.
    """
    if not trial.exit.exists():
        value = {"grace_s": grace_s, "requested_ns": time.time_ns()}
        write_json(trial.cancel, value, durable=durable)


def interrupted(found: Exit) -> bool:
    """Whether a signal ended this trial that profrun did not send: it was preempted, or its node was drained.

    The wrapper calls it a timeout, because a scheduler's time limit looks the same from inside; whether the
    trial is started again, only the scheduler knows. Its own time limit is no such end.
    """
    return found.state == "timeout" and str(found.stopped_by).startswith("SIG")


def unsettled(found: Exit) -> bool:
    """Whether only the engine that ran a trial knows that this is its end: it may start it again, or ranks
    that have said nothing may still run.
    """
    return interrupted(found) or bool(found.silent)


def with_late_answers(trial: TrialPaths, found: Exit) -> Exit:
    """How a trial ended, with what silent ranks said after rank 0 had written ``exit.json``: it is written
    anew then.

    Raises:
        UnavailableError: it cannot be written.
    """
    if not found.silent or not answered(trial) & set(found.silent):
        return found
    answers = read_answers(trial, found.attempt, range(found.wrappers))
    if 0 not in answers or not answers.keys() & set(found.silent):
        return found
    by = str(found.stopped_by)
    stop = Stop(by, trial.cancel.exists()) if by.startswith("SIG") else None
    settled = gathered(answers, found.wrappers, stop)
    write_json(trial.exit, to_json(settled))
    return settled


def with_the_engines_reason(trial: TrialPaths, found: Exit, told: Status) -> Exit:
    """``exit.json`` with what the engine knows of the ranks that stay silent.

    Args:
        told: its ``code`` is ``RANK_SILENT``; with another one nothing changes.

    Raises:
        UnavailableError: it cannot be written.
    """
    if not found.silent or told.code != RANK_SILENT or told.state not in ("failed", "timeout", "cancelled"):
        return found
    settled = replace(found, state=told.state, reason=told.reason, code=told.code)
    write_json(trial.exit, to_json(settled))
    return settled


def whole_artefacts(trial: TrialPaths, found: Exit | None) -> list[Path]:
    """Profiler files of a trial that are there and whole; truncated ones are kept, and are not in it."""
    artefacts = found.artefacts if found is not None else ()
    named = [_within(trial.folder, artefact.path) for artefact in artefacts if artefact.state == "whole"]
    return [path for path in named if path is not None and path.is_file()]


def _within(folder: Path, named: str) -> Path | None:
    """A file that a document names; None where it is not in the trial's folder: only what is there is
    read."""
    try:
        return inside(folder, named)
    except OutsideError:
        return None


def _read(kind: type[T], path: Path) -> T | None:
    """The document in a file; None when the file is not there.

    Raises:
        InputError: it is damaged.
    """
    document = read_json(path)
    if document is None:
        return None
    try:
        return from_json(kind, _upgraded(document) if document.get("format") == 1 else document)
    except DocumentError as error:
        raise InputError(f"{path} is damaged", why=str(error)) from error


def _upgraded(document: Mapping[str, object]) -> dict[str, object]:
    """A document of profrun 0.1: warnings were sentences, and ``collector`` was what it had become."""
    found = dict(document)
    if isinstance(warnings := document.get("warnings"), list):
        found["profiler"] = document.get("collector")
        found["warnings"] = [{"code": "note", "severity": "warning", "what": text} for text in warnings]
    if isinstance(rows := document.get("preflight"), list):
        found["preflight"] = [
            {**row, "code": "note", "severity": _SEVERITY.get(row.get("level"), "info")} for row in rows
        ]
    return found
