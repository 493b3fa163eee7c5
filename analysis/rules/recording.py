"""What the recording itself did to the numbers: profiler work, blocking launches, hidden graphs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.rule import Hit, rule
from profrun.analysis.trace.intervals import covered, union
from profrun.analysis.trace.runtime_calls import BLOCKING_SHARE, is_graph_launch, is_launch
from profrun.contract.units import percent_text, time_text

OVERHEAD_SHARE = 0.05
BUFFER_NS = 100_000
LAUNCH_FACTOR = 10
LAUNCH_GAP_NS = 200_000


@rule(
    "profiler-overhead",
    "The profiler takes a visible part of the time",
    meaning="The profiler records work of its own (buffer flushes, instrumentation) inside the steps; host "
    "times are too long by about that much.",
    threshold="Overhead records cover over 5 % of the host time of the steps.",
    advice="Record less (no stacks, no shapes, no memory), longer warm-up, and trust the unprofiled trials "
    "for times.",
)
def profiler_overhead(ctx: Context) -> Iterator[Hit]:
    """Union of overhead slices inside the steps."""
    ids = ctx.frame.of("overhead")
    if not len(ids) or not ctx.steps:
        return
    slices = ctx.index.slices
    inside = covered(
        union(ctx.frame.ts[ids], ctx.frame.end[ids]), ctx.frame.ts[slices], ctx.frame.end[slices]
    )
    share = float(inside.sum()) / ctx.step_ns if ctx.step_ns else 0.0
    if share > OVERHEAD_SHARE:
        yield Hit(
            f"the profiler's own work covers {percent_text(share)} of the steps "
            f"({time_text(float(inside.sum()))})",
            {"overhead_ns": int(inside.sum()), "overhead_share": share, "overhead_of": "host time of steps"},
            slices=ctx.worst(ids),
        )


@rule(
    "buffer-request",
    "A launch waited for the profiler",
    severity="info",
    meaning="A long launch call or gap comes from the profiler asking for a buffer ('Activity Buffer "
    "Request') or from a module being loaded lazily at its first launch, not from the program.",
    threshold="An overhead record named 'Buffer Request', 'Buffer Flush' or 'Lazy Function Loading' of over "
    "100 us in a "
    "step; or, without such records, a launch call of over 200 us that is over 10 times the median launch.",
    advice="Leave this step out when you read times; warm up for more steps.",
)
def buffer_request(ctx: Context) -> Iterator[Hit]:
    """Overhead slices, else outlying launch calls."""
    words = ("Buffer Request", "Buffer Flush", "Lazy Function", "Runtime Triggered Module")
    ids = ctx.in_steps(ctx.named("overhead", lambda name: any(word in name for word in words)))
    ids = ids[ctx.frame.durs(ids) > BUFFER_NS]
    if len(ids):
        names = sorted({ctx.frame.text(int(one)) for one in ids})
        yield Hit(
            f"{len(ids)} times {' and '.join(names)} inside the steps, {time_text(ctx.total(ids))} in all",
            {"count": len(ids), "total_ns": ctx.total(ids)},
            slices=ctx.worst(ids),
            names=names,
        )
        return
    calls = ctx.in_steps(ctx.named("api", lambda name: is_launch(name) and not is_graph_launch(name)))
    if len(calls) < 10 or ctx.blocking:
        return
    dur = ctx.frame.durs(calls)
    limit = max(LAUNCH_GAP_NS, LAUNCH_FACTOR * float(np.median(dur)))
    long = calls[dur > limit]
    if len(long):
        yield Hit(
            f"{len(long)} launch calls take over {time_text(limit)} (median "
            f"{time_text(float(np.median(dur)))}): a buffer request of the profiler, a lazily loaded module, "
            "or a full queue",
            {"count": len(long), "total_ns": ctx.total(long), "median_ns": float(np.median(dur))},
            slices=ctx.worst(long),
        )


@rule(
    "launch-blocking",
    "Launches were blocking",
    severity="info",
    meaning="Every launch waited for its kernel (CUDA_LAUNCH_BLOCKING=1, HIP_LAUNCH_BLOCKING=1 or "
    "AMD_SERIALIZE_KERNEL): "
    "host and GPU never overlap, so times of ops are true latencies and utilization is not the program's.",
    threshold="meta.launch_blocking is true, or at least 90 % of the launch calls return after their kernel "
    "has ended.",
    advice="Use this recording to see which op a kernel's time belongs to; read step times from the other "
    "one.",
)
def launch_blocking(ctx: Context) -> Iterator[Hit]:
    """The setting where it is known, else the timing."""
    share = ctx.blocking_share
    stated = ctx.trace.meta.get("launch_blocking")
    if stated or (stated is None and share is not None and share >= BLOCKING_SHARE):
        how = "the recording says so" if stated else "no setting is recorded"
        seen = (
            f"{percent_text(share)} of the launches return after their kernel ended; "
            if share is not None
            else ""
        )
        yield Hit(
            f"launches were blocking: {seen}{how}",
            {"returned_after_kernel_share": share, "share_of": "launches", "stated": stated},
        )


@rule(
    "graph-kernels-hidden",
    "Work inside graphs was not recorded",
    severity="critical",
    meaning="Graph launches show no kernel: the GPU looks idle while it is not, and every GPU number is "
    "wrong.",
    threshold="At least one graph launch, and none has a GPU slice.",
    advice="Record with `--cuda-graph-trace=node` where the profiler has this option; update torch on ROCm "
    "7.2.0 and 7.2.1 (kernels of HIP graphs were lost).",
)
def graph_kernels_hidden(ctx: Context) -> Iterator[Hit]:
    """Graph launches without children."""
    calls = ctx.named("api", is_graph_launch)
    if not len(calls):
        return
    made = np.isin(calls, ctx.frame.launch[ctx.frame.launched])
    if not made.any():
        yield Hit(
            f"{len(calls)} graph launches, not one kernel of theirs",
            {"calls": len(calls)},
            slices=ctx.worst(calls),
        )
