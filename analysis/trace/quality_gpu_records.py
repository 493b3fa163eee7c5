"""Checks of the GPU records: are they there, and is it known which call, op or graph launched them?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.trace.clocks import recording
from profrun.analysis.trace.frame import Frame, Index, Mask, frame
from profrun.analysis.trace.quality import OP_WORK, STEP_WORK, QualityFinding, above
from profrun.analysis.trace.runtime_calls import is_graph_launch, is_launch
from profrun.contract.units import percent_text, time_text
from profrun.traces.causality.order import overlaps

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

UNATTRIBUTED_SHARE = 0.05
"""GPU time without a known launch or op from which per-step and per-op GPU time is marked."""
MOST_UNATTRIBUTED = 0.5
"""GPU time without a known launch from which per-step and per-op GPU time is withheld."""
EMPTY_LAUNCH_SHARE = 0.05
"""Launch calls without GPU work from which the GPU work of steps and ops is marked."""
GRAPH_SHARE = 0.2
"""GPU time launched by graphs from which per-op GPU time is marked."""
LOST_RUN = 5
"""Fewer launches one after the other that have no GPU slice are no stretch."""
OVERLAP_SHARE = 0.01
"""Time that sums of GPU time count twice from which they are marked."""


def no_gpu_records(trace: Trace) -> Iterator[QualityFinding]:
    """Launch calls are recorded, but no GPU work."""
    source = frame(trace)
    calls = int(source.named(source.of("api"), is_launch).sum())
    if len(source.gpu) or not calls:
        return
    yield QualityFinding(
        code="no_gpu_records",
        severity="critical",
        what=f"{calls} launch calls but no GPU slice",
        why="the profiler got no GPU records (another profiler was attached, or the window closed before "
        "they were delivered)",
        affects=("devices", "kernels", *STEP_WORK, *OP_WORK),
        count=calls,
        share=1.0,
        share_of="launch calls",
    )


def _ran(source: Frame) -> tuple[Index, Mask]:
    """Launch calls that must have run something, by start; and which of them have a GPU slice.

    A call that is recorded into a graph runs nothing.
    """
    api = source.of("api")
    calls = api[source.named(api, is_launch)]
    calls = calls[np.argsort(source.ts[calls], kind="stable")]
    begins = api[source.named(api, lambda name: "StreamBeginCapture" in name)]
    ends = api[source.named(api, lambda name: "StreamEndCapture" in name)]
    if len(begins) and len(ends):
        captured = np.zeros(len(calls), dtype=bool)
        for process in np.unique(source.process_of(begins)):
            opened = np.sort(source.ts[begins[source.process_of(begins) == process]])
            closed = np.sort(source.ts[ends[source.process_of(ends) == process]])
            at = source.ts[calls]
            open_ = np.searchsorted(opened, at, side="right") - np.searchsorted(closed, at, side="right")
            captured |= (open_ > 0) & (source.process_of(calls) == process)
        calls = calls[~captured]
    made = np.zeros(len(source), dtype=bool)
    made[source.launch[source.launched]] = True
    return calls, made[calls]


def launches_without_kernels(trace: Trace) -> Iterator[QualityFinding]:
    """Launch calls of which no GPU slice is recorded."""
    source = frame(trace)
    calls, made = _ran(source)
    empty = int((~made).sum())
    if not empty or not len(source.gpu):
        return
    share = empty / len(calls)
    yield QualityFinding(
        code="launches_without_kernels",
        severity=above(share, EMPTY_LAUNCH_SHARE),
        what=f"{empty} of {len(calls)} launch calls have no GPU slice ({percent_text(share)})",
        why="their kernels ran after the window closed, or the profiler lost them",
        affects=(*STEP_WORK, *OP_WORK),
        count=empty,
        share=share,
        share_of="launch calls",
    )


def lost_gpu_records(trace: Trace) -> Iterator[QualityFinding]:
    """A stretch of launch calls without GPU slices between calls that have some: records were lost there."""
    source = frame(trace)
    calls, made = _ran(source)
    owner = source.process_of(calls)
    for process in np.unique(owner):
        mine = owner == process
        own, has = calls[mine], made[mine]
        if not has.any():
            continue
        first, last = np.flatnonzero(has)[[0, -1]]
        own, has = own[first : last + 1], has[first : last + 1]
        if has.all():
            continue
        start, length = _longest_run(~has)
        if length < max(LOST_RUN, 1.5 * _longest_by_chance(~has) + 2):
            continue
        share, end = length / int(mine.sum()), start + length
        yield QualityFinding(
            code="lost_gpu_records",
            severity="critical" if share > EMPTY_LAUNCH_SHARE else "warning",
            what=f"{length} successive launch calls have no GPU slice ({percent_text(share)} of all) "
            f"from {_since(source, source.ts[own[start]])} to {_since(source, source.end[own[end - 1]])} of "
            "the recording; calls before and after them have",
            why="the profiler lost the records of that time",
            affects=("devices", "kernels", "categories", "idle", "collectives", *STEP_WORK, *OP_WORK),
            count=length,
            share=share,
            share_of="launch calls",
        )


def _since(source: Frame, ns: int) -> str:
    return time_text(int(ns) - source.extent[0])


def _longest_run(mask: Mask) -> tuple[int, int]:
    """(first place, length) of the longest run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False]))))
    starts, lengths = edges[::2], edges[1::2] - edges[::2]
    longest = int(np.argmax(lengths))
    return int(starts[longest]), int(lengths[longest])


