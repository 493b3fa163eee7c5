"""Why steps, launches of a kernel, or trials take different times: shares of the variance, by cause.

What the sampler read (``readings``) is laid beside the times, and ``variance_shares`` divides their variance.
Nothing is proven by this: a share says what goes with what.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from profrun.analysis.step_time import Floats
from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.readings import gpu_readings, host_readings
from profrun.analysis.trace.run_steps import RunSteps
from profrun.analysis.trace.sampled_factors import Sampled
from profrun.analysis.trace.steadiness import Steadiness, steadiness
from profrun.analysis.variance_shares import Factor, VarianceShares, variance_shares
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

LEAST_STEPS = 50
"""Of fewer steps no shares are told."""
MIDDLE = (0.1, 0.9)
"""Quantiles between which the middle 80 % of the steps lie."""
WORTH = 0.02
"""The scatter is worth a line where the middle 80 % is wider than this part of the median."""

Which = Literal["steady", "run"]
"""``steady``: the steps at the steady level. ``run``: all after warm-up, of all phases."""


@dataclass(frozen=True)
class Variation:
    """How much times vary, and with what that goes.

    Attributes:
        of: what took these times, in words, such as 'steady steps'.
        count: how many. median_ns: the middle one.
        middle: width of the middle 80 % of the times, over the median.
        shares: of the variance of the logarithm of the times; None where ``refused`` says why not.
        unread: causes that could not be looked at, with the reason.
        refused: why there are no shares, and what is needed; empty where there are.
        delay_ns: by how much the readings of the GPU were taken to be late; None without such readings.
    """

    of: str
    count: int
    median_ns: float
    middle: float
    shares: VarianceShares | None
    unread: tuple[str, ...] = ()
    refused: str = ""
    delay_ns: int | None = None

    @property
    def worth_a_line(self) -> bool:
        """Is there a scatter that somebody would ask about, and something to say of it?"""
        return self.shares is not None and self.middle > WORTH


@memoised
def step_variation(trace: Trace, which: Which = "steady") -> Variation | None:
    """Why steps take different times; None without steps of the run, or without samples.

    Steps that a profiler records or warms up for are left out, as are the long first steps of the program.

    Args:
        trace: of a trial with samples.
        which: the steps.
    """
    chosen = _chosen(trace, which)
    if chosen is None or not (gpu_readings(trace) or host_readings(trace)):
        return None
    found, kept = chosen
    durs = found.steps.durs[kept]
    of = "steady steps" if which == "steady" else "steps after warm-up"
    if len(kept) < LEAST_STEPS:
        return refused(of, durs, f"at least {LEAST_STEPS} steps are needed, there are {len(kept)}")
    sampled = _sampled(found.steps, kept, trace)
    if len(sampled.inside) < LEAST_STEPS or not sampled.factors:
        return refused(of, durs, sampled.need, sampled.unread)
    mine = kept[sampled.inside]
    factors = [*sampled.factors, *_position(found, mine)]
    return told(of, found.steps.durs[mine].astype(np.float64), factors, sampled)


@dataclass(frozen=True)
class StepVariations:
    """Why steps vary.

    Attributes:
        run: of all steps after warm-up. steady: of those at the steady level.
    """

    run: Variation
    steady: Variation | None


def step_variations(trace: Trace) -> StepVariations | None:
    """Why steps take different times, of the run and of the steady level; None as for ``step_variation``."""
    run = step_variation(trace, "run")
    return None if run is None else StepVariations(run, step_variation(trace, "steady"))


def _chosen(trace: Trace, which: Which) -> tuple[Steadiness, Ints] | None:
    """The steps of the run and the places of those that are meant; None where none were timed."""
    found = steadiness(trace)
    if found is None:
        return None
    steps = found.steps
    warm_up = max((phase.last_step for phase in found.phases if phase.warm_up), default=-1)
    chosen = ~steps.disturbed & (steps.numbers > warm_up)
    if which == "steady":
        chosen &= np.isin(steps.numbers, found.steady_steps)
    return found, np.flatnonzero(chosen).astype(np.int64)


def _sampled(steps: RunSteps, kept: Ints, trace: Trace) -> Sampled:
    return Sampled.of(trace, steps.starts[kept], steps.ends[kept], steps.durs[kept].astype(np.float64))


@dataclass(frozen=True)
class BesideNeighbours:
    """Steps with much and with little other work.

    Attributes:
        busy_ns, quiet_ns: median time of the steps with most, and with least of it.
        busy, quiet: means of the amount of other work of both: cores, or processes on the GPU.
        mean_ns: mean of all steps.
    """

    busy_ns: float
    quiet_ns: float
    busy: float
    quiet: float
    mean_ns: float

    @property
    def ratio(self) -> float:
        """How much longer the steps with most of it take."""
        return self.busy_ns / self.quiet_ns

    @property
    def more(self) -> float:
        """How much more other work there is beside them."""
        return self.busy - self.quiet


def beside_neighbours(trace: Trace, *, gpu: bool) -> BesideNeighbours | None:
    """The quarter of the steps of the run with most other work beside the quarter with the least.

    Args:
        trace: of a trial with samples.
        gpu: processes on the GPU; else cores of the host that others have.

    Returns:
        None where too few steps were sampled, or there is never more of it than at other times.
    """
    chosen = _chosen(trace, "run")
    if chosen is None or len(chosen[1]) < LEAST_STEPS:
        return None
    found, kept = chosen
    sampled = _sampled(found.steps, kept, trace)
    times = found.steps.durs[kept][sampled.inside].astype(np.float64)
    cause = "GPU processes" if gpu else "host"
    amount = next((one.column for one in sampled.factors if one.cause == cause), None)
    if amount is None or np.ptp(amount) == 0:
        return None
    low, high = np.quantile(amount, (0.25, 0.75))
    if gpu:
        low = high = (amount.min() + amount.max()) / 2
    least, most = amount <= low, amount >= high
    return BesideNeighbours(
        busy_ns=float(np.median(times[most])),
        quiet_ns=float(np.median(times[least])),
        busy=float(amount[most].mean()),
        quiet=float(amount[least].mean()),
        mean_ns=float(times.mean()),
    )


def told(of: str, times: Floats, factors: Sequence[Factor], sampled: Sampled) -> Variation:
    """The shares of these times, or that nothing can be told."""
    shares = variance_shares(times, factors)
    if shares is None:
        text = "neighbouring times are so alike that too few of them say something new: run for longer"
        return refused(of, times, text, sampled.unread)
    middle, width = float(np.median(times)), middle_width(times)
    return Variation(of, len(times), middle, width, shares, sampled.unread, "", sampled.delay)


def refused(of: str, times: Floats | Ints, need: str, unread: tuple[str, ...] = ()) -> Variation:
    """That nothing can be told of these times, and what is needed."""
    values = np.asarray(times, dtype=np.float64)
    middle = float(np.median(values)) if len(values) else 0.0
    return Variation(of, len(values), middle, middle_width(values), None, unread, need)


def middle_width(times: Floats) -> float:
    """Width of the middle 80 % of times over their median; 0 of fewer than two."""
    if len(times) < 2:
        return 0.0
    low, high = np.quantile(times, MIDDLE)
    return float((high - low) / np.median(times))


def _position(found: Steadiness, mine: Ints) -> list[Factor]:
    """When a step was: its number, and the level of its phase.

    Phases are found in the times themselves, so they come last and take a degree of freedom each.
    """
    number = found.steps.numbers[mine].astype(np.float64)
    level = np.zeros(len(mine))
    for phase in found.phases:
        level[(number >= phase.first_step) & (number <= phase.last_step)] = np.log(phase.median_ns)
    phases = len(np.unique(level))
    return [
        Factor("drift", "position", number, longer=False, last=True),
        Factor("phase", "position", level, last=True, freedom=max(1, phases - 1)),
    ]
