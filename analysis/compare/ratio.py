"""The ratio of the step times of two sides: the one estimator behind every ratio that profrun shows.

``step_ratio`` is given two sides and what speaks against comparing them, and returns a ``StepRatio``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from profrun.analysis.compare.comparability import stopped, told_too
from profrun.analysis.compare.model import Reason, StepRatio
from profrun.analysis.compare.sides import Sides, order_of
from profrun.analysis.compare.stats import Estimate, estimate, trials_needed, verdict
from profrun.analysis.step_time import Statistic, side_value
from profrun.contract.units import change_text

THRESHOLD = 0.01
"""Practical threshold unless the user gives another: smaller changes are the same."""
OVERHEAD_DIFFERENCES = ("profiled", "clock", "work")
"""To allow where unprofiled trials are compared with profiled ones to find the overhead of the profiler: it
times steps by another clock, and only a profiled trial has the shapes that tell its work."""
BLOCKING_DIFFERENCES = ("blocking",)
"""To allow where trials without launch blocking are compared with blocking ones."""
TIMING_DIFFERENCES = ("throttled", "clock")
"""To allow where calls are compared and not times."""


def step_ratio(
    sides: Sides,
    found: Sequence[Reason],
    *,
    statistic: Statistic = "median",
    threshold: float = THRESHOLD,
) -> StepRatio:
    """The ratio of two sides, or none when a reason stops it.

    Args:
        found: what speaks against the comparison, as ``comparability.reasons`` returns it.
        threshold: practical threshold as a fraction.
    """
    a, b = sides
    trials = len(a.trials), len(b.trials)
    if stopped(found):
        return StepRatio("incomparable", None, None, None, trials, None, None, None, tuple(found))
    result = estimate(a.times, b.times, statistic=statistic, threshold=threshold, order=order_of(sides))
    return StepRatio(
        verdict=verdict(result, threshold),
        ratio=result.ratio,
        ci95=result.ci95,
        mde=result.mde,
        trials=trials,
        trials_needed=_needed(result),
        trials_for_this=_needed_for_this(result),
        step_ns=(side_value(a.times, statistic), side_value(b.times, statistic)),
        reasons=tuple(told_too(found, _drift(result, threshold))),
    )


def _drift(result: Estimate, threshold: float) -> list[Reason]:
    """That the ratio is not that of the two step times, because drift was taken out of it."""
    if result.drift is None or abs(math.log1p(result.drift)) <= math.log1p(threshold):
        return []
    text = f"step times drifted by {change_text(1 + result.drift)} from the first trial to the last"
    why = "the trials were run in turns, so the ratio and its interval are without that drift"
    return [Reason("drift", "info", text, why)]


def _needed(result: Estimate) -> int | None:
    """Trials per side that would be enough; None where there are so many already."""
    if result.trials_needed is None or min(result.trials) >= result.trials_needed:
        return None
    return result.trials_needed


def _needed_for_this(result: Estimate) -> int | None:
    """Trials per side that would be enough for the change that was seen; None where there are so many."""
    change = math.expm1(abs(math.log(result.ratio)))
    if result.spread is None or change == 0:
        return None
    needed = trials_needed(result.spread, change)
    return None if needed is None or min(result.trials) >= needed else needed
