"""Memory layout: kernels that only change the order of a tensor's dimensions around convolutions."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.host_causes import rows_by_name
from profrun.analysis.rules.replay import Floats
from profrun.analysis.rules.rule import Hit, rule
from profrun.analysis.rules.step_text import span_text
from profrun.analysis.trace.frame import Index
from profrun.analysis.trace.kernel_columns import kernel_values
from profrun.contract.units import percent_text, time_text

KERNEL_SHARE = 0.02
ROWS = 8
PER_CHANNEL = re.compile(r"\bbatch_norm_(?!\w*channels_last)\w*kernel\b|\bbn_(fw|bw)\w*_1C11")
"""Batch norms of PyTorch and cuDNN that have one block for each channel, because its values lie in rows."""


@rule(
    "layout-changes",
    "Convolutions change the memory layout of their tensors",
    experiments=("channels-last",),
    remedy="memory_format=torch.channels_last",
    meaning="The convolution kernels want channels last (NHWC), and the tensors have channels first (NCHW): "
    "the library copies each of them into the other layout before and after. Batch norms of channels first "
    "have one block for each channel, which leaves most of the GPU empty where there are few channels.",
    threshold="Kernels of the category `layout` in steps that run convolutions take at least 2 % of the time "
    "of the steps' kernels.",
    advice="model.to(memory_format=torch.channels_last), and the inputs likewise. Then measure: "
    "normalisation layers that have no kernel for channels last bring copies of their own. On AMD, "
    "PYTORCH_MIOPEN_SUGGEST_NHWC=1 must be set, too.",
    bound="The time of the kernels that change a layout: with tensors in the layout of the convolutions none "
    "of them is needed. Of batch norms with one block per channel, their time x the part of the threads of "
    "the GPU that their blocks leave empty: those of channels last have blocks for the whole GPU.",
    relies_on=("kernels", "devices.max_threads_per_sm"),
)
def layout_changes(ctx: Context) -> Iterator[Hit]:
    """Layout kernels beside convolutions."""
    changes = ctx.kernel_slices(lambda kernel: kernel.category == "layout")
    convolutions = ctx.kernel_slices(lambda kernel: kernel.category == "convolution")
    if not len(changes) or not len(convolutions) or ctx.total(changes) < KERNEL_SHARE * ctx.kernel_ns:
        return
    share = ctx.total(changes) / ctx.kernel_ns
    norms, empty = _batch_norms(ctx)
    gain = ctx.gpu_gain(np.concatenate([changes, norms]), np.concatenate([np.ones(len(changes)), empty]))
    norm_ns = ctx.total(norms)
    beside = f"; batch norms with one block per channel take {time_text(ctx.per_step_ns(norm_ns))}: together"
    yield Hit(
        f"{time_text(ctx.per_step_ns(ctx.total(changes)))} {ctx.per} go into "
        f"{len(changes) / ctx.judged.count:.4g} kernels that change a layout beside "
        f"{len(convolutions) / ctx.judged.count:.4g} convolution kernels: {percent_text(share)} of the "
        f"kernel time{beside if norm_ns else ','} {percent_text(gain.share)} of {span_text(ctx)}",
        {
            "layout_ns": ctx.total(changes),
            "share": share,
            "share_of": "time of all kernels",
            "kernels": len(changes),
            "convolution_ns": ctx.total(convolutions),
            "batch_norm_ns": norm_ns,
        },
        slices=ctx.worst(changes),
        extent=f"{percent_text(share)} of the kernel time",
        gain=gain,
        rows=rows_by_name(ctx, np.concatenate([changes, norms]))[:ROWS],
    )


def _batch_norms(ctx: Context) -> tuple[Index, Floats]:
    """Batch norms with one block per channel, and which part of the GPU's threads each leaves empty.

    Returns:
        Slices, and float64 from 0 to 1, both of shape (n,). Kernels that fill their GPU are left out, and
        those of which that is not known.
    """
    ids = ctx.kernel_slices(lambda kernel: PER_CHANNEL.search(kernel.normalised) is not None)
    threads = kernel_values(ctx.trace, "blocks", ids) * kernel_values(ctx.trace, "threads", ids)
    empty = np.zeros(len(ids))
    for device in ctx.frame.devices:
        room = (device["sm_count"] or 0) * (device["max_threads_per_sm"] or 0)
        mine = ctx.frame.device_of(ids) == device["device"]
        if room:
            empty[mine] = np.nan_to_num(np.maximum(0.0, 1 - threads[mine] / room))
    return ids[empty > 0], empty[empty > 0]
