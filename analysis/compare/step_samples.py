"""The steps of a trace as samples: ``step_samples`` is given a trace and its steps.

It returns a ``StepSample`` per step and rank, and which sample launched each slice.

GPU work belongs to the step that launched it (``steps.step_index``). The time of a step is its host range
extended to the end of its GPU work and begun no earlier than the step before ended (``steps.step_spans``), so
that the times of consecutive steps add up. Without a profiler it is what the hook measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.compare.compared_trial import StepSample
from profrun.analysis.compare.host_ops import overlap_by_step
from profrun.analysis.compare.stats import outlier_steps
from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.frame import Frame, Index
from profrun.analysis.trace.intervals import union
from profrun.analysis.trace.steps import StepIndex, step_spans

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

Span = tuple[int, int]
_UNMEASURED: Span = (0, -1)
"""Instead of the span of a step outside of the measured window: it ends before it starts."""


def step_samples(source: Frame, index: StepIndex, trace: Trace) -> tuple[list[StepSample], Ints]:
    """One sample per step and rank; a process without steps has one sample if no process has steps.

    Returns:
        The samples of all ranks, and the sample that launched each slice: by slice id, int64, shape
        (slices + 1,), -1 for none.
    """
    windows: Mapping[str, str] = trace.meta.get("extra", {}).get("windows") or {}
    if "active" not in windows.values():
        windows = {}
    found: list[StepSample] = []
    sample_of = np.full(len(source) + 1, -1, dtype=np.int64)
    for process in sorted({int(row["process"]) for row in source.processes}):
        found += _samples_of(source, index, process, windows, len(found), sample_of)
    return _with_outliers(found, overlap_by_step(source, index)), sample_of


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


def _with_outliers(samples: list[StepSample], overlap: Ints) -> list[StepSample]:
    """The samples with their overlap; outliers are marked rank by rank.

    Args:
        overlap: ns of each step, shape (steps,); empty without steps.
    """
    outliers: set[int] = set()
    for rank in {sample.rank for sample in samples}:
        whole = [place for place, one in enumerate(samples) if one.rank == rank and not one.edge]
        outliers |= {whole[number] for number in outlier_steps([samples[place].time_ns for place in whole])}
    return [
        replace(one, outlier=place in outliers, overlap_ns=int(overlap[place]) if len(overlap) else 0)
        for place, one in enumerate(samples)
    ]
