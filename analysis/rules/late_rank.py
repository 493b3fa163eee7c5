"""How much shorter a step could be if one rank came no later than the others: ``lateness``.

A rank that waits for another one waits inside of a collective kernel. That kernel holds a part of the GPU
while it waits. So a wait costs time in two ways: where nothing else runs, all of it; where kernels run beside
it, what it slows them down (measured on an H200: GEMMs beside a waiting all-reduce take 1.5 to 1.9 times as
long). So the time of a wait that computation covers is neither lost nor free.

Three bounds hold for what could be gained, and the least of them is told.

* What a rank waits for the late one, covered or not, on the rank that waits longest for it.
* All that another rank waits, for whomever: without any wait its step would take that much less.
* The late rank does not wait, so its step is its own computation, its transfers and its idle time. With no
  more computation than another rank has, and no idle time, the step would still take the transfers and the
  computation of that other rank. So at most the two differences go: by how much longer the late rank
  computes, and the time in which its GPU is idle in a step without a profiler.

In the third bound kernels that ran beside a wait count as long as the same kernel (name, blocks, threads)
takes with no communication beside it, and one that never ran so without its time beside the wait. It holds
under a profiler that delays the hosts, too: it compares the work of GPUs, which is nearly the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.idle_time import DeviceIdle
from profrun.analysis.trace.columns import groups
from profrun.analysis.trace.frame import Index, Mask
from profrun.analysis.trace.intervals import Intervals, covered, intersect, union
from profrun.analysis.trace.kernel_columns import kernel_values
from profrun.analysis.trace.occupancy import Floats
from profrun.analysis.trace.rank_waits import rank_waits
from profrun.analysis.trace.roles import COMM, on_device, roles
from profrun.traces.memo import memoised


@dataclass(frozen=True)
class Lateness:
    """What waiting for one rank costs; ns per judged step.

    Attributes:
        waits_ns: time in which collectives of another rank wait for it, a mean over the GPUs of the others.
        bare_ns: the part of that in which the GPU does nothing else.
        bare_total_ns: the same over all GPUs and steps.
        slowed_ns: by how much longer kernels beside the rest take than alone, a mean over the same GPUs;
            kernels that never ran alone are not in it.
        cost_ns: what the waits cost the rank that they cost most, as recorded: both together, and the time
            beside waits of kernels that never ran alone.
        longer_ns: by how much longer its GPU computes than that of any other rank; 0 if it does not.
        bound_ns: how much shorter a step could be at most if it came no later than the others.
    """

    waits_ns: float
    bare_ns: float
    bare_total_ns: int
    slowed_ns: float
    cost_ns: float
    longer_ns: float
    bound_ns: float


@dataclass(frozen=True)
class _Gpu:
    """One GPU; ns per judged step.

    Attributes:
        waits_ns, bare_ns, slowed_ns, cost_ns: as in ``Lateness``, of this GPU.
        all_waits_ns: time in which its collectives wait for any rank.
        compute_ns: what runs beside communication, with kernels beside a wait as long as they take alone.
        least_ns: the same, and kernels that never ran alone without the time that lies beside a wait.
        own_ns: ``compute_ns`` and the communication beside which nothing runs, without waiting.
    """

    waits_ns: float
    bare_ns: float
    slowed_ns: float
    cost_ns: float
    all_waits_ns: float
    compute_ns: float
    least_ns: float
    own_ns: float


@memoised
def lateness(ctx: Context, rank: int) -> Lateness | None:
    """What waiting for a rank costs; None where the trace has no step of it, or of no other rank."""
    mine: list[_Gpu] = []
    others: list[_Gpu] = []
    for one in ctx.waiting:
        late = ctx.frame.processes[one.process]["rank"] == rank
        (mine if late else others).append(_gpu(ctx, one, rank))
    if not mine or not others:
        return None
    most = max(one.compute_ns for one in mine)
    idle = max(0.0, ctx.cost.step_ns - min(one.own_ns for one in mine))
    return Lateness(
        waits_ns=sum(one.waits_ns for one in others) / len(others),
        bare_ns=sum(one.bare_ns for one in others) / len(others),
        bare_total_ns=sum(_bare(ctx, one, rank).total for one in ctx.waiting),
        slowed_ns=sum(one.slowed_ns for one in others) / len(others),
        cost_ns=max(one.cost_ns for one in others),
        longer_ns=max(0.0, most - max(one.compute_ns for one in others)),
        bound_ns=min(
            max(one.waits_ns for one in others),
            min(one.all_waits_ns for one in others),
            max(0.0, most - max(one.least_ns for one in others)) + idle,
        ),
    )


def host_bound_ns(ctx: Context, times: Sequence[tuple[DeviceIdle, int]]) -> float:
    """By how much a step could be shorter at most without some time of the host, ns per step.

    Without several ranks that communicate it is the mean over the GPUs. Ranks that communicate wait for each
    other, so what one of them loses all lose: the rank with most of this time counts, not the mean. And no
    rank's step gets shorter by more than its own such time and what its waits for other ranks cost it.

    Args:
        times: for each GPU the time, ns over all judged steps.
    """
    if ctx.ranks is None or not times:
        return ctx.per_device_ns(sum(ns for _, ns in times))
    own = [(one, ns / max(1, one.span.total) * ctx.cost.recorded_ns) for one, ns in times]
    return min(max(ns for _, ns in own), min(ns + _waits_cost_ns(ctx, one) for one, ns in own))


@memoised
def _waits_cost_ns(ctx: Context, one: DeviceIdle) -> float:
    """What all waits for other ranks cost a GPU, as ``Lateness.cost_ns``."""
    waits = _waits(ctx, one, None)
    bare = intersect(waits, ctx.exposed[one.device]).total
    return (bare + sum(_slowed_ns(ctx, one, waits))) / max(1, len(ctx.judged.spans[one.process][0]))


def _waits(ctx: Context, one: DeviceIdle, rank: int | None) -> Intervals:
    """When collectives of a GPU wait for a rank, or (None) for any, inside the judged steps."""
    source, every = ctx.frame, rank_waits(ctx.trace)
    chosen = source.device_of(every.ids) == one.device
    if rank is not None:
        chosen &= every.late == rank
    start = source.ts[every.ids[chosen]]
    return intersect(one.span, union(start, start + every.wait_ns[chosen]))


def _bare(ctx: Context, one: DeviceIdle, rank: int) -> Intervals:
    """When a GPU waits for a rank and does nothing else."""
    return intersect(_waits(ctx, one, rank), ctx.exposed[one.device])


def _gpu(ctx: Context, one: DeviceIdle, rank: int) -> _Gpu:
    count = max(1, len(ctx.judged.spans[one.process][0]))
    every, mine = _waits(ctx, one, None), _waits(ctx, one, rank)
    slowed, unknown = _slowed_ns(ctx, one, every)
    own_slowed, own_unknown = _slowed_ns(ctx, one, mine)
    bare = _bare(ctx, one, rank).total
    compute = one.busy.total - ctx.exposed[one.device].total - slowed
    return _Gpu(
        waits_ns=mine.total / count,
        bare_ns=bare / count,
        slowed_ns=own_slowed / count,
        cost_ns=(bare + own_slowed + own_unknown) / count,
        all_waits_ns=every.total / count,
        compute_ns=compute / count,
        least_ns=(compute - unknown) / count,
        own_ns=(one.busy.total - slowed - intersect(every, ctx.exposed[one.device]).total) / count,
    )


def _slowed_ns(ctx: Context, one: DeviceIdle, waits: Intervals) -> tuple[float, int]:
    """By how much longer kernels took beside waits than alone, and the time beside waits of those that never
    ran alone; ns over all steps.

    A kernel lost at most the time that it ran beside a wait.
    """
    source = ctx.frame
    kernels, alone = _kernels(ctx, one)
    beside = covered(waits, source.ts[kernels], source.end[kernels])
    lost = np.clip(source.durs(kernels) - alone, 0, beside)  # NaN where none ran alone
    return float(np.nansum(lost)), int(beside[np.isnan(alone)].sum())


@memoised
def _kernels(ctx: Context, one: DeviceIdle) -> tuple[Index, Floats]:
    """The kernels of a GPU but its collectives, and ``_alone_ns`` of each."""
    source, role = ctx.frame, roles(ctx.trace)
    ids = on_device(source, source.gpu_by_time, one.device)
    comm = ids[role[ids] == COMM]
    kernels = ids[(role[ids] != COMM) & source.is_kind(ids, "kernel")]
    busy = covered(union(source.ts[comm], source.end[comm]), source.ts[kernels], source.end[kernels])
    return kernels, _alone_ns(ctx, kernels, busy == 0)


def _alone_ns(ctx: Context, kernels: Index, alone: Mask) -> Floats:
    """For each kernel the median time of equal ones that ran alone, ns, shape (n,); NaN where none did."""
    shape = [
        np.nan_to_num(kernel_values(ctx.trace, column, kernels), nan=-1).astype(np.int64)
        for column in ("blocks", "threads")
    ]
    first, group = groups(ctx.frame.name[kernels], *shape)
    found = np.full(len(first), np.nan)
    durs, mine = ctx.frame.durs(kernels)[alone], group[alone]
    order = np.argsort(mine, kind="stable")
    cuts = np.flatnonzero(np.diff(mine[order])) + 1
    for part in np.split(order, cuts) if len(order) else ():
        found[mine[part[0]]] = np.median(durs[part])
    return found[group]
