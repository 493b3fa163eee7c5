"""How sure a difference is: an interval for the ratio of two sides' step times.

``estimate`` is given the step durations of each trial of two sides and returns the ratio with its interval
and the smallest change that would be found; ``verdict`` says what may be concluded from it. ``proven_below``
is for a table of many ratios. Intervals while trials are still being run are those of ``sequential``.

Steps of one trial share a process, a clock state and a neighbour on the machine, so they are not independent
repeats: only trials are. Each trial counts by one number, the logarithm of the statistic of its steps
(median, mean or p99). The interval is that of Student's t for the difference of the means of these numbers
(``log_difference``). The scatter of the steps only sets a least variance: two trials may agree by chance
better than their steps allow.

profrun 0.1 resampled trials and their steps (a hierarchical bootstrap). That counted the scatter of the steps
twice, because the trials differ by it already. ``bench/intervals.py`` measures both against known truth
(docs/statistics.md). Few trials widen the interval; with one trial per side there is no interval at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from profrun.analysis.compare.log_difference import LogDifference, log_difference
from profrun.analysis.compare.student_t import t_quantile, t_two_sided
from profrun.analysis.step_time import Floats, Statistic, checked, logarithms

RatioVerdict = Literal["faster", "slower", "same", "inconclusive"]

CONFIDENCE = 0.95
POWER = 0.8
COARSEST = 0.05
"""Most that a tick of a clock is of a step; steps that differ by more are not of one tick."""
MOST_TRIALS = 50
"""More trials per side are no advice: nobody runs them."""
MIN_TRIALS = 2
"""With fewer trials per side the spread between trials cannot be estimated."""


@dataclass(frozen=True)
class Estimate:
    """Ratio b / a of a statistic of step time, with its uncertainty.

    Attributes:
        ratio: point estimate; above 1 means b takes longer.
        ci95: interval of the ratio, or None with fewer than two trials on a side.
        mde: smallest relative change (0.02 is 2 %) that these trials would find with 80 % power, or None.
        trials: trials on each side.
        steps: steps on each side.
        trials_needed: trials per side for an ``mde`` of the threshold; None when no spread is known, or when
            more than ``MOST_TRIALS`` would be needed.
        spread: standard deviation between trials of the log statistic of one side, or None.
        p_value: of "both sides take equally long"; 0.05 where an end of ``ci95`` is 1. None without it.
        drift: change of the step time of both sides from the first trial to the last, as a fraction, which
            was taken out of the ratio; None where it was not looked for (``log_difference.TREND_FROM``).
    """

    statistic: Statistic
    ratio: float
    ci95: tuple[float, float] | None
    mde: float | None
    trials: tuple[int, int]
    steps: tuple[int, int]
    trials_needed: int | None
    spread: float | None = None
    p_value: float | None = None
    drift: float | None = None


def estimate(
    a: Sequence[Sequence[float]],
    b: Sequence[Sequence[float]],
    *,
    statistic: Statistic = "median",
    threshold: float = 0.01,
    order: Sequence[Sequence[float]] | None = None,
) -> Estimate:
    """Ratio of b's step time to a's.

    Args:
        a, b: for each trial of the side the durations of its steps, in the same unit, all above 0.
        threshold: practical threshold as a fraction, for ``trials_needed``.
        order: for each trial of a and of b when it was run, in any unit; None where that is not known.

    Raises:
        ValueError: a side has no trial, a trial no step, or a duration is not above 0.
    """
    sides = [checked(side) for side in (a, b)]
    logs = logarithms(sides[0], statistic), logarithms(sides[1], statistic)
    trials = (len(sides[0]), len(sides[1]))
    steps = (sum(map(len, sides[0])), sum(map(len, sides[1])))
    if min(trials) < MIN_TRIALS:
        needed = _needed_from_one_side(logs, threshold)
        ratio = math.exp(float(logs[1].mean() - logs[0].mean()))
        return Estimate(statistic, ratio, None, None, trials, steps, needed)
    found = difference(a, b, statistic=statistic, order=order)
    sure = t_quantile(1 - (1 - CONFIDENCE) / 2, found.freedom)
    return Estimate(
        statistic=statistic,
        ratio=math.exp(found.value),
        ci95=(math.exp(found.value - sure * found.se), math.exp(found.value + sure * found.se)),
        mde=math.expm1((sure + t_quantile(POWER, found.freedom)) * found.se),
        trials=trials,
        steps=steps,
        trials_needed=trials_needed(found.spread, threshold),
        spread=found.spread,
        p_value=p_value_of(found),
        drift=None if found.drift is None else math.expm1(found.drift),
    )


def difference(
    a: Sequence[Sequence[float]],
    b: Sequence[Sequence[float]],
    *,
    statistic: Statistic = "median",
    order: Sequence[Sequence[float]] | None = None,
    evenly: bool = True,
) -> LogDifference:
    """The logarithm of the ratio that ``estimate`` returns, with its standard error and degrees of freedom.

    Args:
        a, b, order: as of ``estimate``, with at least ``MIN_TRIALS`` trials on each side.
        evenly: see ``log_difference``.

    Raises:
        ValueError: as of ``estimate``, or a side has fewer trials.
    """
    sides = [checked(side) for side in (a, b)]
    if min(map(len, sides)) < MIN_TRIALS:
        raise ValueError(f"each side needs at least {MIN_TRIALS} trials")
    logs = logarithms(sides[0], statistic), logarithms(sides[1], statistic)
    return log_difference(
        logs, (_least(sides[0], statistic), _least(sides[1], statistic)), order, evenly=evenly
    )


def mean_interval(trials: Sequence[Sequence[float]]) -> tuple[float, float] | None:
    """95 % interval of the mean of one side, by the same rules as that of a ratio; None without repeats.

    Args:
        trials: for each trial the durations of its steps, in one unit, all above 0.

    Raises:
        ValueError: there is no trial, a trial has no step, or a duration is not above 0.
    """
    side = checked(trials)
    if len(side) < MIN_TRIALS:
        return None
    logs = logarithms(side, "mean")
    variance = max(float(logs.var(ddof=1)), _least(side, "mean"))
    sure = t_quantile(1 - (1 - CONFIDENCE) / 2, len(side) - 1) * math.sqrt(variance / len(side))
    return math.exp(float(logs.mean()) - sure), math.exp(float(logs.mean()) + sure)


def verdict(result: Estimate, threshold: float = 0.01) -> RatioVerdict:
    """What may be concluded from a ratio.

    Returns:
        ``slower`` (``faster``): the interval excludes 1 and the ratio is at least ``threshold`` away from it;
        ``same``: the whole interval lies within the threshold (an equivalence, not a lack of evidence);
        ``inconclusive``: neither can be concluded, or there is no interval.
    """
    if result.ci95 is None:
        return "inconclusive"
    low, high = result.ci95
    if low > 1 and result.ratio >= 1 + threshold:
        return "slower"
    if high < 1 and result.ratio <= 1 / (1 + threshold):
        return "faster"
    if low > 1 / (1 + threshold) and high < 1 + threshold:
        return "same"
    return "inconclusive"


def proven_below(p_values: Sequence[float]) -> float:
    """The p value up to which the ratios of one table are proven to differ from 1; -1 where none is.

    A table of 40 rows whose 95 % intervals are looked at one by one would call 2 of 40 equal rows changed.
    The procedure of Benjamini & Hochberg ("Controlling the False Discovery Rate", 1995) corrects for that:
    where nothing has changed, at most 5 % of all tables have a row that is called changed, and where
    something has, at most 5 % of the rows that are called changed have not. Rows that share noise (clocks)
    are positively dependent, for which this holds too (Benjamini & Yekutieli, 2001).
    """
    ordered = sorted(p_values)
    met = [p for place, p in enumerate(ordered, 1) if p <= (1 - CONFIDENCE) * place / len(ordered)]
    return max(met, default=-1.0)


def proven_verdict(result: Estimate, limit: float, threshold: float) -> RatioVerdict:
    """What may be concluded from one of many ratios; ``limit``: of ``proven_below`` for all of them."""
    found = verdict(result, threshold)
    proven = result.p_value is not None and result.p_value <= limit
    return found if proven or found == "same" else "inconclusive"


def trials_needed(spread: float, threshold: float, *, most: int = MOST_TRIALS) -> int | None:
    """Trials per side so that a change of ``threshold`` is found with 80 % power at 95 % confidence.

    Args:
        spread: standard deviation between trials of the log statistic, one side.

    Returns:
        At least 2; None when even ``most`` trials would not be enough.
    """
    target = math.log1p(threshold)

    def enough(count: int) -> bool:
        freedom = 2 * (count - 1)
        quantiles = t_quantile(1 - (1 - CONFIDENCE) / 2, freedom) + t_quantile(POWER, freedom)
        return quantiles * spread * math.sqrt(2 / count) <= target

    high = MIN_TRIALS
    while not enough(high):  # the left side falls with count: double, then halve the bracket
        if high >= most:
            return None
        high = min(high * 2, most)
    low = max(MIN_TRIALS, high // 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return high


def outlier_steps(steps: Sequence[float], *, width: float = 8.0) -> list[int]:
    """Indices of steps far above the rest: more than ``width`` robust deviations over the median.

    The deviation is 1.4826 x the median absolute deviation (sigma of a normal distribution), and at least 2 %
    of the median, so that noise in a very even trial is no outlier. Outliers stay in all statistics.
    """
    values = np.asarray(steps, dtype=np.float64)
    if len(values) < 3:
        return []
    middle = float(np.median(values))
    deviation = max(1.4826 * float(np.median(np.abs(values - middle))), 0.02 * middle)
    return [int(index) for index in np.nonzero(values > middle + width * deviation)[0]]


def _least(side: Sequence[Floats], statistic: Statistic) -> float:
    """Mean over the trials of the variance that the scatter of a trial's steps gives its log statistic."""
    return float(np.mean([_within(trial, statistic) ** 2 for trial in side]))


