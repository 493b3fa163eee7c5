"""How well kernels fill the GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from profrun.analysis.kernel_names import MATRIX_CATEGORIES
from profrun.analysis.rules.context import Context
from profrun.analysis.rules.finding import FindingRow
from profrun.analysis.rules.replay import Floats
from profrun.analysis.rules.rule import Hit, rule
from profrun.analysis.trace.frame import Index
from profrun.analysis.trace.kernel_columns import kernel_values, occupancies
from profrun.contract.units import percent_text, time_text
from profrun.traces.schema import DeviceRow

FEW_BLOCKS_SHARE = 0.25
LOW_OCCUPANCY = 0.25
OCCUPANCY_SHARE = 0.25
ROWS = 8


@rule(
    "few-blocks",
    "Kernels too small to fill the GPU",
    remedy="larger batches, or streams side by side",
    meaning="A grid with fewer blocks than the GPU has SMs (CUs) leaves the rest idle, however busy the "
    "timeline looks.",
    threshold="Kernels with under one block per SM take at least 25 % of the kernel time of a GPU. "
    "Collectives are left out: they use few blocks by design. The rule does not fire when the grids of most "
    "kernels are not recorded.",
    advice="Larger batches or sequences, split-K GEMMs, or several streams so that small kernels run side "
    "by side.",
    bound="For each such kernel its time on the SMs that have no block: with blocks on all SMs it takes at "
    "least time x blocks / SMs.",
    relies_on=("devices.est_sm_efficiency",),
)
def few_blocks(ctx: Context) -> Iterator[Hit]:
    """Kernel time with blocks < SMs, by device."""
    source = ctx.frame
    found: list[_Small] = []
    every = ctx.kernel_slices(lambda kernel: kernel.category != "collective")
    for device in source.devices:
        if not device["sm_count"]:
            continue
        ids = every[source.device_of(every) == device["device"]]
        blocks = kernel_values(ctx.trace, "blocks", ids)
        known = ids[~np.isnan(blocks)]
        few = blocks < device["sm_count"]
        whole, small = ctx.total(known), ids[few]
        if not whole or whole < ctx.total(ids) / 2 or ctx.total(small) / whole < FEW_BLOCKS_SHARE:
            continue
        found.append(_Small(device, small, whole, 1 - blocks[few] / device["sm_count"]))
    if not found:
        return
    small = np.concatenate([one.ids for one in found])
    time, whole = ctx.total(small), sum(one.whole for one in found)
    device = found[0].device
    yield Hit(
        f"{percent_text(time / whole)} of the kernel time ({time_text(ctx.per_step_ns(time))} "
        f"{ctx.per}) runs with fewer blocks than the {device['sm_count']} "
        f"{'CUs' if device['vendor'] == 'amd' else 'SMs'}",
        {
            "share": time / whole,
            "share_of": "time of kernels with a grid, but collectives",
            "kernels": len(small),
            "sm_count": device["sm_count"],
        },
        slices=ctx.worst(small),
        gain=ctx.gpu_gain(small, np.concatenate([one.lost for one in found])),
        rows=_small_rows(ctx, small),
        extent=f"{percent_text(time / whole)} of the kernel time",
    )


class _Small(NamedTuple):
    """Kernels of a device with fewer blocks than SMs; time of all its kernels in ns; the part of the SMs
    without a block, shape (ids,)."""

    device: DeviceRow
    ids: Index
    whole: int
    lost: Floats


def _small_rows(ctx: Context, ids: Index) -> list[FindingRow]:
    """The kernels by name, most time first."""
    source = ctx.frame
    names, place = np.unique(source.name[ids], return_inverse=True)
    time, calls = np.bincount(place, weights=source.durs(ids)), np.bincount(place)
    order = np.lexsort((names, -time))[:ROWS]
    blocks = kernel_values(ctx.trace, "blocks", ids)
    return [
        FindingRow(
            ctx.names[int(names[one])].short,
            int(calls[one]),
            int(time[one]),
            f"{blocks[place == one].max():.0f} blocks at most",
        )
        for one in order
    ]


@rule(
    "low-occupancy",
    "Few threads resident on the GPU",
    severity="info",
    meaning="Kernels that are not matrix kernels hide memory latency by having many warps resident; these "
    "have few. Matrix kernels are left out: they trade occupancy for registers by design.",
    threshold="Kernels other than GEMM, convolution, attention and MoE with an estimated occupancy under 25 "
    "% take at least 25 % of the kernel time.",
    advice="Larger grids; fewer registers or less shared memory per block; see the hardware counters of "
    "these kernels (job key `collectors: [counters]`).",
    relies_on=("devices.est_achieved_occupancy",),
)
def low_occupancy(ctx: Context) -> Iterator[Hit]:
    """Time of low-occupancy kernels, over all devices."""
    source = ctx.frame
    ids = ctx.kernel_slices(lambda kernel: kernel.category not in (*MATRIX_CATEGORIES, "collective"))
    parts = []
    for device in source.devices:
        mine = ids[source.device_of(ids) == device["device"]]
        if len(mine):
            value, _ = occupancies(ctx.trace, mine, device)
            parts.append(mine[value < LOW_OCCUPANCY])
    low = np.concatenate(parts) if parts else ids[:0]
    if ctx.kernel_ns and len(low) and ctx.total(low) / ctx.kernel_ns >= OCCUPANCY_SHARE:
        share = ctx.total(low) / ctx.kernel_ns
        yield Hit(
            f"{percent_text(share)} of the kernel time is in non-matrix kernels under "
            f"{percent_text(LOW_OCCUPANCY)} occupancy",
            {"share": share, "share_of": "time of all kernels", "kernels": len(low)},
            slices=ctx.worst(low),
        )
