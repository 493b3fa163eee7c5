"""What bounds the program: the host, arithmetic, memory, or one kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from profrun.analysis.kernel_names import MATRIX_CATEGORIES
from profrun.analysis.rules.context import Context
from profrun.analysis.rules.rule import Hit, rule
from profrun.analysis.trace.columns import groups
from profrun.analysis.trace.frame import Index
from profrun.analysis.trace.gpu import window
from profrun.analysis.trace.intervals import clip
from profrun.analysis.trace.runtime_calls import is_graph_launch
from profrun.contract.units import percent_text, time_text

LOW_BUSY = 0.5
HIGH_BUSY = 0.6
HOST_SHARE = 0.5
BOUND_SHARE = 0.5
DOMINANT = 0.5
AHEAD = 1.5
TINY_NS = 10_000
TINY_SHARE = 0.5
TINY_PER_STEP = 10


@rule(
    "overhead-bound",
    "The host cannot keep the GPU busy",
    severity="critical",
    meaning="The GPU waits for work most of the time because Python, the framework and launches take longer "
    "than the kernels they enqueue: milliseconds on the CPU for microseconds on the GPU.",
    threshold="GPU work covers under 50 % of the steps, and over half of the GPU's idle time is host_wait "
    "(the next piece was enqueued only after the GPU had run dry). Not on recordings with blocking launches; "
    "for information only where no steps are recorded.",
    advice="Do more work per launch: larger batches, torch.compile, CUDA/HIP graphs "
    "(mode='reduce-overhead'), fused optimizers; move Python work out of the step.",
    relies_on=("devices.utilization", "idle"),
)
def overhead_bound(ctx: Context) -> Iterator[Hit]:
    """Low busy share, and idle time that is the host's."""
    share = ctx.gpu_busy_share
    if share is None or share >= LOW_BUSY or ctx.blocking:
        return
    idle = sum(row.idle_ns for row in ctx.idle)
    host = sum(row.host_wait_ns for row in ctx.idle)
    if not idle or host / idle <= HOST_SHARE:
        return
    gpu = ctx.total(ctx.step_gpu) / ctx.step_count
    step = ctx.window_ns / ctx.step_count
    launches = sum(one.launches for one in ctx.steps) / ctx.step_count
    numbers = (
        {"step_ns": step, "gpu_ns_per_step": gpu, "launches_per_step": launches}
        if ctx.steps
        else {"recording_ns": step, "gpu_ns": gpu}
    )
    yield Hit(
        f"{'a step' if ctx.steps else 'the recording'} takes {time_text(step)} on the host for "
        f"{time_text(gpu)} of GPU work; GPU work covers {percent_text(share)} of {ctx.span_name} and "
        f"{percent_text(host / idle)} of the idle time waits for the host{_set_up(ctx)}",
        {
            "gpu_busy_share": share,
            "gpu_busy_of": f"time of {ctx.span_name}",
            **numbers,
            "host_wait_ns": host,
            "idle_ns": idle,
        },
        slices=[one.slice for one in ctx.steps[:3]],
        severity=None if ctx.steps else "info",
    )


def _set_up(ctx: Context) -> str:
    """Why the finding of a recording without steps is for information only."""
    return "" if ctx.steps else " (no steps are recorded, so that set-up counts too)"


@rule(
    "low-utilization",
    "The GPU is idle most of the time",
    meaning="Kernels cover less than half of the steps, and so do kernels, copies and fills together, "
    "whatever the reason.",
    threshold="GPU utilization (union of kernels / time of steps, as the TensorBoard plugin) under 50 %, and "
    "kernels, copies and fills together under 50 % too. Not on recordings with blocking launches; for "
    "information only where no steps are recorded.",
    advice="See which other findings explain the idle time: overhead, synchronisation, data loading, "
    "communication.",
    relies_on=("devices.utilization",),
)
def low_utilization(ctx: Context) -> Iterator[Hit]:
    """Utilization by the plugin's formula."""
    for row in ctx.devices if not ctx.blocking else ():
        busy = clip(ctx.busy(row.device), *window(ctx.frame, row.process)).total
        if row.utilization is not None and row.utilization < LOW_BUSY and busy < LOW_BUSY * row.window_ns:
            yield Hit(
                f"utilization of {ctx.labels.gpus[row.device]} is {percent_text(row.utilization)} of "
                f"{time_text(row.window_ns)}{_set_up(ctx)}",
                {
                    "utilization": row.utilization,
                    "utilization_of": row.utilization_of,
                    "window_ns": row.window_ns,
                },
                severity=None if ctx.steps else "info",
            )


