"""A GPU without work: the host is late, kernels are too short, or nobody knows why."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.finding import FindingRow
from profrun.analysis.rules.host_causes import wait_slices
from profrun.analysis.rules.idle_time import DeviceIdle, waits_of_host
from profrun.analysis.rules.late_rank import host_bound_ns
from profrun.analysis.rules.quiet_host import caused, quiet_host
from profrun.analysis.rules.rule import Hit, rule
from profrun.analysis.rules.step_cost import WARNING_SHARE
from profrun.analysis.rules.step_text import set_up, span_text, step_text, unsure
from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.frame import Index
from profrun.analysis.trace.intervals import Intervals, merge, subtract
from profrun.analysis.trace.roles import on_device
from profrun.analysis.trace.runtime_calls import is_graph_launch
from profrun.contract.units import counted, percent_text, time_text
from profrun.traces.memo import memoised

LOW_BUSY = 0.5
HOST_SHARE = 0.5
HIGH_BUSY = 0.6
TINY_NS = 10_000
TINY_SHARE = 0.5
TINY_PER_STEP = 10
ROWS = 8


@rule(
    "overhead-bound",
    "The host cannot keep the GPU busy",
    experiments=("compile=reduce-overhead", "cuda-graphs", "compile=default", "fused-optimizer"),
    remedy="larger batches, torch.compile, CUDA graphs",
    meaning="The GPU waits for work because Python, the framework and launches take longer than the kernels "
    "that they enqueue.",
    threshold="Over half of the GPU's idle time waits for the host (the next piece was enqueued only after "
    "the GPU had run dry), and at least 5 % of the step is such idle time without a cause of its own "
    "(loading data, compiling, allocating, code outside of the framework, waiting for the GPU, the "
    "profiler's work). Where the step time without a profiler is not known, GPU work must also cover under "
    "50 % of the steps. The finding is then for information only if a host that is three times faster could "
    "keep the GPU busy, because a profiler made hosts up to 2.4 times slower. Not on recordings with "
    "blocking launches; for information only where no steps are recorded.",
    advice="Do more work per launch: larger batches, torch.compile, CUDA/HIP graphs "
    "(mode='reduce-overhead'), fused optimizers; move Python work out of the step.",
    bound="The idle time of the GPU that waits for the host and has no cause of its own, of several ranks "
    "that of the rank with most of it, and at most the part of the step in which the GPU does not work.",
    relies_on=("devices.utilization", "idle"),
)
def overhead_bound(ctx: Context) -> Iterator[Hit]:
    """Idle time of the GPU that is the host's and nothing else's."""
    share, cost = ctx.gpu_busy_share, ctx.cost
    if share is None or ctx.blocking or ctx.unseen or (cost.basis != "unprofiled" and share >= LOW_BUSY):
        return
    idle = ctx.idle_ns - ctx.set_up_ns
    rest = [(one, own_wait(ctx, one)) for one in ctx.waiting]
    alone = ctx.per_device_ns(sum(part.total for _, part in rest))
    lost = host_bound_ns(ctx, [(one, part.total) for one, part in rest])
    gain = cost.host_gain(lost)
    if idle <= 0 or ctx.host_wait_ns / idle <= HOST_SHARE or gain.share < WARNING_SHARE:
        return
    whole = host_bound_ns(ctx, [(one, one.host.total) for one in ctx.waiting])
    other = whole - lost
    beside = f"; {time_text(other)} more have causes of their own" if other > WARNING_SHARE * idle else ""
    yield Hit(
        f"{step_text(ctx)} for {time_text(cost.work_ns)} of GPU work: the GPU works {percent_text(share)} of "
        f"it, and waits for the host for {time_text(min(lost, cost.idle_ns))}{beside}{set_up(ctx)}",
        {
            "gpu_busy_share": share,
            "gpu_busy_of": span_text(ctx),
            ("step_ns" if ctx.steps else "recording_ns"): cost.step_ns,
            ("gpu_ns_per_step" if ctx.steps else "gpu_ns"): cost.work_ns,
            **({"launches_per_step": _launches(ctx)} if ctx.steps else {}),
            "host_wait_ns": whole,
            "own_wait_ns": lost,
            "idle_ns": idle,
            **_unprofiled(ctx),
        },
        slices=[one.slice for one in ctx.steps[:3]],
        gain=gain,
        idle_ns=alone,
        rows=_waited_for(ctx, rest),
        fix=ctx.program.launch_advice,
        remedy=ctx.program.launch_remedy,
        extent=f"{counted(round(_launches(ctx)), 'launch')} {ctx.rate}" if ctx.steps else "",
        at_most=unsure(ctx),
    )


@memoised
def own_wait(ctx: Context, one: DeviceIdle) -> Intervals:
    """When a GPU waits for the host, and the host does nothing that is a cause of its own."""
    return subtract(one.host, merge(caused(ctx, one), quiet_host(ctx, one)))


def _launches(ctx: Context) -> float:
    return sum(one.launches for one in ctx.steps) / ctx.step_count


def _unprofiled(ctx: Context) -> dict[str, object]:
    """Both step times, where the one without a profiler is known."""
    known = ctx.cost.unprofiled if ctx.steps else None
    if known is None:
        return {}
    return {"profiled_step_ns": ctx.cost.recorded_ns, "unprofiled_trials": known.trials}


def _waited_for(ctx: Context, rest: list[tuple[DeviceIdle, Intervals]]) -> list[FindingRow]:
    """For what work the GPU waited: the op that launched it, most time first."""
    source = ctx.frame
    waits = [waits_of_host(one, part) for one, part in rest]
    time = np.concatenate([one[0] for one in waits])
    work = np.concatenate([one[1] for one in waits]).astype(np.intp)
    work, time = work[time > 0], time[time > 0]
    owner = source.launching_op(work)
    total: dict[str, list[int]] = {}
    for place, op in enumerate(owner):
        name = source.text(int(op)) if op >= 0 else source.text(int(work[place]))
        one = total.setdefault(name, [0, 0])
        one[0] += 1
        one[1] += int(time[place])
    ranked = sorted(total.items(), key=lambda item: (-item[1][1], item[0]))
    return [FindingRow(name, calls, ns, "the GPU waited for it") for name, (calls, ns) in ranked[:ROWS]]


@rule(
    "low-utilization",
    "The GPU is idle most of the time",
    experiments=("compile=reduce-overhead", "cuda-graphs", "compile=default", "fused-optimizer"),
    remedy="see what the host does while the GPU is idle",
    meaning="Kernels, copies and fills together cover less than half of the steps, and no other finding "
    "says why.",
    threshold="Kernels, copies and fills together cover under 50 % of the step. It is a finding of its own "
    "only where no other finding accounts for half of the idle time. Not where the host itself waits for "
    "the GPU during most of the idle time, because work of the GPU is missing then. Not on recordings with "
    "blocking launches; for information only where no steps are recorded.",
    advice="Look at the timeline for what the host does while the GPU has nothing to run.",
    bound="The idle time of the GPU.",
    relies_on=("devices.utilization",),
)
def low_utilization(ctx: Context) -> Iterator[Hit]:
    """Devices that are busy for under half of the step."""
    if ctx.blocking or ctx.unseen or not ctx.waiting or not ctx.cost.step_ns:
        return
    scale = ctx.cost.recorded_ns / ctx.cost.step_ns
    low = [
        one for one in ctx.waiting if scale * one.busy.total < LOW_BUSY * (one.span.total - one.set_up.total)
    ]
    if not low:
        return
    metrics = {row.device: row for row in ctx.devices}
    names = sorted({metrics[one.device].name for one in low} - {"unknown"})
    share = scale * sum(one.busy.total for one in low) / max(1, sum(one.span.total for one in low))
    idle = ctx.idle_ns - ctx.set_up_ns
    if 2 * ctx.idle_inside(wait_slices(ctx)) > idle:
        return  # the host waits for a GPU that seems idle: its work is not recorded
    some = f" ({len(low)} of {len(ctx.waiting)} GPUs)" if len(ctx.waiting) > 1 else ""
    yield Hit(
        f"{' and '.join(names) or 'the GPU'}{some} works {percent_text(share)} of {span_text(ctx)}, "
        f"{time_text(ctx.cost.step_ns)}{set_up(ctx)}",
        {
            "busy_share": share,
            "busy_of": span_text(ctx),
            "step_ns": ctx.cost.step_ns,
            "utilization": metrics[low[0].device].utilization,
            "utilization_of": metrics[low[0].device].utilization_of,
            "window_ns": metrics[low[0].device].window_ns,
        },
        gain=ctx.cost.host_gain(idle),
        idle_ns=idle,
        rows=[_device_row(ctx, one) for one in low] if len(ctx.waiting) > 1 else (),
        at_most=unsure(ctx),
    )


def _device_row(ctx: Context, one: DeviceIdle) -> FindingRow:
    share = one.busy.total / one.span.total if one.span.total else None
    return FindingRow(
        ctx.labels.gpus[one.device],
        None,
        one.busy.total,
        f"busy {percent_text(share)} of {ctx.denominator.its}",
    )


@rule(
    "set-up",
    "Set-up is part of the run",
    severity="info",
    meaning="A program without steps is recorded with its set-up: the GPU waits until the program has loaded "
    "what it needs, and until what runs for the first time is compiled and loaded. The causes of an idle GPU "
    "that the other findings tell leave this time out.",
    threshold="Only for a run without steps: a GPU is idle for at least 5 % of it before its first work, "
    "before the first execution of a kernel or of a kind of copy, or after its last work.",
    advice="Run more iterations, so that set-up matters less, or mark them with `profrun.step()`: numbers "
    "are then per step, and set-up is in none of them.",
    relies_on=("devices.utilization", "idle"),
)
def set_up_of_run(ctx: Context) -> Iterator[Hit]:
    """Idle time before what runs for the first time, and after the last work."""
    ns = ctx.set_up_ns
    share = ns / ctx.cost.recorded_ns if ctx.cost.recorded_ns else 0.0
    if share < WARNING_SHARE:
        return
    rows = _set_up_rows(ctx)
    longest = f"; most of it {rows[0].name}, {time_text(rows[0].total_ns)}" if len(rows) > 1 else ""
    yield Hit(
        f"the GPU is idle for {time_text(ns)} while the program sets up, {percent_text(share)} of "
        f"{ctx.denominator.recorded}{longest}",
        {"set_up_ns": ns, "share": share, "share_of": ctx.denominator.recorded},
        idle_ns=ns,
        rows=rows if len(rows) > 1 else (),
        extent=f"{time_text(ns)} {ctx.per}",
    )


def _set_up_rows(ctx: Context) -> list[FindingRow]:
    """Before and after what work the GPUs wait, most time first; a sum over all GPUs."""
    source = ctx.frame
    total: dict[str, int] = {}
    for one in ctx.waiting:
        ids = on_device(source, source.gpu_by_time, one.device)
        first, last = int(source.ts[ids[0]]), int(source.end[ids].max())
        for start, end in zip(one.set_up.starts.tolist(), one.set_up.ends.tolist(), strict=True):
            work = ids[int(np.searchsorted(source.ts[ids], end))] if end < last else -1
            name = f"before the first {source.text(int(work))}" if work >= 0 else "after the last GPU work"
            name = "before the first GPU work" if end <= first else name
            total[name] = total.get(name, 0) + end - start
    ranked = sorted(total.items(), key=lambda item: (-item[1], item[0]))
    return [FindingRow(name, None, ns) for name, ns in ranked[:ROWS]]


@rule(
    "tiny-kernels",
    "Many kernels too short to hide their launch",
    experiments=("compile=reduce-overhead", "cuda-graphs", "compile=default", "fused-optimizer"),
    remedy="larger batches, torch.compile, CUDA graphs",
    meaning="A launch costs a few microseconds on the host; kernels that run shorter than that leave the "
    "GPU idle.",
    threshold="At least 10 kernels per step that have a launch of their own (not in a graph), at least half "
    "of them under 10 us, and GPU work covers under 60 % of the steps. For information only where no steps "
    "are recorded.",
    advice="Fuse them (torch.compile, fused or foreach optimizers) or launch them at once (CUDA/HIP graphs).",
    bound="The idle time of the GPU that waits for the host just before such a kernel.",
    relies_on=("steps.kernels", "devices.utilization"),
)
def tiny_kernels(ctx: Context) -> Iterator[Hit]:
    """Count of short kernels, and the idle time before them."""
    ids = _launched_alone(ctx)
    busy = ctx.gpu_busy_share
    if not len(ids) or busy is None or busy >= HIGH_BUSY or ctx.blocking or ctx.unseen:
        return
    each = len(ids) / ctx.step_count
    short = ctx.frame.durs(ids) < TINY_NS
    share = float(short.mean())
    if each < TINY_PER_STEP or share < TINY_SHARE:
        return
    median = float(np.median(ctx.frame.durs(ids)))
    waits = sum(_wait_before(ctx, one, ids[short]) for one in ctx.waiting)
    yield Hit(
        f"{each:.0f} kernels {ctx.rate}, {percent_text(share)} of them under {TINY_NS // 1000} us "
        f"(median {time_text(median)})",
        {
            "kernels_per_step": each,
            "tiny_share": share,
            "tiny_of": "kernels outside of graphs",
            "median_ns": median,
        },
        gain=ctx.cost.host_gain(ctx.per_device_ns(waits)),
        idle_ns=ctx.per_device_ns(waits),
        fix=ctx.program.launch_advice,
        remedy=ctx.program.launch_remedy,
        extent=f"{each:.0f} {ctx.rate}, median {time_text(median)}",
        at_most=unsure(ctx),
    )


def _wait_before(ctx: Context, one: DeviceIdle, short: Index) -> int:
    """ns in which a GPU waits for the host until one of these kernels starts."""
    time, ends = waits_of_host(one, own_wait(ctx, one))
    found: Ints = time[np.isin(ends, short)]
    return int(found.sum())


def _launched_alone(ctx: Context) -> Index:
    """The steps' kernels but those of graphs: their launch was paid once for all."""
    ids, source = ctx.step_kernels, ctx.frame
    graphs = ctx.named("api", is_graph_launch)
    return np.asarray(ids[~np.isin(source.launch[ids], graphs)]) if len(graphs) else ids
