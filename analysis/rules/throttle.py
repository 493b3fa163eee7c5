"""Whether the GPU ran at its speed: while the program ran where it was sampled, else before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.rule import Hit, rule
from profrun.analysis.rules.step_cost import Gain
from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.readings import Floats, Quantities, Readings
from profrun.analysis.trace.sampled_factors import slowing, used_gpu_readings
from profrun.analysis.trace.steadiness import steadiness
from profrun.analysis.trace.used_gpus import used_gpus
from profrun.contract.provenance import GpuStates
from profrun.contract.sampling import Reason
from profrun.contract.units import percent_text
from profrun.traces.memo import memoised
from profrun.traces.trace import Trace

LEAST_READINGS = 5
"""So many readings of the reasons while the steady steps run tell more than states before and after."""
REASON_SHARE = 0.1
"""A reason is told from this part of the time on."""
CLOCK_LOST = 0.01
"""A reason is told where the clock was lower by this part."""
POWER: tuple[Reason, ...] = ("power cap", "power brake")
HEAT: tuple[Reason, ...] = ("thermal", "hardware slowdown")

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
    "is not seen. Where the GPU was sampled while it worked, the rules power-capped and thermal-throttled "
    "tell instead.",
    threshold="provenance.json names a throttle reason other than idling for a GPU that the trial used. "
    "Where nothing tells which GPUs it used, all GPUs of the machine count.",
    advice="Compare only runs in the same state; more cooling, a higher power limit, or locked lower clocks.",
    bound="The GPU's time x (1 - clock / highest clock), by the lowest clock of the SMs that was read "
    "together with such a reason; 0 where no clock was read.",
)
def throttled(ctx: Context) -> Iterator[Hit]:
    """Throttle reasons of the GPUs that the trial used."""
    if sampled_gpus(ctx.trace):
        return
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


@dataclass(frozen=True)
class Sampled:
    """Readings of a GPU while the steady steps ran.

    Attributes:
        gpu: all that was read of it.
        reasons: those readings of its throttle reasons. lengths: how long each holds, ns, int64, shape (n,).
        clock: of the SMs meanwhile, MHz, float64, shape (n,).
        highest: the highest clock of the SMs that the tool states or that was read in the trial, MHz.
    """

    gpu: Quantities
    reasons: Readings
    lengths: Ints
    clock: Floats
    highest: float

    def slowed(self, reasons: Sequence[Reason]) -> Floats:
        """1 where one of the reasons acts, else 0, shape (n,)."""
        return slowing(self.reasons, reasons).values


@memoised
def sampled_gpus(trace: Trace) -> Sequence[Quantities]:
    """GPUs that were read at least ``LEAST_READINGS`` times while the steady steps ran, or the recording."""
    start, end = steady_span(trace)
    return [
        one
        for one in used_gpu_readings(trace)
        if {"reasons", "sm_clock"} <= one.keys()
        and len(one["reasons"].between(start, end).times) >= LEAST_READINGS
    ]


def steady_span(trace: Trace) -> tuple[int, int]:
    """From the first steady step to the end of the last, ns; the whole recording where no steps are known."""
    found = steadiness(trace)
    if found is None or not len(found.steady_steps):
        low, high = trace.sql("SELECT min(ts_ns), max(ts_ns + dur_ns) FROM slices").rows[0]
        return int(low or 0), int(high or 0)
    steady = np.isin(found.steps.numbers, found.steady_steps)
    return int(found.steps.starts[steady][0]), int(found.steps.ends[steady][-1])


def _while_steady(ctx: Context) -> list[Sampled]:
    """Each sampled GPU with its readings while the steady steps ran."""
    start, end = steady_span(ctx.trace)
    stated = used_gpus(ctx.trace, ctx.provenance).states
    most = [row.get("clocks_max_sm") for row in (*stated.before, *stated.after)]
    known = [float(value) for value in most if isinstance(value, (int, float)) and value > 0]
    found = []
    for one in sampled_gpus(ctx.trace):
        read = one["reasons"].between(start, end)
        edges = np.append(read.times, max(end, int(read.times[-1]) + 1))
        clock = one["sm_clock"].means(edges[:-1], edges[1:])
        highest = max([*known, float(one["sm_clock"].values.max())])
        found.append(Sampled(one, read, np.diff(edges), clock, highest))
    return found


def _slowed(ctx: Context, reasons: tuple[Reason, ...], what: str) -> Iterator[Hit]:
    """The GPU that lost most of its clock while one of these reasons acted."""
    best: tuple[float, Sampled, Floats] | None = None
    for one in _while_steady(ctx):
        active = one.slowed(reasons) * one.lengths
        if active.sum() < REASON_SHARE * one.lengths.sum():
            continue
        lost = float((active * np.clip(1 - one.clock / one.highest, 0, 1)).sum() / one.lengths.sum())
        if lost >= CLOCK_LOST and (best is None or lost > best[0]):
            best = (lost, one, active)
    if best is None:
        return
    lost, one, active = best
    share = float(active.sum() / one.lengths.sum())
    mean = float(np.average(one.clock, weights=active))
    watts = _power(one, active)
    drawn = f" at {watts:.0f} W" if watts is not None else ""
    names = [name for name in reasons if one.slowed((name,)).any()]
    yield Hit(
        f"{what} acts in {percent_text(share)} of the time of the steady steps: the SMs run at {mean:.0f} of "
        f"{one.highest:.0f} MHz then{drawn}",
        {
            "share": share,
            "share_of": "time of the steady steps",
            "reasons": names,
            "clock_mhz": mean,
            "highest_clock_mhz": one.highest,
            "clock_lost_share": lost,
            "power_w": watts,
            "readings": len(one.lengths),
        },
        gain=_clock_gain(ctx, lost),
        extent=f"{percent_text(lost)} of the clock",
        at_most="warning",
    )


def _power(one: Sampled, weights: Floats) -> float | None:
    """Mean power while a reason acts, W."""
    read = one.gpu.get("power") or one.gpu.get("power_average")
    if read is None:
        return None
    times = one.reasons.times
    return float(np.average(read.means(times, times + one.lengths), weights=weights))


def _clock_gain(ctx: Context, lost: float) -> Gain:
    """What a clock that never falls would gain: the GPU's time by the part that was lost.

    Without a recording of the GPU's work the whole step counts as its time.
    """
    work = ctx.step_gpu
    if len(work):
        return ctx.gpu_gain(work, np.full(len(work), lost))
    saved = ctx.cost.recorded_ns * lost
    return ctx.cost.gpu_gain(saved, saved)


_BOUND = (
    "The GPU's time in the step x the part of the clock that was lost: 1 - clock / highest clock, mean over "
    "the time of the steady steps, 0 where the reason did not act. Without GPU records the whole step counts "
    "as the GPU's time."
)


def _threshold(reasons: Sequence[Reason]) -> str:
    return (
        f"The sampler read the reason ({', '.join(reasons)}) in at least 10 % of the time of the steady "
        "steps, and the clock was at least 1 % lower than the highest. Needs 5 readings in that time."
    )


@rule(
    "power-capped",
    "The power limit lowers the clock",
    remedy="less power per flop, or a higher limit",
    meaning="At the highest clock the GPU would need more power than its limit, so the driver lowers the "
    "clock of the SMs. This is normal for a busy GPU. The first steps of a run can be faster, because the "
    "limit does not act yet.",
    threshold=_threshold(POWER),
    advice="Compare trials in this state (`schedule: {wait: steady}`), not with the first moments of a run. "
    "Lower precision, and less data moved, need less power per flop; where you may, raise the limit "
    "(nvidia-smi -pl, amd-smi set --power-cap).",
    bound=f"{_BOUND} A warning at most, because a limit can rarely be raised so far.",
)
def power_capped(ctx: Context) -> Iterator[Hit]:
    """Time with the power cap."""
    yield from _slowed(ctx, POWER, "the power limit")


@rule(
    "thermal-throttled",
    "The GPU is too hot for its clock",
    remedy="more cooling",
    meaning="The GPU lowers its clock to stay below its highest temperature, or its hardware slows it down "
    "at once. How much depends on the room, the fans and the neighbours in the rack: times are not "
    "repeatable.",
    threshold=_threshold(HEAT),
    advice="More air, a free slot beside the card, clean filters, a lower power limit; compare only runs in "
    "the same state.",
    bound=f"{_BOUND} A warning at most, because the power limit often remains when the heat is gone.",
)
def thermal_throttled(ctx: Context) -> Iterator[Hit]:
    """Time with a thermal reason."""
    yield from _slowed(ctx, HEAT, "heat")
