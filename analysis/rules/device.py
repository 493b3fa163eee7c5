"""How well kernels fill the GPU, and whether it ran at its speed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from profrun.analysis.kernel_names import MATRIX_CATEGORIES
from profrun.analysis.rules import Context, Hit, ms, name_table, percent, rule
from profrun.analysis.trace.frame import Index
from profrun.analysis.trace.gpu import kernel_values, occupancies
from profrun.analysis.trace.op_shapes import dense, op_shapes
from profrun.analysis.trace.ops import enclosing_op

FEW_BLOCKS_SHARE = 0.25
LOW_OCCUPANCY = 0.25
OCCUPANCY_SHARE = 0.25
VARIATION = 0.15
VARIATION_CALLS = 10
VARIATION_SHARE = 0.05


@rule(
    "few-blocks",
    "Kernels too small to fill the GPU",
    meaning="A grid with fewer blocks than the GPU has SMs (CUs) leaves the rest idle, however busy the "
    "timeline looks.",
    threshold="Kernels with under one block an SM take at least 25 % of the kernel time. Collectives are "
    "left out: they use few blocks by design. For information when these kernels take under 5 % of the "
    "steps; "
    "silent when the grids of most kernels are not recorded.",
    advice="Larger batches or sequences, split-K GEMMs, or several streams so that small kernels run side "
    "by side.",
    relies_on=("devices.est_sm_efficiency",),
)
def few_blocks(ctx: Context) -> Iterator[Hit]:
    """Kernel time with blocks < SMs, by device."""
    source = ctx.frame
    for device in source.devices:
        if not device["sm_count"]:
            continue
        ids = ctx.kernel_slices(lambda kernel: kernel.category != "collective")
        ids = ids[source.device_of(ids) == device["device"]]
        blocks = kernel_values(ctx.trace, source, "blocks", ids)
        known = ids[~np.isnan(blocks)]
        small = ids[blocks < device["sm_count"]]
        whole = ctx.total(known)
        if whole < ctx.total(ids) / 2:
            continue
        if whole and ctx.total(small) / whole >= FEW_BLOCKS_SHARE:
            share = ctx.total(small) / whole
            yield Hit(
                f"{percent(share)} of the kernel time ({ms(ctx.total(small))}) runs with fewer blocks than "
                f"the {device['sm_count']} {'CUs' if device['vendor'] == 'amd' else 'SMs'}",
                {"share": share, "share_of": "time of kernels with a grid, but collectives",
                 "kernels": len(small), "sm_count": device["sm_count"]},
                slices=ctx.worst(small), severity=ctx.weight(ctx.total(small)),
            )  # fmt: skip


@rule(
    "low-occupancy",
    "Few threads resident on the GPU",
    severity="info",
    meaning="Kernels that are not matrix kernels hide memory latency by having many warps resident; these "
    "have few. "
    "Matrix kernels are left out: they trade occupancy for registers by design.",
    threshold="Kernels other than GEMM, convolution, attention and MoE with an estimated occupancy under 25 "
    "% take at "
    "least 25 % of the kernel time.",
    advice="Larger grids; fewer registers or less shared memory a block; see the `ncu` counters of these "
    "kernels.",
    relies_on=("devices.est_achieved_occupancy",),
)
def low_occupancy(ctx: Context) -> Iterator[Hit]:
    """Time of low-occupancy kernels, by device."""
    source = ctx.frame
    ids = ctx.kernel_slices(lambda kernel: kernel.category not in (*MATRIX_CATEGORIES, "collective"))
    for device in source.devices:
        mine = ids[source.device_of(ids) == device["device"]]
        if not len(mine):
            continue
        value, _ = occupancies(ctx.trace, source, mine, device)
        low = mine[value < LOW_OCCUPANCY]
        if ctx.kernel_ns and ctx.total(low) / ctx.kernel_ns >= OCCUPANCY_SHARE:
            share = ctx.total(low) / ctx.kernel_ns
            yield Hit(
                f"{percent(share)} of the kernel time is in non-matrix kernels under "
                f"{percent(LOW_OCCUPANCY)} occupancy",
                {"share": share, "share_of": "time of all kernels", "kernels": len(low)},
                slices=ctx.worst(low),
            )  # fmt: skip


@rule(
    "kernel-variance",
    "The same kernel takes different times",
    severity="info",
    meaning="Equal launches (name, grid, block and op shapes) should take equal time; they do not, so "
    "clocks, "
    "throttling, memory "
    "contention or a neighbour changed during the recording.",
    threshold="A kernel with at least 10 equal launches and at least 5 % of the kernel time whose standard "
    "deviation is "
    "over 15 % of its mean.",
    advice="Lock clocks, look at temperature and throttle reasons in provenance, compare medians over "
    "several runs.",
    relies_on=("kernels",),
)
def kernel_variance(ctx: Context) -> Iterator[Hit]:
    """Coefficient of variation over equal launches."""
    reasons = throttle_reasons(ctx.provenance)
    for name, calls, mean, deviation, total, slow, fast in _equal_launches(ctx):
        row = next(row for row in ctx.kernels if row.name == name)
        if row.category == "collective":
            continue
        why = f"; throttled: {', '.join(reasons)}" if reasons else ""
        yield Hit(
            f"{row.short}: {calls} equal launches take {ms(mean)} +- {percent(deviation / mean)}{why}",
            {"calls": calls, "mean_ns": mean, "stdev_ns": deviation, "variation": deviation / mean,
             "share": total / ctx.kernel_ns, "share_of": "time of all kernels"},
            slices=[int(slow), int(fast)], names=[name],
        )  # fmt: skip


def _equal_launches(ctx: Context) -> list[tuple[Any, ...]]:
    """Spread of launches equal in name, stream, grid, block and the input shapes of their op.

    Only those with ``VARIATION_SHARE`` of the kernel time. A GEMM's grid does not tell its inner dimension,
    so matrix kernels without recorded shapes are left out.
    Rows: name, launches, mean ns, standard deviation of the sample, total ns, slowest, fastest.
    """
    source = ctx.frame
    ids, form = _launch_forms(ctx)
    shape, _ = op_shapes(ctx.trace, source).of(len(source), np.maximum(enclosing_op(source, ids), 0))
    shape[enclosing_op(source, ids) < 0] = -1
    matrix = [number for number, kernel in ctx.names.items() if kernel.category in MATRIX_CATEGORIES]
    keep = (shape >= 0) | ~name_table(source, matrix)[source.name[ids]]
    ids, form, shape = ids[keep], form[keep], shape[keep]
    if not len(ids):
        return []
    first, group = dense(source.name[ids], source.track[ids], form, shape)
    dur = source.durs(ids).astype(np.float64)
    calls = np.bincount(group)
    total = np.bincount(group, weights=dur)
    mean = total / calls
    deviation = np.sqrt(np.bincount(group, weights=(dur - mean[group]) ** 2) / np.maximum(calls - 1, 1))
    found = []
    wide = (calls >= VARIATION_CALLS) & (deviation > VARIATION * mean)
    for number in np.flatnonzero(wide & (total >= VARIATION_SHARE * ctx.kernel_ns)):
        mine = ids[group == number]
        spread = source.durs(mine)
        found.append(
            (source.text(int(ids[first[number]])), int(calls[number]), float(mean[number]),
             float(deviation[number]), int(total[number]), int(mine[spread.argmax()]),
             int(mine[spread.argmin()]))
        )  # fmt: skip
    return sorted(found, key=lambda row: (-row[4], row[0]))


def _launch_forms(ctx: Context) -> tuple[Index, Any]:
    """Kernel slices with a grid, and a number for each distinct grid and block."""
    got = ctx.trace.tables.execute(
        "WITH launch AS (SELECT slice, grid_x, coalesce(grid_y, -1) AS grid_y, "
        "coalesce(grid_z, -1) AS grid_z, coalesce(block_x, -1) AS block_x, "
        "coalesce(block_y, -1) AS block_y, coalesce(block_z, -1) AS block_z "
        "FROM kernels WHERE grid_x IS NOT NULL), forms AS (SELECT *, row_number() OVER () AS form FROM ("
        "SELECT DISTINCT grid_x, grid_y, grid_z, block_x, block_y, block_z FROM launch)) "
        "SELECT slice::INTEGER AS slice, form::INTEGER AS form "
        "FROM launch JOIN forms USING (grid_x, grid_y, grid_z, block_x, block_y, block_z)"
    ).fetchnumpy()
    ids = np.asarray(got["slice"], dtype=np.int32)
    order = np.argsort(ids, kind="stable")
    return ids[order], np.asarray(got["form"], dtype=np.int32)[order]


_HARMLESS = frozenset({"gpu_idle", "applications_clocks_setting", "display_clock_setting", "sync_boost"})


def throttle_reasons(provenance: Mapping[str, Any]) -> list[str]:
    """Active throttle reasons in provenance.json (``gpus.before`` and ``gpus.after``, ``throttled_by``).

    Idling and chosen clocks are none. AMD's tools state them in words of their own, which are not read.
    """
    gpus = provenance.get("gpus")
    if not isinstance(gpus, Mapping):
        return []
    found: set[str] = set()
    for moment in ("before", "after"):
        for gpu in gpus.get(moment) or []:
            found |= {str(item) for item in gpu.get("throttled_by") or [] if item not in _HARMLESS}
    return sorted(found)


@rule(
    "throttled",
    "The GPU ran below its clocks",
    meaning="The driver states a reason for lower clocks (power, temperature, hardware slowdown) before or "
    "after the run.",
    threshold="provenance.json names a throttle reason other than idling.",
    advice="Compare only runs in the same state; more cooling, a higher power limit, or locked lower clocks.",
)
def throttled(ctx: Context) -> Iterator[Hit]:
    """Throttle reasons of provenance."""
    reasons = throttle_reasons(ctx.provenance)
    if reasons:
        yield Hit(f"throttle reasons: {', '.join(reasons)}", {"reasons": reasons})
