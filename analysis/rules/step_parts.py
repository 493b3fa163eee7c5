"""What a step's time is made of: GPU work by what it does, or host time by op where no GPU works."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.kernel_names import MATRIX_CATEGORIES, KernelName
from profrun.analysis.rules.step_cost import Side
from profrun.analysis.trace.ops import operators

if TYPE_CHECKING:
    from profrun.analysis.rules.context import Context


@dataclass(frozen=True)
class StepPart:
    """One part of the work of the judged steps.

    Attributes:
        name: what the GPU does ('fp32 gemm', 'copies'), or an op.
        side: whose time it is.
        share: part of the GPU time of the judged steps, or of the CPU time of all ops, 0 to 1. GPU work that
            runs side by side counts twice; waiting for other ranks inside of collectives does not count.
    """

    name: str
    side: Side
    share: float


def step_parts(ctx: Context) -> list[StepPart]:
    """The parts of the work, most time first: of the GPU where one works, else of the host, by op."""
    return _gpu_parts(ctx) or _host_parts(ctx)


def _gpu_parts(ctx: Context) -> list[StepPart]:
    source = ctx.frame
    totals: dict[str, float] = {}
    for ids, label in (
        (ctx.judged.gpu(source, source.of("memcpy")), "copies"),
        (ctx.judged.gpu(source, source.of("memset")), "fills"),
    ):
        if len(ids):
            totals[label] = float(source.durs(ids).sum())
    kernels = ctx.step_kernels
    if len(kernels):
        time = np.bincount(source.name[kernels], weights=source.durs(kernels))
        for number in np.flatnonzero(time):
            label = _kind(ctx.names[int(number)])
            totals[label] = totals.get(label, 0.0) + float(time[number])
    if "collective" in totals:  # waiting for other ranks is no work
        totals["collective"] -= min(totals["collective"], ctx.cost.rank_wait_ns * ctx.judged.count)
    return _shares(totals, "gpu")


def _kind(name: KernelName) -> str:
    """'fp32 gemm' for a matrix product of a known type, else the category."""
    if name.category in MATRIX_CATEGORIES and name.dtype:
        return f"{name.dtype} {name.category}"
    return "other kernels" if name.category == "unknown" else name.category


def _host_parts(ctx: Context) -> list[StepPart]:
    totals = {row.name: float(row.self_cpu_ns) for row in operators(ctx.trace) if row.kind == "op"}
    return _shares(totals, "host")


def _shares(totals: dict[str, float], side: Side) -> list[StepPart]:
    whole = sum(totals.values())
    found = [StepPart(name, side, total / whole) for name, total in totals.items() if total > 0]
    return sorted(found, key=lambda part: (-part.share, part.name))
