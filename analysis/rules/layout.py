"""Memory layout: kernels that only change the order of a tensor's dimensions around convolutions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.finding import FindingRow
from profrun.analysis.rules.rule import Hit, rule
from profrun.analysis.rules.step_text import span_text
from profrun.contract.units import percent_text, time_text

KERNEL_SHARE = 0.02
ROWS = 8


@rule(
    "layout-changes",
    "Convolutions change the memory layout of their tensors",
    experiments=("channels-last",),
    remedy="memory_format=torch.channels_last",
    meaning="The convolution kernels want channels last (NHWC), and the tensors have channels first (NCHW): "
    "the library copies each of them into the other layout before and after.",
    threshold="Kernels of the category `layout` in steps that run convolutions take at least 2 % of the time "
    "of the steps' kernels.",
    advice="model.to(memory_format=torch.channels_last), and the inputs likewise. Then measure: "
    "normalisation layers that have no kernel for channels last bring copies of their own. On AMD, "
    "PYTORCH_MIOPEN_SUGGEST_NHWC=1 must be set, too.",
    bound="The time of these kernels: with tensors in the layout of the kernels none of them is needed.",
    relies_on=("kernels",),
)
def layout_changes(ctx: Context) -> Iterator[Hit]:
    """Layout kernels beside convolutions."""
    changes = ctx.kernel_slices(lambda kernel: kernel.category == "layout")
    convolutions = ctx.kernel_slices(lambda kernel: kernel.category == "convolution")
    if not len(changes) or not len(convolutions) or ctx.total(changes) < KERNEL_SHARE * ctx.kernel_ns:
        return
    share = ctx.total(changes) / ctx.kernel_ns
    gain = ctx.gpu_gain(changes, np.ones(len(changes)))
    source = ctx.frame
    names = source.name[changes]
    rows = [
        FindingRow(source.names[int(name)], int((names == name).sum()), ctx.total(changes[names == name]))
        for name in np.unique(names)
    ]
    yield Hit(
        f"{time_text(ctx.per_step_ns(ctx.total(changes)))} {ctx.per} go into "
        f"{len(changes) / ctx.judged.count:.4g} kernels that change a layout beside "
        f"{len(convolutions) / ctx.judged.count:.4g} convolution kernels: {percent_text(share)} of the "
        f"kernel time, {percent_text(gain.share)} of {span_text(ctx)}",
        {
            "layout_ns": ctx.total(changes),
            "share": share,
            "share_of": "time of all kernels",
            "kernels": len(changes),
            "convolution_ns": ctx.total(convolutions),
        },
        slices=ctx.worst(changes),
        extent=f"{percent_text(share)} of the kernel time",
        gain=gain,
        rows=sorted(rows, key=lambda row: -(row.total_ns or 0))[:ROWS],
    )
