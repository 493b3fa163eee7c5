"""Why the same work takes different times: launches, the window, the clock, neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.finding import FindingRow
from profrun.analysis.rules.rule import Hit, rule
from profrun.analysis.rules.throttle import sampled_gpus, throttle_reasons
from profrun.analysis.trace.columns import groups
from profrun.analysis.trace.equal_launches import equal_launches
from profrun.analysis.trace.frame import Index
from profrun.analysis.trace.kernel_variation import launch_variation
from profrun.analysis.trace.steadiness import window_phase
from profrun.analysis.trace.used_gpus import used_gpus
from profrun.analysis.trace.variation import WORTH, beside_neighbours, step_variation
from profrun.analysis.trace.variation_text import share_text, shares_text, variation_text
from profrun.contract.units import change_text, percent_text, time_text

VARIATION = 0.15
VARIATION_CALLS = 10
VARIATION_SHARE = 0.05
MOSTLY = 0.5
SURELY = 0.3
MOST_SLOPE = 1.5
NEIGHBOUR_SHARE = 0.1
NEIGHBOUR_SLOWER = 0.02
NEIGHBOUR_CORES = 0.25


@rule(
    "kernel-variance",
    "The same kernel takes different times",
    severity="info",
    meaning="Equal launches (name, grid, block and op shapes) should take equal time; they do not, so "
    "clocks, throttling, memory contention, a neighbour or the values of the data changed during the "
    "recording.",
    threshold="A kernel with at least 10 equal launches and at least 5 % of the kernel time whose standard "
    "deviation is over 15 % of its mean.",
    advice="Lock clocks, look at the counters of the sampler under the timeline (clock, power, temperature), "
    "compare medians over several runs.",
    relies_on=("kernels",),
)
def kernel_variance(ctx: Context) -> Iterator[Hit]:
    """Coefficient of variation over equal launches."""
    category = {row.name: row.category for row in ctx.kernels}
    short = {row.name: row.short for row in ctx.kernels}
    found = [one for one in _uneven_launches(ctx) if category[one.name] != "collective"]
    if not found:
        return
    first = found[0]
    why = _why(ctx, first)
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
    ids: Index
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
    source, equal = ctx.frame, equal_launches(ctx.trace)
    keep = equal.whole & np.isin(equal.ids, ctx.step_kernels)
    ids = equal.ids[keep]
    if not len(ids):
        return []
    first, group = groups(equal.group[keep])
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
                ids=mine[np.argsort(source.ts[mine], kind="stable")],
                calls=int(calls[number]),
                mean_ns=float(mean[number]),
                stdev_ns=float(deviation[number]),
                total_ns=int(total[number]),
                slowest=int(mine[durs.argmax()]),
                fastest=int(mine[durs.argmin()]),
            )
        )
    return sorted(found, key=lambda one: (-one.total_ns, one.name))


def _why(ctx: Context, one: _EqualLaunches) -> str:
    """What goes with the times of these launches, else the reasons of the driver before and after."""
    found = launch_variation(ctx.trace, one.ids, "equal launches")
    if found.shares is not None and found.shares.causes[0].low > 0:
        return f"; {shares_text(found.shares)}"
    reasons = [] if sampled_gpus(ctx.trace) else throttle_reasons(used_gpus(ctx.trace, ctx.provenance).states)
    return f"; throttled: {', '.join(reasons)}" if reasons else ""


@rule(
    "unsteady-window",
    "The window is not in the steady phase",
    severity="warning",
    meaning="The recorded steps are not typical of the run: they lie in another phase than most steps, or "
    "they are shorter because the GPU was idle while the profiler started. Boost clocks after idling, "
    "warm-up and compilation are the usual reasons.",
    threshold="The median step of the window's phase differs by over 2 % from that of the steady phase, or "
    "the steps that a profiler recorded are over 2 % shorter than the steady ones. Trials without a profiler "
    "record nothing, so it does not fire for them.",
    advice="Let the window open in the steady phase (`schedule: {wait: steady}`), or later by hand "
    "(`schedule: {wait: N}`); times of trials without a profiler are those of the steady phase already.",
)
def unsteady_window(ctx: Context) -> Iterator[Hit]:
    """The phase of the window beside the steady one."""
    if ctx.trace.meta.get("collector") == "none":
        return  # nothing is recorded in its window, and its steps count by their phase
    found = window_phase(ctx.trace)
    if found is None or not found.matters:
        return
    ratio = found.ratio
    yield Hit(
        found.text,
        {
            "window_ratio": ratio,
            "window_first_step": found.first_step,
            "window_last_step": found.last_step,
            "window_median_ns": found.ns,
            "steady_first_step": found.steady_first_step,
            "steady_last_step": found.steady_last_step,
            "steady_median_ns": found.steady_ns,
            "why": found.why,
        },
        extent=f"{change_text(ratio)} than that",
    )


@rule(
    "clock-variance",
    "The clock makes step times jump",
    severity="info",
    meaning="The times of the steps change when the clock changes. So they depend on power, temperature and "
    "the room as much as on the program.",
    threshold="The middle 80 % of the steps after warm-up is wider than 2 % of their median, at least 50 % "
    "of the variance goes with the clock (lowest end of the 95 % interval at least 30 %), and the steps get "
    "longer by at most 1.5 times as much as the clock falls. Needs 50 steps and 20 readings.",
    advice="Compare steady phases and interleaved repeats of both sides; longer trials; where you may, pin "
    "a clock that the GPU can hold (nvidia-smi -lgc, amd-smi set --perf-determinism) and say so with the "
    "result.",
)
def clock_variance(ctx: Context) -> Iterator[Hit]:
    """The clock's share of the variance of the steps."""
    found = step_variation(ctx.trace, "run")
    if found is None or found.shares is None or found.middle <= WORTH:
        return
    for cause, factor in (("clock", "SM clock"), ("CPU clock", "CPU clock")):
        share, slope = found.shares.of(cause), found.shares.slopes.get(factor, 0.0)
        if share is None or share.share < MOSTLY or share.low < SURELY or not 0 < slope <= MOST_SLOPE:
            continue
        yield Hit(
            f"step times vary by {variation_text(found)}",
            {
                "clock": factor,
                "share": share.share,
                "share_of": "variance of the logarithm of the steps' times after warm-up",
                "share_low": share.low,
                "share_high": share.high,
                "spread": found.shares.spread,
                "steps": found.shares.count,
                "slope": slope,
            },
        )
        return


