"""Checks of the GPU records: are they there, and is it known which call, op or graph launched them?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.trace.clocks import recording
from profrun.analysis.trace.frame import frame
from profrun.analysis.trace.quality import OP_WORK, STEP_WORK, QualityFinding, above
from profrun.analysis.trace.runtime_calls import is_graph_launch, is_launch
from profrun.contract.units import percent_text
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
OVERLAP_SHARE = 0.01
"""GPU slices that overlap on their stream from which sums of kernel time are marked."""


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


def launches_without_kernels(trace: Trace) -> Iterator[QualityFinding]:
    """Launch calls of which no GPU slice is recorded."""
    source = frame(trace)
    api = source.of("api")
    calls = api[source.named(api, is_launch)]
    if not len(calls) or not len(source.gpu):
        return
    made = np.zeros(len(source), dtype=bool)
    made[source.launch[source.launched]] = True
    empty = int((~made[calls]).sum())
    if not empty:
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
        "the tool's rounding": len(found.rounding),
        "branches of one graph": len(found.branches),
        "programmatic dependent launch": len(found.early),
    }
    count = sum(causes.values())
    if not count:
        return
    share = count / len(frame(trace).gpu)
    yield QualityFinding(
        code="stream_overlap",
        severity=above(share, OVERLAP_SHARE),
        what=f"{count} GPU slices start before the previous one on the same stream ends: unions count this "
        "time once, sums count it twice",
        why="; ".join(f"{cause}: {many}" for cause, many in causes.items() if many),
        affects=("kernels.total_ns",),
        count=count,
        share=share,
        share_of="GPU slices",
    )