def _bound_shares(ctx: Context) -> tuple[float, float, str]:
    """(share of GPU time bound by arithmetic, by memory, how it is known)."""
    total = ctx.total(ctx.frame.gpu)
    rows = [row for row in ctx.roofline.rows if row.bound is not None]
    known = sum(row.gpu_ns for row in rows)
    if total and known / total > BOUND_SHARE:
        compute = sum(row.gpu_ns for row in rows if row.bound == "compute")
        return compute / total, (known - compute) / total, "roofline"
    work = ctx.step_gpu
    total = ctx.total(work)
    run = work[ctx.frame.is_kind(work, "kernel")]
    names, place = np.unique(ctx.frame.name[run], return_inverse=True)
    times = np.bincount(place, weights=ctx.frame.durs(run), minlength=len(names))
    matrix = other = 0.0
    for name, time in zip(names, times, strict=True):
        category = ctx.names[int(name)].category
        matrix += time if category in MATRIX_CATEGORIES else 0
        other += time if category not in (*MATRIX_CATEGORIES, "collective", "unknown") else 0
    if not total:
        return 0.0, 0.0, "nothing"
    return float(matrix) / total, float(other) / total, "kernel categories"


@rule(
    "compute-bound",
    "Arithmetic sets the time",
    severity="info",
    meaning="The GPU is busy, and mostly with kernels whose arithmetic intensity is right of the roofline's "
    "ridge.",
    threshold="GPU work covers at least 60 % of the steps and at least half of the GPU time is in "
    "compute-bound work (by the roofline where shapes are known for most of the time, else GEMM, convolution "
    "and attention kernels).",
    advice="Use a faster dtype (bf16, fp8), fewer FLOPs, or check how far from the peak the largest kernels "
    "are.",
    relies_on=("devices.utilization",),
)
def compute_bound(ctx: Context) -> Iterator[Hit]:
    """Busy, and right of the ridge."""
    busy = ctx.gpu_busy_share
    compute, _, how = _bound_shares(ctx)
    if busy is not None and busy >= HIGH_BUSY and compute >= BOUND_SHARE:
        best = next((row for row in ctx.roofline.rows if row.bound == "compute"), None)
        extra = ""
        if best is not None and best.tflops is not None and best.compute_share is not None:
            extra = (
                f"; {best.op} reaches {best.tflops:.0f} TFLOP/s, "
                f"{percent_text(best.compute_share)} of the {best.dtype} peak"
            )
        yield Hit(
            f"GPU work covers {percent_text(busy)} of {ctx.span_name} and {percent_text(compute)} of it is "
            f"compute-bound{extra}",
            {"gpu_busy_share": busy, "compute_share": compute, "compute_of": "GPU time", "known_by": how},
            names=[best.kernel] if best else [],
        )


@rule(
    "memory-bound",
    "Memory traffic sets the time",
    severity="info",
    meaning="The GPU is busy, and mostly with kernels that move data rather than compute.",
    threshold="GPU work covers at least 60 % of the steps and over half of the GPU time is in memory-bound "
    "work (by the roofline where shapes are known for most of the time, else by kernel category).",
    advice="Fuse element-wise work (torch.compile), keep activations in half precision, avoid copies and "
    "casts.",
    relies_on=("devices.utilization",),
)
def memory_bound(ctx: Context) -> Iterator[Hit]:
    """Busy, and left of the ridge."""
    busy = ctx.gpu_busy_share
    _, memory, how = _bound_shares(ctx)
    if busy is not None and busy >= HIGH_BUSY and memory > BOUND_SHARE:
        yield Hit(
            f"GPU work covers {percent_text(busy)} of {ctx.span_name} and {percent_text(memory)} of it is "
            "memory-bound",
            {"gpu_busy_share": busy, "memory_share": memory, "memory_of": "GPU time", "known_by": how},
        )