@rule(
    "noisy-neighbour",
    "Other work makes steps slower",
    remedy="close what else runs, or reserve the machine",
    meaning="Other processes on the cores of the host, or on the GPU, had work while steps were slower.",
    threshold="At least 10 % of the variance of the steps' times goes with other work (lowest end of the 95 "
    "% interval above 0), and steps with much of it take at least 2 % longer than steps with little. On the "
    "host these are the quarters of the steps with most and with least of it, at least 0.25 cores apart; on "
    "the GPU the steps with more and with fewer processes, at least 0.5 processes apart.",
    advice="Close what else runs on the machine, reserve it as a whole (Slurm: --exclusive), give the "
    "program cores of its own (taskset, cpusets); MIG or another GPU where the neighbour is on the GPU.",
    bound="Mean of the steps' times less the median of the steps with little other work; of "
    "the host at most the part of the step in which the GPU does not work.",
)
def noisy_neighbour(ctx: Context) -> Iterator[Hit]:
    """Steps beside other work, on the host or on the GPU."""
    found = step_variation(ctx.trace, "run")
    if found is None or found.shares is None:
        return
    for cause, of_gpu in (("GPU processes", True), ("host", False)):
        share, beside = found.shares.of(cause), beside_neighbours(ctx.trace, gpu=of_gpu)
        if share is None or beside is None or share.share < NEIGHBOUR_SHARE or share.low <= 0:
            continue
        if beside.ratio < 1 + NEIGHBOUR_SLOWER or beside.more < (0.5 if of_gpu else NEIGHBOUR_CORES):
            continue
        saved = max(0.0, beside.mean_ns - beside.quiet_ns)
        what = "processes on the GPU" if of_gpu else "cores busy with other work"
        yield Hit(
            f"steps take {time_text(beside.busy_ns)} with {beside.busy:.1f} {what}, "
            f"{time_text(beside.quiet_ns)} with {beside.quiet:.1f}; {share_text(share)} of the variance "
            "goes with it",
            {
                "where": "gpu" if of_gpu else "host",
                "busy_ns": beside.busy_ns,
                "quiet_ns": beside.quiet_ns,
                "busy_amount": beside.busy,
                "quiet_amount": beside.quiet,
                "amount_of": what,
                "share": share.share,
                "share_of": "variance of the logarithm of the steps' times after warm-up",
                "share_low": share.low,
                "share_high": share.high,
            },
            gain=ctx.cost.gpu_gain(saved, saved) if of_gpu else ctx.cost.host_gain(saved),
            extent=f"{change_text(beside.ratio)} beside it",
        )
        return
