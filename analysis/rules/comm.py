"""Communication: time it is exposed, and ranks that others wait for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.finding import FindingRow
from profrun.analysis.rules.host_causes import rows_by_name
from profrun.analysis.rules.idle_time import lies_in
from profrun.analysis.rules.late_rank import Lateness, lateness
from profrun.analysis.rules.rule import Hit, rule
from profrun.analysis.rules.step_cost import SLOWDOWN, WARNING_SHARE, Gain
from profrun.analysis.rules.step_text import span_text
from profrun.analysis.trace.intervals import intersect, subtract, union
from profrun.analysis.trace.wall_time import is_host_collective
from profrun.contract.units import percent_text, rate_text, time_text

SEEN_SHARE = 0.01
"""Part of the step from which the text states by how much kernels are slowed down."""


@rule(
    "exposed-communication",
    "Communication that nothing hides",
    experiments=("bucket-size=100", "bucket-size=10", "nccl-channels=16"),
    remedy="other buckets, or fewer exchanges",
    meaning="Collectives run while no computation does: the GPU moves data, or waits for another rank, and "
    "does nothing else.",
    threshold="Communication not covered by computation takes at least 5 % of the step, on average over the "
    "ranks.",
    advice="Larger or smaller buckets so that all-reduce overlaps backward, gradient accumulation, "
    "compression.",
    bound="The communication that no computation covers; where the step time without a profiler is known, "
    "at most what the computation leaves of it.",
    relies_on=("devices.busy_ns",),
)
def exposed_communication(ctx: Context) -> Iterator[Hit]:
    """Exposed communication by device."""
    found = [(one, ctx.exposed[one.device].total) for one in ctx.waiting]
    exposed = ctx.exposed_comm_ns
    gain = comm_gain(ctx, exposed)
    if not exposed or gain.share < WARNING_SHARE:
        return
    comm = {row.device: row.comm_ns for row in ctx.devices}
    rows = [
        FindingRow(
            ctx.labels.gpus[one.device],
            None,
            ns,
            f"{percent_text(ns / one.span.total if one.span.total else None)} of {ctx.denominator.its}",
        )
        for one, ns in sorted(found, key=lambda item: -item[1])
    ]
    alone = (
        "" if ctx.ranks else "; the trace of one rank does not show how much of it is waiting for other ranks"
    )
    yield Hit(
        f"{time_text(exposed)} of communication {ctx.per} is exposed (mean of {len(rows)} "
        f"{'GPU' if len(rows) == 1 else 'GPUs'}), {percent_text(gain.share)} of {span_text(ctx)}{alone}",
        {
            "exposed_comm_ns": sum(ns for _, ns in found),
            "comm_ns": sum(comm.values()),
            "share": gain.share,
            "share_of": span_text(ctx),
        },
        gain=gain,
        rows=rows if len(rows) > 1 else (),
    )


def comm_gain(ctx: Context, ns: float) -> Gain:
    """The gain of communication that no computation covers, ns per step.

    A rank that comes early waits inside the collective for the host of a later one. So under a profiler this
    is host time, and without one it can be no more than the computation leaves of the step.
    """
    left = min(ns, ctx.cost.step_ns - compute_ns(ctx))
    return ctx.cost.host_gain(left, beside_ns=ctx.cost.step_ns)


def compute_ns(ctx: Context) -> float:
    """Time in which a GPU works on anything but communication, ns per step."""
    return ctx.per_device_ns(sum(one.busy.total - ctx.exposed[one.device].total for one in ctx.waiting))


@rule(
    "cpu-communication",
    "Collectives on the CPU that nothing hides",
    experiments=("bucket-size=100", "bucket-size=10"),
    remedy="larger buckets, or fewer exchanges",
    meaning="A program without a GPU exchanges tensors between its processes (gloo), and no operator runs at "
    "the same time: the process waits for another one, or for the exchange.",
    threshold="No GPU works in the steps. Collectives of gloo with no operator beside them, in any thread of "
    "their process, take at least 5 % of the recorded step.",
    advice="Larger buckets make fewer collectives, and each costs a fixed time. Smaller ones can overlap "
    "with the backward. Gradient accumulation exchanges less often.",
    bound="The time of collectives, also beside operators, because the threads of both share the cores. "
    "Where the step time without a profiler is known, at most what its operators leave of it, if a profiler "
    f"makes them {SLOWDOWN:g} times slower.",
    relies_on=("steps.dur_ns",),
)
def cpu_communication(ctx: Context) -> Iterator[Hit]:
    """Exposed collectives of programs on the CPU."""
    if ctx.waiting or not ctx.steps:
        return
    ids = ctx.in_steps(ctx.named("range", is_host_collective))
    whole = exposed = work = 0
    for process in np.unique(ctx.frame.process_of(ids)):
        steps = union(*ctx.judged.host[int(process)])
        operators = intersect(steps, lies_in(ctx.frame, ctx.frame.of("op"), int(process)))
        collectives = intersect(steps, lies_in(ctx.frame, ids, int(process)))
        whole += collectives.total
        exposed += subtract(collectives, operators).total
        work += operators.total
    each, rate = ctx.per_step_ns(exposed), len(ids) / ctx.step_count
    if not exposed or each < WARNING_SHARE * ctx.cost.recorded_ns:
        return
    left = ctx.cost.left_by(ctx.per_step_ns(work))
    yield Hit(
        f"{time_text(each)} {ctx.per} pass in collectives on the CPU ({rate_text(rate)} {ctx.rate}) while no "
        f"operator runs, {percent_text(each / ctx.cost.recorded_ns)} of the recorded step",
        {
            "exposed_ns_per_step": each,
            "beside_operators_ns_per_step": ctx.per_step_ns(whole - exposed),
            "operators_ns_per_step": ctx.per_step_ns(work),
            "collectives_per_step": rate,
        },
        slices=ctx.worst(ids),
        gain=ctx.cost.host_gain(min(ctx.per_step_ns(whole), left)),
        rows=rows_by_name(ctx, ids),
    )


@rule(
    "straggler",
    "Ranks wait for one rank",
    remedy="compare that rank's data, host and clocks",
    meaning="In a collective every rank waits for the last to arrive; the rank whose collectives are "
    "shortest is the one that the others wait for.",
    threshold="At least two ranks in the trace. The waits for one of them take another rank at least 5 % of "
    "the step: those with no other work on the GPU, and by how much kernels beside the others are slowed "
    "down. What could be gained is at least 5 %, too.",
    advice="Look at that rank: its data, its clocks, its host; balance sequence lengths and expert loads.",
    bound="The least of three: what another rank waits for this one inside of collectives, whether other "
    "work hides it or not; all that another rank waits; and by how much longer this rank computes than the "
    "others (kernels beside a wait count as long as they take alone) and the time in which its GPU is idle.",
    relies_on=("devices.busy_ns",),
)
def straggler(ctx: Context) -> Iterator[Hit]:
    """Waiting time by the rank waited for."""
    if ctx.ranks is None:
        return
    ranked = sorted(ctx.ranks.ranks, key=lambda row: -row.waited_for_ns)
    worst = ranked[0]
    late = lateness(ctx, worst.rank)
    if late is None:
        return
    gain = ctx.cost.host_gain(late.bound_ns, beside_ns=ctx.cost.step_ns)
    if gain.share < WARNING_SHARE or late.cost_ns < WARNING_SHARE * ctx.cost.step_ns:
        return
    mutual = len(ranked) > 1 and ranked[1].waited_for_ns >= worst.waited_for_ns / 2
    yield Hit(
        _waits_text(ctx, worst.rank, late) + (_also_waits(ctx, ranked[1].rank) if mutual else ""),
        {
            "rank": worst.rank,
            "waited_for_ns": worst.waited_for_ns,
            "waited_for_ns_per_step": late.waits_ns,
            "not_covered_ns_per_step": late.bare_ns,
            "slowed_kernels_ns_per_step": late.slowed_ns,
            "computes_longer_ns_per_step": late.longer_ns,
            "collectives": ctx.ranks.matched,
        },
        gain=gain,
        rows=[
            FindingRow(
                ctx.labels.rank_on_host(row.rank), row.last, row.waited_for_ns, "came last, and others waited"
            )
            for row in ranked
        ],
        extent="" if mutual else ctx.labels.rank_on_host(worst.rank),
    )


def _waits_text(ctx: Context, rank: int, late: Lateness) -> str:
    """Who waits for whom, what that costs, and whether the late rank computes longer."""
    name = ctx.labels.rank_on_host(rank)
    waits = f"the other ranks wait {time_text(late.waits_ns)} {ctx.per} for {name} inside of collectives"
    if late.bare_ns < late.waits_ns:
        waits += f", {time_text(late.bare_ns)} of it with no other work on the GPU"
    if late.slowed_ns >= SEEN_SHARE * ctx.cost.step_ns:
        waits += f", and kernels beside the rest take {time_text(late.slowed_ns)} longer"
    if late.longer_ns >= WARNING_SHARE * ctx.cost.step_ns:
        waits += f"; {name} computes {time_text(late.longer_ns)} {ctx.per} longer than they do"
    return waits


def _also_waits(ctx: Context, rank: int) -> str:
    """That another rank is waited for, too."""
    late = lateness(ctx, rank)
    waits = f"; they wait {time_text(late.waits_ns)} for {ctx.labels.rank(rank)}" if late else ""
    return f"{waits}: no rank alone is late"