@rule(
    "dominant-kernel",
    "One kernel takes most of the time",
    severity="info",
    meaning="Work on anything else can win little: Amdahl's law on this kernel.",
    threshold="One kernel name has at least 50 % of the time of all kernels and at least 1.5 times that of "
    "the next one. Not for a collective: its time is mostly waiting (see exposed-communication, straggler).",
    advice="Record this kernel with hardware counters (job key `collectors: [counters]`) and look at its "
    "roofline row.",
    relies_on=("kernels",),
)
def dominant_kernel(ctx: Context) -> Iterator[Hit]:
    """The top of the kernel table."""
    if len(ctx.kernels) > 1 and ctx.kernels[0].share >= DOMINANT:
        top, second = ctx.kernels[:2]
        if top.category == "collective" or top.total_ns < AHEAD * second.total_ns:
            return
        ids = ctx.kernel_slices(lambda kernel: kernel.name == top.name)
        yield Hit(
            f"{_brief(top.short)} ({top.category}) has {percent_text(top.share)} of the kernel time in "
            f"{top.calls} calls",
            {"share": top.share, "share_of": top.share_of, "total_ns": top.total_ns, "calls": top.calls},
            slices=ctx.worst(ids),
            names=[top.name],
        )


def _brief(name: str, limit: int = 72) -> str:
    """A kernel's name for a sentence: the middle of a very long one (Tensile's) is left out."""
    return name if len(name) <= limit else f"{name[: limit - 23]}...{name[-20:]}"


@rule(
    "tiny-kernels",
    "Many kernels too short to hide their launch",
    meaning="A launch costs a few microseconds on the host; kernels that run shorter than that leave the "
    "GPU idle.",
    threshold="At least 10 kernels per step that have a launch of their own (not in a graph), at least half "
    "of them under 10 us, and GPU work covers under 60 % of the steps. For information only where no steps "
    "are recorded.",
    advice="Fuse them (torch.compile, fused or foreach optimizers) or launch them at once (CUDA/HIP graphs).",
    relies_on=("steps.kernels", "devices.utilization"),
)
def tiny_kernels(ctx: Context) -> Iterator[Hit]:
    """Count of short kernels."""
    ids = _launched_alone(ctx)
    busy = ctx.gpu_busy_share
    if not len(ids) or busy is None or busy >= HIGH_BUSY:
        return
    each = len(ids) / ctx.step_count
    short = ctx.frame.durs(ids) < TINY_NS
    share = float(short.mean())
    if each < TINY_PER_STEP or share < TINY_SHARE:
        return
    median = float(np.median(ctx.frame.durs(ids)))
    yield Hit(
        f"{each:.0f} kernels {ctx.per_step}, {percent_text(share)} of them under {TINY_NS // 1000} us "
        f"(median {time_text(median)})",
        {
            "kernels_per_step": each,
            "tiny_share": share,
            "tiny_of": "kernels outside of graphs",
            "median_ns": median,
        },
        severity=None if ctx.steps else "info",
    )


def _launched_alone(ctx: Context) -> Index:
    """The steps' kernels but those of graphs: their launch was paid once for all."""
    ids, source = ctx.step_kernels, ctx.frame
    graphs = ctx.named("api", is_graph_launch)
    return np.asarray(ids[~np.isin(source.launch[ids], graphs)]) if len(graphs) else ids


@rule(
    "kernel-mix",
    "What a step runs on the GPU",
    severity="info",
    meaning="The recipe of a step: kernels by category. A change of code that should not change it is a "
    "surprise.",
    threshold="Always, when steps and kernels are recorded and every step has the same recipe; else the "
    "finding is that they differ.",
    advice="Compare it with what you expect (job key `expect`) and with another variant.",
    relies_on=("steps.kernels",),
)
def kernel_mix(ctx: Context) -> Iterator[Hit]:
    """Kernels per step by category."""
    ids = ctx.frame.of("kernel")
    step = ctx.index.of_gpu[ids]
    if not len(ctx.index.slices) or not (step >= 0).any():
        return
    recipes: list[Counter[str]] = [Counter() for _ in ctx.index.slices]
    mine = ids[step >= 0]
    first, group = groups(step[step >= 0], ctx.frame.name[mine])
    for place, count in zip(first, np.bincount(group), strict=True):
        category = ctx.names[int(ctx.frame.name[mine[place]])].category
        recipes[int(ctx.index.of_gpu[mine[place]])][category] += int(count)
    same = all(one == recipes[0] for one in recipes)
    fullest = max(recipes, key=lambda recipe: sum(recipe.values())) if not same else recipes[-1]
    text = " + ".join(
        f"{count} {name}" for name, count in sorted(fullest.items(), key=lambda row: (-row[1], row[0]))
    )
    least = min(sum(recipe.values()) for recipe in recipes)
    note = "in every step" if same else f"in the fullest of {len(recipes)} steps, {least} in the emptiest"
    yield Hit(
        f"{sum(fullest.values())} kernels {note}: {text}",
        {
            "kernels_per_step": dict(sorted(fullest.items())),
            "same_in_every_step": same,
            "steps": len(recipes),
        },
    )
