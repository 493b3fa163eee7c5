"""The ratio of the step times of two sides: the one estimator behind every ratio that profrun shows.

``step_ratio`` is given two sides and what speaks against comparing them, and returns a ``StepRatio``.
``overhead_ratio`` and ``blocking_ratio`` are given the trials of two points of a run, which differ in the
profiler or in launch blocking on purpose.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from profrun.analysis.compare.comparability import reasons, stopped
from profrun.analysis.compare.compared_trial import ComparedTrial
from profrun.analysis.compare.model import Interval, Reason, Verdict
from profrun.analysis.compare.sides import Side, Sides
from profrun.analysis.compare.stats import Estimate, Statistic, estimate, side_value, verdict

THRESHOLD = 0.01
"""Practical threshold unless the user gives another: smaller changes are the same."""
OVERHEAD_DIFFERENCES = ("profiled", "clock", "work")
"""Codes of what differs on purpose between profiled and unprofiled trials: the profiler is asked about, it
times steps by another clock, and only a profiled trial has the shapes that tell its work."""
BLOCKING_DIFFERENCES = ("blocking",)
"""Codes of what differs on purpose between trials without and with launch blocking."""


@dataclass(frozen=True)
class StepRatio:
    """Step time of side b over step time of side a, the base.

    Attributes:
        ratio: None when the sides cannot be compared; then the reasons that stop tell why.
        ci95: interval of the ratio, None with fewer than two trials on a side.
        mde: smallest relative change that these trials would find with 80 % power, or None.
        trials: on each side. trials_needed: per side, for an ``mde`` of the threshold; None where the trials
            are enough.
        step_ns: of each side the geometric mean over trials of the statistic of each; None where the sides
            cannot be compared.
        reasons: what speaks against the comparison, gravest first.
    """

    verdict: Verdict
    ratio: float | None
    ci95: Interval | None
    mde: float | None
    trials: tuple[int, int]
    trials_needed: int | None
    step_ns: tuple[float, float] | None
    reasons: tuple[Reason, ...]


def step_ratio(
    sides: Sides,
    found: Sequence[Reason],
    *,
    statistic: Statistic = "median",
    threshold: float = THRESHOLD,
    seed: int = 0,
) -> StepRatio:
    """The ratio of two sides, or none when a reason stops it.

    Args:
        found: what speaks against the comparison, as ``comparability.reasons`` returns it.
        threshold: practical threshold as a fraction.
        seed: the same seed gives the same interval.
    """
    a, b = sides
    trials = len(a.trials), len(b.trials)
    if stopped(found):
        return StepRatio("incomparable", None, None, None, trials, None, None, tuple(found))
    result = estimate(a.times, b.times, statistic=statistic, threshold=threshold, seed=seed)
    return StepRatio(
        verdict=verdict(result, threshold),
        ratio=result.ratio,
        ci95=result.ci95,
        mde=result.mde,
        trials=trials,
        trials_needed=_needed(result),
        step_ns=(side_value(a.times, statistic), side_value(b.times, statistic)),
        reasons=tuple(found),
    )


def overhead_ratio(
    unprofiled: Sequence[ComparedTrial], profiled: Sequence[ComparedTrial], *, threshold: float = THRESHOLD
) -> StepRatio:
    """Step time with a profiler over step time without, of trials that are else alike.

    A side without trials gives no ratio and the reason ``no_trials``.
    """
    return _ratio_of_points(unprofiled, profiled, OVERHEAD_DIFFERENCES, threshold)


def blocking_ratio(
    asynchronous: Sequence[ComparedTrial], blocking: Sequence[ComparedTrial], *, threshold: float = THRESHOLD
) -> StepRatio:
    """Step time with launch blocking over step time without, of trials of one variant and collector.

    A side without trials gives no ratio and the reason ``no_trials``.
    """
    return _ratio_of_points(asynchronous, blocking, BLOCKING_DIFFERENCES, threshold)


def _ratio_of_points(
    a: Sequence[ComparedTrial], b: Sequence[ComparedTrial], allow: Collection[str], threshold: float
) -> StepRatio:
    if a and b:
        found = reasons(a, b, allow=allow)
    else:
        empty = "both sides have" if not a and not b else f"side {'b' if a else 'a'} has"
        found = [Reason("no_trials", "critical", f"{empty} no finished trial with a trace")]
    return step_ratio((Side(a), Side(b)), found, threshold=threshold)


def _needed(result: Estimate) -> int | None:
    """Trials per side that would be enough; None where there are so many already."""
    if result.trials_needed is None or min(result.trials) >= result.trials_needed:
        return None
    return result.trials_needed
