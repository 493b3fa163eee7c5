"""The two sides of a comparison, from names to trials: traces, trials and points of runs, baseline files."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from profrun.contract.paths import TrialPaths
from profrun.errors import InconclusiveError, InputError, UsageError
from profrun.runner.mapped import mapped
from profrun.runner.progress import counted, no_progress
from profrun.runner.references import labelled
from profrun.runner.twins import phase_beside
from profrun.store.documents import provenance_beside, read_exit
from profrun.store.files import read_json

if TYPE_CHECKING:
    from profrun.analysis.compare import ComparedTrial
    from profrun.analysis.compare.model import By
    from profrun.analysis.counted_steps import Phase
    from profrun.analysis.trace.addresses import Addresses
    from profrun.collectors.reading import Progress
    from profrun.contract.finding import Finding
    from profrun.traces.trace import Trace

BASELINE_FORMAT = 1
"""Format number of baseline files."""


@dataclass(frozen=True)
class Sides:
    """(label, trace) of each trial of each side; ``a`` is the base."""

    a: tuple[tuple[str, Path], ...]
    b: tuple[tuple[str, Path], ...]


def find_sides(a: Sequence[str], b: Sequence[str], root: Path) -> Sides:
    """The traces of both sides.

    Args:
        a, b: what the words of each side name; see ``expand``.
        root: folder of the runs.

    Raises:
        UsageError: a trace is on both sides or named twice, or nothing is there.
        InputError: a run or trial has no trace.
    """
    sides = Sides(tuple(expand(a, root)), tuple(expand(b, root)))
    both = {path.resolve() for _, path in sides.a} & {path.resolve() for _, path in sides.b}
    if both:
        raise UsageError(f"{min(both)} is on both sides", fix="compare it with another trace")
    return sides


def expand(references: Sequence[str], root: Path) -> list[tuple[str, Path]]:
    """(label, trace or baseline file) of each thing that the words of one side name.

    Raises:
        UsageError: nothing is there, or a thing is named twice.
        InputError: a run or trial has no trace.
    """
    found: dict[Path, tuple[str, Path]] = {}
    for reference in references:
        named = [(Path(reference).stem, Path(reference))] if Path(reference).is_file() else None
        for label, path in named or labelled(reference, root):
            if path.resolve() in found:
                raise UsageError(f"{path} is named twice on one side", fix="name each trial once")
            found[path.resolve()] = (label, path)
    return list(found.values())


def read_sides(
    sides: Sides,
    phase: Phase | None = None,
    opened: Mapping[Path, Trace] | None = None,
    progress: Progress = no_progress,
    by: By = "kernel",
) -> tuple[list[ComparedTrial], list[ComparedTrial]]:
    """The trials of both sides, their steps of the same phase.

    Args:
        phase: which steps of trials without a profiler count. None: the steady ones, with two exceptions. A
            baseline that keeps other steps decides for both sides (baselines of profrun 0.2 and older keep
            those of the schedule's window). Beside profiled trials the steps of the phase that these recorded
            count.
        opened: see ``read_trials``.
        progress: called with the number of traces that were begun, and how many there are.
        by: what rows of the comparison are wanted: by line needs a mapping of each profiled trial.

    Raises:
        InconclusiveError: rows by line are wanted, and a profiled trial has no mapping beside it.
    """
    another = counted(progress, len(sides.a) + len(sides.b))
    wanted = phase or "steady"
    a, b = (read_trials(side, opened, phase=wanted, another=another, by=by) for side in (sides.a, sides.b))
    other = None if phase else _other_phase(a, b, sides)
    if other is None:
        return a, b
    a, b = (
        read_trials(side, opened, phase=other, by=by)
        if any(one.phase == "steady" for one in found)
        else found
        for side, found in ((sides.a, a), (sides.b, b))
    )
    return a, b


def _other_phase(a: Sequence[ComparedTrial], b: Sequence[ComparedTrial], sides: Sides) -> Phase | None:
    """The phase to read instead of the steady one, because one side has no steps of it."""
    left, right = ([one for one in side if not one.conditions.profiled] for side in (a, b))
    if bool(left) != bool(right):
        beside = phase_beside(map(_findings, (path for _, path in (*sides.a, *sides.b))))
        return None if beside == "steady" else beside
    phases = {one.phase for one in (*left, *right)}
    return next(iter(phases - {"steady"}), None) if "steady" in phases else None


def _findings(trace: Path) -> tuple[Finding, ...]:
    """The findings of the trial that a trace is of; none for a trace of no trial."""
    found = read_exit(TrialPaths(trace.parent)) if trace.name == "trace" else None
    return found.warnings if found is not None else ()


def read_trials(
    side: Sequence[tuple[str, Path]],
    opened: Mapping[Path, Trace] | None = None,
    *,
    phase: Phase = "steady",
    another: Callable[[], None] = lambda: None,
    by: By = "kernel",
) -> list[ComparedTrial]:
    """Each trace of a side as a comparison takes it, with the provenance beside it where there is one.

    Args:
        side: (label, trace or baseline file) of each trial.
        opened: traces that are open already, by resolved path; they stay open.
        phase: which steps of trials without a profiler count; a baseline has those that it keeps.
        another: called before each of them is read.
        by: what rows of a comparison are wanted; see ``read_sides``.
    """
    from profrun.analysis.compare import read_trial
    from profrun.traces.trace import Trace

    trials = []
    for label, path in side:
        another()
        if path.is_file():
            trials += read_baseline(path)
            continue
        found = (opened or {}).get(path.resolve())
        with contextlib.nullcontext(found) if found else Trace(path) as trace:
            trials.append(
                read_trial(
                    trace,
                    label=label,
                    provenance=provenance_beside(path),
                    phase=phase,
                    mapped=_mapped(trace, by),
                )
            )
    return trials


def _mapped(trace: Trace, by: By) -> Addresses | None:
    """The addresses of the GPU work of a trace where the rows are by line or module; None for no GPU work.

    Raises:
        InconclusiveError: rows are by line, and no mapping lies beside it.
    """
    from profrun.analysis.trace.frame import frame

    if by not in ("line", "module") or not len(frame(trace).gpu):
        return None
    with contextlib.nullcontext() if by == "line" else contextlib.suppress(InconclusiveError):
        return mapped(trace)
    return None


def read_baseline(path: Path) -> list[ComparedTrial]:
    """The trials that ``profrun baseline save`` kept.

    Raises:
        InputError: the file is no baseline, or of a format this profrun does not read.
    """
    from profrun.analysis.compare import trial_from_json

    fix = "make it with `profrun baseline save`; a profiler's file needs `profrun normalize` first"
    try:
        document = read_json(path) or {}
    except InputError as error:
        raise InputError(f"{path} is no baseline", why="it is no JSON object", fix=fix) from error
    if document.get("profrun_baseline") != BASELINE_FORMAT:
        raise InputError(f"{path} is no baseline of format {BASELINE_FORMAT}", fix=fix)
    try:
        return [trial_from_json(trial) for trial in document["trials"]]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is a damaged baseline", why=str(error), fix=fix) from error
