"""Checks of how it was recorded: replay, blocking launches, the profiler's own work, the window of steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.trace.frame import frame
from profrun.analysis.trace.intervals import covered, union
from profrun.analysis.trace.quality import QualityFinding, above
from profrun.analysis.trace.runtime_calls import launches_blocked
from profrun.analysis.trace.steps import step_index, step_spans
from profrun.contract.units import percent_text

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

EDGE_SHARE = 0.01
"""GPU time of work from before the window from which utilization and idle time are marked."""
AHEAD_SHARE = 0.1
"""GPU time after the last step's host end from which the host times of steps are marked."""
OVERHEAD_SHARE = 0.05
"""Profiler overhead, of the host time of steps (or the span), from which host times are marked."""
NOTED_OVERHEAD = 0.001
"""Less overhead than this is not mentioned."""

_TIMELINE = (
    "devices.utilization",
    "devices.est_sm_efficiency",
    "devices.busy_ns",
    "devices.idle_ns",
    "devices.span_ns",
    "steps",
    "idle",
    "queues",
    "launches",
    "collectives",
)
"""Numbers that need a timeline."""


def replayed(trace: Trace) -> Iterator[QualityFinding]:
    """No timeline: kernels ran one by one, or several times, or their durations are means."""
    if not trace.meta.get("replayed"):
        return
    count = len(frame(trace).of("kernel"))
    yield QualityFinding(
        code="replayed",
        severity="critical",
        what="there is no timeline, so idle time, utilization, overlap and steps mean nothing",
        why="kernels ran one by one, were replayed to read counters, or are known as means only",
        affects=_TIMELINE,
        count=count,
    )
    yield QualityFinding(
        code="replayed_durations",
        severity="warning",
        what="kernel durations are means, or those under replay (clocks, caches and neighbours differ)",
        fix="do not compare them with those of a timeline",
        affects=("kernels", "categories"),
        count=count,
    )


def no_launch_order(trace: Trace) -> Iterator[QualityFinding]:
    """The reader could not tell in which order kernels ran."""
    count = trace.sql("SELECT sum(count)::BIGINT FROM issues WHERE code = 'no_launch_order'").scalar()
    if count:
        yield QualityFinding(
            code="no_launch_order",
            severity="critical",
            what="kernels do not lie in the order in which they ran: what followed what is not known",
            affects=("kernels.order",),
            count=count,
        )


def window_edge(trace: Trace) -> Iterator[QualityFinding]:
    """GPU work from before the window runs during the steps."""
    source = frame(trace)
    index = step_index(source)
    for process in np.unique(index.process):
        slices = index.slices[index.process == process]
        gpu = source.gpu[source.process_of(source.gpu) == process]
        start, end = int(source.ts[slices].min()), int(source.end[slices].max())
        edge = gpu[(source.end[gpu] > start) & (source.ts[gpu] < end) & (index.of_gpu[gpu] < 0)]
        if not len(edge):
            continue
        share = float(source.durs(edge).sum() / max(1, source.durs(gpu).sum()))
        yield QualityFinding(
            code="window_edge",
            severity=above(share, EDGE_SHARE),
            what=f"{len(edge)} GPU slices that no step launched run during the steps "
            f"({percent_text(share)} of GPU time)",
            why="they are work from before the window, which counts as busy time but belongs to no step",
            affects=("devices.utilization", "steps.idle_ns"),
            count=len(edge),
            share=share,
            share_of="GPU time",
        )


def window_end(trace: Trace) -> Iterator[QualityFinding]:
    """Steps that were cut, and steps whose work runs past their end."""
    source = frame(trace)
    index = step_index(source)
    for process in np.unique(index.process):
        mine = np.flatnonzero(index.process == process)
        cut = len(mine) - len(step_spans(source, int(process))[0])
        if cut:
            yield QualityFinding(
                code="tail_steps",
                severity="info",
                what=f"the last {cut} of {len(mine)} steps launched less GPU work: they are not in the "
                "window of the GPU numbers",
                affects=(
                    "devices.utilization",
                    "devices.est_sm_efficiency",
                    "devices.est_achieved_occupancy",
                ),
                count=cut,
                share=cut / len(mine),
                share_of="steps",
            )
        last = int(source.end[index.slices[mine]].max())
        gpu = source.gpu[index.launched_by(source.gpu, mine)]
        late = int(np.maximum(source.end[gpu] - np.maximum(source.ts[gpu], last), 0).sum())
        total = int(source.durs(gpu).sum())
        if total and late / total > AHEAD_SHARE:
            yield QualityFinding(
                code="host_ahead",
                severity="warning",
                what=f"{percent_text(late / total)} of the steps' GPU time runs after the last step's end on "
                "the host",
                why="the host is ahead of the GPU, so a step's host time is not the time of its work",
                affects=("steps.dur_ns", "steps.idle_ns"),
                count=len(mine),
                share=late / total,
                share_of="GPU time of steps",
            )


def no_steps(trace: Trace) -> Iterator[QualityFinding]:
    """No step ranges."""
    source = frame(trace)
    if not len(step_index(source).slices) and len(source):
        yield QualityFinding(
            code="no_steps",
            severity="info",
            what="no step ranges: ratios are of the whole recorded host work, and nothing is per step",
            affects=("steps", "devices.utilization"),
        )


def launch_blocking(trace: Trace) -> Iterator[QualityFinding]:
    """Launches waited for their kernels: by the recording's own statement, else by their timing."""
    if launches_blocked(trace):
        how = "" if trace.meta.get("launch_blocking") else " (told from their timing)"
        yield QualityFinding(
            code="launch_blocking",
            severity="warning",
            what=f"launches were blocking{how}",
            why="every kernel is waited for, so overlap, queues and utilization are not the program's own",
            affects=("devices.utilization", "idle", "queues", "launches", "steps.idle_ns"),
            count=1,
        )


def profiler_overhead(trace: Trace) -> Iterator[QualityFinding]:
    """The profiler's own work, of the host time of the steps or of the whole recording."""
    source = frame(trace)
    ids = source.of("overhead")
    if not len(ids):
        return
    overhead = union(source.ts[ids], source.end[ids])
    steps = step_index(source).slices
    if len(steps):
        starts, ends = source.ts[steps], source.end[steps]
        part, whole = int(covered(overhead, starts, ends).sum()), int((ends - starts).sum())
        share_of = "host time of steps"
    else:
        low, high = source.extent
        part, whole, share_of = overhead.total, high - low, "span"
    share = part / whole if whole else 0.0
    if share >= NOTED_OVERHEAD:
        yield QualityFinding(
            code="profiler_overhead",
            severity=above(share, OVERHEAD_SHARE),
            what=f"the profiler's own work takes {percent_text(share)} of the {share_of}",
            affects=("steps.dur_ns", "steps.idle_ns"),
            count=len(ids),
            share=share,
            share_of=share_of,
        )


def reader_issues(trace: Trace) -> Iterator[QualityFinding]:
    """What the reader repaired, clipped, guessed or left out."""
    rows = trace.sql("SELECT code, count, message FROM issues ORDER BY count DESC, code").rows
    for code, count, message in rows:
        yield QualityFinding(code=f"reader:{code}", severity="info", what=message, count=int(count))
