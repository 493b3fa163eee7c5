"""What the GPU's time consists of: arithmetic, memory traffic, one kernel, and the recipe of a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from profrun.analysis.kernel_names import MATRIX_CATEGORIES
from profrun.analysis.rules.context import Context
from profrun.analysis.rules.rule import Hit, rule
from profrun.analysis.rules.step_text import span_text
from profrun.analysis.trace.columns import groups
from profrun.contract.units import percent_text
from profrun.traces.memo import memoised

HIGH_BUSY = 0.6
BOUND_SHARE = 0.5
DOMINANT = 0.5
AHEAD = 1.5


_NO_TRAFFIC = frozenset({*MATRIX_CATEGORIES, "collective", "unknown"})
"""Categories of kernels whose time does not count as bound by memory."""


@memoised
def _bound_shares(ctx: Context) -> tuple[float, float, str]:
    """(share of GPU time bound by arithmetic, by memory, how it is known)."""
    total = ctx.total(ctx.frame.gpu)
    rows = [row for row in ctx.roofline.rows if row.bound is not None]
    known = sum(row.gpu_ns for row in rows)
    if total and known / total > BOUND_SHARE:
        compute = sum(row.gpu_ns for row in rows if row.bound == "compute")
        return compute / total, (known - compute) / total, "roofline"
    total = ctx.total(ctx.step_gpu)
    if not total:
        return 0.0, 0.0, "nothing"
    matrix = ctx.kernel_slices(lambda kernel: kernel.category in MATRIX_CATEGORIES)
    other = ctx.kernel_slices(lambda kernel: kernel.category not in _NO_TRAFFIC)
    return ctx.total(matrix) / total, ctx.total(other) / total, "kernel categories"


@rule(
    "compute-bound",
    "Arithmetic sets the time",
    experiments=("autocast=bfloat16", "cudnn-benchmark"),
    severity="info",
    meaning="The GPU is busy, and mostly with kernels whose arithmetic intensity is right of the roofline's "
    "ridge.",
    threshold="GPU work covers at least 60 % of the steps and at least half of the GPU time is in "
    "compute-bound work (by the roofline where shapes are known for most of the time, else GEMM, "
    "convolution and attention kernels).",
    advice="Use a faster dtype (bf16, fp8), fewer FLOPs, or check how far from the peak the largest kernels "
    "are.",
    relies_on=("devices.utilization",),
)
def compute_bound(ctx: Context) -> Iterator[Hit]:
    """Busy, and right of the ridge."""
    busy = ctx.gpu_busy_share
    compute, _, how = _bound_shares(ctx)
    if busy is None or busy < HIGH_BUSY or compute < BOUND_SHARE:
        return
    best = next((row for row in ctx.roofline.rows if row.bound == "compute"), None)
    extra = ""
    if best is not None and best.tflops is not None and best.compute_share is not None:
        extra = (
            f"; {best.op} reaches {best.tflops:.0f} TFLOP/s, "
            f"{percent_text(best.compute_share)} of the {best.dtype} peak"
        )
    work = "compute-bound" if how == "roofline" else "in GEMM, convolution and attention kernels"
    lower = "fp8" if ctx.program.half else "bf16, fp8"
    yield Hit(
        f"the GPU works {percent_text(busy)} of {span_text(ctx)}, and {percent_text(compute)} of its work is "
        f"{work}{extra}",
        {"gpu_busy_share": busy, "compute_share": compute, "compute_of": "GPU time", "known_by": how},
        names=[best.kernel] if best else [],
        fix=f"Use a faster dtype ({lower}), fewer FLOPs, or check how far from the peak the largest "
        "kernels are.",
    )


@rule(
    "memory-bound",
    "Memory traffic sets the time",
    experiments=("compile=default", "autocast=bfloat16"),
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
        work = "memory-bound" if how == "roofline" else "in kernels that move data rather than compute"
        yield Hit(
            f"the GPU works {percent_text(busy)} of {span_text(ctx)}, and {percent_text(memory)} of its work "
            f"is {work}",
            {"gpu_busy_share": busy, "memory_share": memory, "memory_of": "GPU time", "known_by": how},
        )


@rule(
    "dominant-kernel",
    "One kernel takes most of the time",
    severity="info",
    meaning="Faster code elsewhere saves little time, because this kernel takes most of it (Amdahl's law).",
    threshold="One kernel name has at least 50 % of the time of all kernels and at least 1.5 times that of "
    "the next one. Not for a collective: its time is mostly waiting (see exposed-communication, straggler).",
    advice="Record this kernel with hardware counters (job key `collectors: [counters]`) and look at its "
    "roofline row.",
    relies_on=("kernels",),
)
def dominant_kernel(ctx: Context) -> Iterator[Hit]:
    """The kernel with most time inside the steps."""
    ranked = sorted(ctx.kernel_time.items(), key=lambda item: (-item[1], item[0]))
    if len(ranked) < 2 or ranked[0][1] < DOMINANT * ctx.kernel_ns or ranked[0][1] < AHEAD * ranked[1][1]:
        return
    name, time = ranked[0]
    top = next(row for row in ctx.kernels if row.name == name)
    if top.category == "collective":
        return
    ids = ctx.step_kernels[ctx.frame.named(ctx.step_kernels, lambda text: text == name)]
    share = time / ctx.kernel_ns
    yield Hit(
        f"{_brief(top.short)} ({top.category}) has {percent_text(share)} of the kernel time in "
        f"{len(ids)} calls",
        {"share": share, "share_of": "time of the kernels", "total_ns": time, "calls": len(ids)},
        slices=ctx.worst(ids),
        names=[name],
    )


def _brief(name: str, limit: int = 72) -> str:
    """A kernel's name for a sentence: the middle of a very long one (Tensile's) is left out."""
    return name if len(name) <= limit else f"{name[: limit - 23]}...{name[-20:]}"


@rule(
    "kernel-mix",
    "What runs on the GPU",
    severity="info",
    meaning="The recipe of a step: kernels by category. If it differs after a change of code that "
    "should not affect it, find out why.",
    threshold="Always, when steps and kernels are recorded and every step has the same recipe; else the "
    "finding is that they differ.",
    advice="Compare it with what you expect (job key `expect`) and with another variant.",
    relies_on=("steps.kernels",),
)
def kernel_mix(ctx: Context) -> Iterator[Hit]:
    """Kernels per step by category."""
    ids = ctx.step_kernels
    step = ctx.index.of_gpu[ids]
    if not ctx.steps or not len(ids):
        return
    recipes: dict[int, Counter[str]] = {int(n): Counter() for n in np.flatnonzero(ctx.judged.chosen)}
    first, group = groups(step, ctx.frame.name[ids])
    for place, count in zip(first, np.bincount(group), strict=True):
        category = ctx.names[int(ctx.frame.name[ids[place]])].category
        recipes[int(step[place])][category] += int(count)
    every = list(recipes.values())
    same = all(one == every[0] for one in every)
    fullest = max(every, key=lambda recipe: sum(recipe.values())) if not same else every[-1]
    text = " + ".join(
        f"{count} {name}" for name, count in sorted(fullest.items(), key=lambda row: (-row[1], row[0]))
    )
    least = min(sum(recipe.values()) for recipe in every)
    note = (
        ctx.rate
        if len(every) == 1 and not ctx.denominator.several
        else "in every step"
        if same
        else f"in the fullest of {len(every)} steps, {least} in the emptiest"
    )
    yield Hit(
        f"{sum(fullest.values())} kernels {note}: {text}",
        {
            "kernels_per_step": dict(sorted(fullest.items())),
            "same_in_every_step": same,
            "steps": len(every),
        },
    )
