"""How well kernels fill the GPU, and whether it ran at its speed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from profrun.analysis.kernel_names import MATRIX_CATEGORIES
from profrun.analysis.rules.context import Context
from profrun.analysis.rules.finding import FindingRow
from profrun.analysis.rules.replay import Floats
from profrun.analysis.rules.rule import Hit, rule
from profrun.analysis.trace.columns import groups
from profrun.analysis.trace.frame import Index
from profrun.analysis.trace.kernel_columns import kernel_values, occupancies
from profrun.analysis.trace.op_shapes import Codes, op_shapes
from profrun.analysis.trace.used_gpus import used_gpus
from profrun.contract.provenance import GpuStates
from profrun.contract.units import percent_text, time_text
from profrun.traces.schema import DeviceRow

FEW_BLOCKS_SHARE = 0.25
LOW_OCCUPANCY = 0.25
OCCUPANCY_SHARE = 0.25
VARIATION = 0.15
VARIATION_CALLS = 10
VARIATION_SHARE = 0.05
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


@rule(
    "kernel-variance",
    "The same kernel takes different times",
    severity="info",
    meaning="Equal launches (name, grid, block and op shapes) should take equal time; they do not, so "
    "clocks, throttling, memory contention, a neighbour or the values of the data changed during the "
    "recording.",
    threshold="A kernel with at least 10 equal launches and at least 5 % of the kernel time whose standard "
    "deviation is over 15 % of its mean.",
    advice="Lock clocks, look at temperature and throttle reasons in provenance, compare medians over "
    "several runs.",
    relies_on=("kernels",),
)
def kernel_variance(ctx: Context) -> Iterator[Hit]:
    """Coefficient of variation over equal launches."""
    reasons = throttle_reasons(used_gpus(ctx.trace, ctx.provenance).states)
    why = f"; throttled: {', '.join(reasons)}" if reasons else ""
    category = {row.name: row.category for row in ctx.kernels}
    short = {row.name: row.short for row in ctx.kernels}
    found = [one for one in _uneven_launches(ctx) if category[one.name] != "collective"]
    if not found:
        return
    first = found[0]
    more = f", and {len(found) - 1} more kernels" if len(found) > 1 else ""
    yield Hit(
        f"{short[first.name]}: {first.calls} equal launches take {time_text(first.mean_ns)} "
        f"+- {percent_text(first.stdev_ns / first.mean_ns)}{more}{why}",
        {
            "calls": first.calls,
            "mean_ns": first.mean_ns,
            "stdev_ns": first.stdev_ns,
            "variation": first.stdev_ns / first.mean_ns,
            "share": first.total_ns / ctx.kernel_ns,
            "share_of": "time of all kernels",
        },
        slices=[first.slowest, first.fastest],
        names=[one.name for one in found],
        rows=[
            FindingRow(
                short[one.name],
                one.calls,
                one.total_ns,
                f"{time_text(one.mean_ns)} +- {percent_text(one.stdev_ns / one.mean_ns)}",
            )
            for one in found
        ]
        if len(found) > 1
        else (),
    )


class _EqualLaunches(NamedTuple):
    """Launches equal in name, stream, grid, block and the input shapes of their op; slices of two of them."""

    name: str
    calls: int
    mean_ns: float
    stdev_ns: float
    total_ns: int
    slowest: int
    fastest: int


def _uneven_launches(ctx: Context) -> list[_EqualLaunches]:
    """Equal launches with ``VARIATION_SHARE`` of the kernel time that vary by over ``VARIATION``, most time
    first.

    A GEMM's grid does not tell its inner dimension, so matrix kernels without recorded shapes are left out.
    """
    source = ctx.frame
    ids, form = _launch_forms(ctx)
    op = source.launching_op(ids)
    shape = np.where(op >= 0, op_shapes(ctx.trace).of(len(source), np.maximum(op, 0))[0], -1)
    matrix = [number for number, kernel in ctx.names.items() if kernel.category in MATRIX_CATEGORIES]
    keep = ((shape >= 0) | ~source.has_name(ids, matrix)) & np.isin(ids, ctx.step_kernels)
    ids, form, shape = ids[keep], form[keep], shape[keep]
    if not len(ids):
        return []
    first, group = groups(source.name[ids], source.track[ids], form, shape)
    dur = source.durs(ids).astype(np.float64)
    calls = np.bincount(group)
    total = np.bincount(group, weights=dur)
    mean = total / calls
    deviation = np.sqrt(np.bincount(group, weights=(dur - mean[group]) ** 2) / np.maximum(calls - 1, 1))
    found = []
    uneven = (calls >= VARIATION_CALLS) & (deviation > VARIATION * mean)
    for number in np.flatnonzero(uneven & (total >= VARIATION_SHARE * ctx.kernel_ns)):
        mine = ids[group == number]
        durs = source.durs(mine)
        found.append(
            _EqualLaunches(
                name=source.text(int(ids[first[number]])),
                calls=int(calls[number]),
                mean_ns=float(mean[number]),
                stdev_ns=float(deviation[number]),
                total_ns=int(total[number]),
                slowest=int(mine[durs.argmax()]),
                fastest=int(mine[durs.argmin()]),
            )
        )
    return sorted(found, key=lambda one: (-one.total_ns, one.name))


_SIZES = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")


def _launch_forms(ctx: Context) -> tuple[Index, Codes]:
    """Kernel slices with a grid, in id order, and a number for each distinct grid and block."""
    sizes = ", ".join(_SIZES)
    known = ", ".join(f"coalesce({name}, -1) AS {name}" for name in _SIZES)
    got = ctx.trace.tables.execute(
        f"WITH launch AS (SELECT slice, {known} FROM kernels WHERE grid_x IS NOT NULL), "
        f"forms AS (SELECT *, row_number() OVER () AS form FROM (SELECT DISTINCT {sizes} FROM launch)) "
        "SELECT slice::INTEGER AS slice, form::INTEGER AS form "
        f"FROM launch JOIN forms USING ({sizes}) ORDER BY slice"
    ).fetchnumpy()
    return np.asarray(got["slice"], dtype=np.int32), np.asarray(got["form"], dtype=np.int32)


_HARMLESS = frozenset({"gpu_idle", "applications_clocks_setting", "display_clock_setting", "sync_boost"})


def throttle_reasons(gpus: GpuStates) -> list[str]:
    """Active throttle reasons of these GPUs before and after the trial (``throttled_by``).

    Idling and clocks set by the user are left out. AMD's tools state them in words of their own, which are
    not read.
    """
    found: set[str] = set()
    for row in (*gpus.before, *gpus.after):
        found |= _stated(row)
    return sorted(found - _HARMLESS)


def _stated(row: Mapping[str, object]) -> set[str]:
    """Throttle reasons of one reading of one GPU."""
    stated = row.get("throttled_by")
    return {str(reason) for reason in stated} if isinstance(stated, (list, tuple)) else set()


@rule(
    "throttled",
    "The GPU ran below its clocks",
    remedy="more cooling or power, or locked clocks",
    meaning="The driver states a reason for lower clocks (power, temperature, hardware slowdown) of a GPU "
    "that the trial used. The states are read before and after the trial only: a limit that acts in between "
    "is not seen.",
    threshold="provenance.json names a throttle reason other than idling for a GPU that the trial used. "
    "Where nothing tells which GPUs it used, all GPUs of the machine count.",
    advice="Compare only runs in the same state; more cooling, a higher power limit, or locked lower clocks.",
    bound="The GPU's time x (1 - clock / highest clock), by the lowest clock of the SMs that was read "
    "together with such a reason; 0 where no clock was read.",
)
def throttled(ctx: Context) -> Iterator[Hit]:
    """Throttle reasons of the GPUs that the trial used."""
    gpus = used_gpus(ctx.trace, ctx.provenance).states
    reasons = throttle_reasons(gpus)
    if reasons:
        clock, work = _lowest_clock(gpus), ctx.step_gpu
        read = f", SM clock {percent_text(clock)} of the highest" if clock is not None else ""
        yield Hit(
            f"throttle reasons: {', '.join(reasons)}{read}",
            {"reasons": reasons, "clock_share": clock, "clock_of": "highest clock of the SMs"},
            gain=ctx.gpu_gain(work, np.full(len(work), 0.0 if clock is None else 1 - clock)),
        )


def _lowest_clock(gpus: GpuStates) -> float | None:
    """Lowest SM clock over the highest possible one, of readings with a throttle reason; None without one."""
    found = []
    for row in (*gpus.before, *gpus.after):
        now, most = row.get("clocks_sm"), row.get("clocks_max_sm")
        if _stated(row) - _HARMLESS and isinstance(now, (int, float)) and isinstance(most, (int, float)):
            found.append(min(1.0, now / most) if most > 0 else 1.0)
    return min(found, default=None)