def _longest_by_chance(mask: Mask) -> float:
    """How long the longest run of True is when they are spread by chance: log(n) / log(1 / share)."""
    return float(np.log(len(mask)) / -np.log(mask.mean()))


def unattributed_gpu_time(trace: Trace) -> Iterator[QualityFinding]:
    """GPU work whose launching call is not recorded."""
    source = frame(trace)
    stray = source.gpu[source.launch[source.gpu] < 0]
    if not len(stray):
        return
    total = int(source.durs(source.gpu).sum())
    share = int(source.durs(stray).sum()) / total if total else 0.0
    yield QualityFinding(
        code="unattributed_gpu_time",
        severity="critical" if share > MOST_UNATTRIBUTED else above(share, UNATTRIBUTED_SHARE),
        what=f"{len(stray)} GPU slices with {percent_text(share)} of GPU time have no launching call in the "
        "trace: they are in no step, op or range",
        affects=(*STEP_WORK, *OP_WORK, "launches", "queues", "idle"),
        count=len(stray),
        share=share,
        share_of="GPU time",
    )


def gpu_time_outside_ops(trace: Trace) -> Iterator[QualityFinding]:
    """GPU work that no op launched although ops are recorded: a kernel called straight from Python."""
    source = frame(trace)
    launched = source.launched
    if not len(source.of("op")) or not len(launched):
        return
    free = launched[source.launching_op(launched) < 0]
    if not len(free):
        return
    total = int(source.durs(source.gpu).sum())
    share = int(source.durs(free).sum()) / total if total else 0.0
    yield QualityFinding(
        code="gpu_time_outside_ops",
        severity=above(share, UNATTRIBUTED_SHARE),
        what=f"{len(free)} GPU slices with {percent_text(share)} of GPU time were launched by no op: they "
        "are in no row of the op table, but under their ranges and steps",
        affects=("ops.self_device_ns", "ops.device_ns"),
        count=len(free),
        share=share,
        share_of="GPU time",
    )


def graphs(trace: Trace) -> Iterator[QualityFinding]:
    """Graph launches: their kernels are hidden, or attributed to the launch as a whole."""
    source = frame(trace)
    calls = int(source.named(source.of("api"), is_graph_launch).sum())
    if not calls:
        return
    mine = source.launched[source.named(source.launch[source.launched], is_graph_launch)]
    if not len(mine):
        yield QualityFinding(
            code="graph_kernels_hidden",
            severity="critical",
            what=f"{calls} graph launches show no kernel",
            why="work inside graphs is hidden",
            fix="record with `--cuda-graph-trace=node` where the profiler has this option, or update it",
            affects=(
                "devices.utilization",
                "devices.est_sm_efficiency",
                "kernels",
                "idle",
                *STEP_WORK,
                *OP_WORK,
            ),
            count=calls,
        )
        return
    total = int(source.durs(source.gpu).sum())
    share = int(source.durs(mine).sum()) / total if total else 0.0
    yield QualityFinding(
        code="graph_launches",
        severity=above(share, GRAPH_SHARE),
        what=f"{calls} graph launches hold {len(mine)} GPU slices ({percent_text(share)} of GPU time)",
        why="inside a graph no op launches anything, so its GPU time is on the launch as a whole",
        affects=(*OP_WORK, "launches", "queues"),
        count=calls,
        share=share,
        share_of="GPU time",
    )


def stream_overlap(trace: Trace) -> Iterator[QualityFinding]:
    """GPU slices that start before the previous one on their stream ends, where something explains it.

    Overlaps that nothing explains are ``gpu_work_overlaps`` (``quality_clocks``).
    """
    found = overlaps(recording(trace))
    causes = {
        "the tool's rounding": found.rounding,
        "branches of one graph": found.branches,
        "programmatic dependent launch": found.early,
    }
    count = sum(map(len, causes.values()))
    if not count:
        return
    source = frame(trace)
    twice = sum(found.length(places) for places in causes.values())
    share = twice / max(int(source.durs(source.gpu).sum()), 1)
    yield QualityFinding(
        code="stream_overlap",
        severity=above(share, OVERLAP_SHARE),
        what=f"{count} GPU slices start before the one before them on their stream ends, {time_text(twice)} "
        "in all: unions count this time once, sums count it twice",
        why="; ".join(f"{cause}: {len(many)}" for cause, many in causes.items() if len(many)),
        affects=("kernels.total_ns",),
        count=count,
        share=share,
        share_of="GPU time",
    )
