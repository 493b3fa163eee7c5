"""The steps of a trace as samples: ``step_samples`` is given a trace and its steps.

It returns a ``StepSample`` per step and rank, and which sample launched each slice.

GPU work belongs to the step that launched it (``steps.step_index``). The time of a step is its host range
extended to the end of its GPU work and begun no earlier than the step before ended (``steps.step_spans``), so
that the times of consecutive steps add up. Without a profiler it is what the hook measured, and the steps of
the phase that is asked for count, recorded by the schedule or not (``counted_steps``).
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.compare.compared_trial import StepSample
from profrun.analysis.compare.host_ops import overlap_by_step
from profrun.analysis.compare.stats import outlier_steps
from profrun.analysis.counted_steps import Phase, chosen, counted
from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.frame import Frame, Index, Mask
from profrun.analysis.trace.intervals import union
from profrun.analysis.trace.run_steps import run_steps
from profrun.analysis.trace.steps import StepIndex, denominator, step_spans

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

Span = tuple[int, int]
_UNMEASURED: Span = (0, -1)
"""Instead of the span of a step outside of the measured window: it ends before it starts."""


@dataclass(frozen=True)
class Samples:
    """The steps of a trace as samples.

    Attributes:
        each: one per step and rank, in the order of the step index; steps that do not count are edges.
        of_slice: the sample that launched each slice: by slice id, int64, shape (slices + 1,), -1 for none.
        phase: which steps count.
    """

    each: list[StepSample]
    of_slice: Ints
    phase: Phase = "window"

    @property
    def typical(self) -> Mask:
        """Which samples are whole steps and no outliers, bool, one for each; one False without samples."""
        return np.array([not (one.edge or one.outlier) for one in self.each] or [False])

    @property
    def kept(self) -> tuple[StepSample, ...]:
        """The samples that a trial keeps: of one without a profiler those that count."""
        return tuple(one for one in self.each if self.phase == "window" or not one.edge)


def step_samples(source: Frame, index: StepIndex, trace: Trace, phase: Phase = "window") -> Samples:
    """One sample per step and rank; a process without steps has one sample if no process has steps.

    Args:
        phase: which steps of a trial without a profiler count. It is 'window' of others, of programs without
            steps, and of traces that do not hold the steps of the whole run.
    """
    sample_of = np.full(len(source) + 1, -1, dtype=np.int64)
    numbers = _counted_numbers(trace, phase) if phase != "window" else None
    if numbers is not None:
        return Samples(_with_outliers(_measured(source, index, numbers)), sample_of, phase)
    windows: Mapping[str, str] = trace.meta.get("extra", {}).get("windows") or {}
    if "active" not in windows.values():
        windows = {}
    found: list[StepSample] = []
    for process in sorted({int(row["process"]) for row in source.processes}):
        found += _samples_of(source, index, process, windows, len(found), sample_of)
    found, overlap = _with_outliers(found), overlap_by_step(source, index)
    if len(overlap):
        found = [replace(one, overlap_ns=int(ns)) for one, ns in zip(found, overlap, strict=True)]
    return Samples(found, sample_of)


def _counted_numbers(trace: Trace, phase: Phase) -> Set[int] | None:
    """Numbers of the steps that count of a trial without a profiler; None where its window does."""
    if trace.meta.get("collector") != "none" or not denominator(trace).several:
        return None
    steps = run_steps(trace)
    if steps is None:
        return None
    return frozenset(steps.numbers[chosen(counted(steps.durs, steps.window, phase))].tolist())


def _measured(source: Frame, index: StepIndex, numbers: Set[int]) -> list[StepSample]:
    """The steps of all ranks as the hook measured them; those of other numbers are edges without a time."""
    durs = source.end[index.slices] - source.ts[index.slices]
    found = []
    for process, step, dur in zip(index.process.tolist(), index.numbers.tolist(), durs.tolist(), strict=True):
        row, inside = source.processes[process], step in numbers
        time = dur if inside else _UNMEASURED[1]
        guessed = bool(row["rank_guessed"])
        found.append(
            StepSample(step, int(row["rank"]), time, dur, 0, 0, 0, 0, edge=not inside, rank_guessed=guessed)
        )
    return found


def _samples_of(
    source: Frame, index: StepIndex, process: int, windows: Mapping[str, str], first: int, sample_of: Ints
) -> list[StepSample]:
    """The samples of one process, numbered from ``first``; writes their numbers into ``sample_of``.

    Args:
        windows: step number -> window of the schedule, where one is active. Steps of other windows become
            edges: they are outside of what was measured.
    """
    mine = np.flatnonzero(index.process == process)
    starts, ends, numbers = step_spans(source, process)
    if not len(mine) and (not len(starts) or len(index.slices)):
        return []  # a helper process beside processes that have steps
    spans = {int(n): (int(s), int(e)) for n, s, e in zip(numbers, starts, ends, strict=True)}
    owner, own = index.of_gpu[source.gpu], source.process_of(source.gpu) == process
    if not len(mine):  # no steps at all: the recording is one sample
        gpu = source.gpu[own]
        sample_of[gpu] = first
        return [_sample(source, gpu, -1, 0, process, spans.get(-1))]
    launched = index.launched_by(source.gpu, mine)
    gpu = source.gpu[launched | (own & (owner < 0))]
    local = np.where(index.of_gpu[gpu] >= 0, index.of_gpu[gpu] - mine[0], -1)
    sample_of[gpu] = np.where(local >= 0, local + first, -1)
    found = []
    for place, number in enumerate(mine):
        step, work = int(index.numbers[number]), gpu[local == place]
        span = spans.get(int(number))
        if (windows.get(str(step)) or "active") != "active":
            sample_of[work] = -1
            span = _UNMEASURED
        found.append(_sample(source, work, int(index.slices[number]), step, process, span))
    return found


def _sample(
    source: Frame, gpu: Index, slice_id: int, step: int, process: int, span: Span | None
) -> StepSample:
    """One step from its GPU work, its host slice (-1 for none) and its span (None for an edge)."""
    host = int(source.end[slice_id] - source.ts[slice_id]) if slice_id >= 0 else 0
    low, high = span or (0, host)
    calls = source.launch[gpu]
    return StepSample(
        step=step,
        rank=int(source.processes[process]["rank"]),
        rank_guessed=bool(source.processes[process]["rank_guessed"]),
        time_ns=high - low,
        host_ns=host or high - low,
        gpu_ns=int(source.durs(gpu).sum()),
        busy_ns=union(source.ts[gpu], source.end[gpu]).total,
        kernels=int(source.is_kind(gpu, "kernel").sum()),
        launches=len(np.unique(calls[calls >= 0])),
        edge=span is None or high < low,
    )


def _with_outliers(samples: list[StepSample]) -> list[StepSample]:
    """The samples with their outliers marked, rank by rank."""
    found = list(samples)
    for rank in {sample.rank for sample in samples}:
        whole = [place for place, one in enumerate(samples) if one.rank == rank and not one.edge]
        for number in outlier_steps([samples[place].time_ns for place in whole]):
            found[whole[number]] = replace(found[whole[number]], outlier=True)
    return found