def _within(ordered: Floats, statistic: Statistic) -> float:
    """Standard error of the log statistic of one trial, were its steps independent; 0 for a single step.

    Of a quantile q of n steps it is half the distance of the order statistics at n q +- sqrt(n q (1 - q))
    (David & Nagaraja, "Order Statistics", 2003, section 7.1), and a clock that counts in ticks adds the
    rounding error of a tick.
    """
    count = len(ordered)
    if count == 1:
        return 0.0
    if statistic == "mean":
        return float(ordered.std(ddof=1)) / math.sqrt(count) / float(ordered.mean())
    share = 0.99 if statistic == "p99" else 0.5
    middle, width = count * share - 0.5, math.sqrt(count * share * (1 - share))
    low, high = np.interp((middle - width, middle + width), np.arange(count), ordered)
    scatter = math.log(float(high) / float(low)) / 2
    gaps = np.diff(ordered)
    gaps = gaps[gaps > 0]
    ticks = 0 < len(gaps) < count / 2  # steps share few values: the clock counts in ticks
    rounding = min(COARSEST, float(gaps.min()) / float(low)) / math.sqrt(12) if ticks else 0.0
    return math.hypot(scatter, rounding)


def p_value_of(found: LogDifference) -> float:
    """Two-sided p value of "both sides take equally long"."""
    if found.se <= 0:
        return 1.0 if found.value == 0 else 0.0
    return t_two_sided(found.value / found.se, found.freedom)


def _needed_from_one_side(logs: Sequence[Floats], threshold: float) -> int:
    """Trials per side to ask for when one side has a single trial: from the other's spread, at least 3."""
    spreads = [float(side.std(ddof=1)) for side in logs if len(side) >= MIN_TRIALS]
    needed = trials_needed(max(spreads), threshold) if spreads else None
    return max(3, needed or 3)
