"""How sure a difference is: hierarchical bootstrap on the ratio of two sides' step times.

``estimate`` is given the step durations of each trial of two sides and returns the ratio with its interval
and the smallest change that would be found; ``verdict`` says what may be concluded from it. ``proven_below``
is for a table of many ratios.

Steps of one trial share a process, a clock state and a neighbour on the machine, so they are not independent
repeats: only trials are. The statistic of each trial (median, mean or p99 of its steps) is averaged over the
trials of a side on the log scale, and the log ratio of the sides gets an interval from

* resampling trials, then steps inside each (Davison & Hinkley, "Bootstrap Methods and their Application",
  1997, section 3.8, strategy 1 for hierarchical data), which gives a standard error for each side,
* times sqrt(n / (n - 1)), because resampling n trials under-states the spread of n trials by that factor
  (Hesterberg, "What Teachers Should Know About the Bootstrap", 2015, section 3.2),
* and Student's t with Welch-Satterthwaite degrees of freedom from the trials, not from the steps.

Few trials therefore widen the interval; with one trial per side there is no interval at all.
``bench/intervals.py`` measures false alarms, coverage and power against known truth (docs/statistics.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from profrun.analysis.compare.student_t import t_quantile, t_two_sided
from profrun.analysis.step_time import Floats, Statistic, checked, logarithms, p99_index

RatioVerdict = Literal["faster", "slower", "same", "inconclusive"]

CONFIDENCE = 0.95
POWER = 0.8
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
        trials_needed: trials per side for an ``mde`` of the threshold, or None when no spread is known.
        spread: standard deviation between trials of the log statistic of one side, or None.
        p_value: of "both sides take equally long"; 0.05 where an end of ``ci95`` is 1. None without it.
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


def estimate(
    a: Sequence[Sequence[float]],
    b: Sequence[Sequence[float]],
    *,
    statistic: Statistic = "median",
    threshold: float = 0.01,
    resamples: int = 10_000,
    seed: int = 0,
) -> Estimate:
    """Ratio of b's step time to a's.

    Args:
        a, b: for each trial of the side the durations of its steps, in the same unit, all above 0.
        threshold: practical threshold as a fraction, for ``trials_needed``.
        resamples: number of bootstrap resamples.
        seed: the same seed gives the same interval.

    Raises:
        ValueError: a side has no trial, a trial no step, or a duration is not above 0.
    """
    sides = [checked(side) for side in (a, b)]
    logs = [logarithms(side, statistic) for side in sides]
    log_ratio = float(logs[1].mean() - logs[0].mean())
    trials = (len(sides[0]), len(sides[1]))
    steps = (sum(map(len, sides[0])), sum(map(len, sides[1])))
    if min(trials) < MIN_TRIALS:
        needed = _needed_from_one_side(logs, threshold)
        return Estimate(statistic, math.exp(log_ratio), None, None, trials, steps, needed)
    rng = np.random.default_rng(seed)
    variances = [_bootstrap_variance(side, statistic, resamples, rng) for side in sides]
    se = math.sqrt(sum(variances))
    freedom = _welch(variances, trials)
    half = t_quantile(1 - (1 - CONFIDENCE) / 2, freedom) * se
    mde = math.expm1((t_quantile(1 - (1 - CONFIDENCE) / 2, freedom) + t_quantile(POWER, freedom)) * se)
    spread = math.sqrt(sum(v * n for v, n in zip(variances, trials, strict=True)) / 2)
    return Estimate(
        statistic,
        math.exp(log_ratio),
        (math.exp(log_ratio - half), math.exp(log_ratio + half)),
        mde,
        trials,
        steps,
        trials_needed(spread, threshold),
        spread,
        _p_value(log_ratio, se, freedom),
    )


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


def trials_needed(spread: float, threshold: float, *, most: int = 10_000) -> int | None:
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


def _bootstrap_variance(
    side: Sequence[Floats], statistic: Statistic, resamples: int, rng: np.random.Generator
) -> float:
    """Variance of the side's mean log statistic over hierarchical resamples, corrected for few trials."""
    count = len(side)
    logs = np.log(np.stack([_resampled(trial, statistic, resamples * count, rng) for trial in side]))
    chosen = rng.integers(0, count, size=(resamples, count))
    # each draw of a trial resamples its steps anew
    draws = np.arange(resamples * count).reshape(resamples, count)
    return float(logs[chosen, draws].mean(axis=1).var()) * count / (count - 1)


def _resampled(ordered: Floats, statistic: Statistic, draws: int, rng: np.random.Generator) -> Floats:
    """The statistic of ``draws`` resamples (with replacement) of the ordered steps of one trial.

    The k-th smallest of m uniform draws is distributed as Beta(k, m-k+1), and the next one is a uniform
    continuation of it; the empirical quantile function maps both to steps. So no resample has to be drawn:
    the result is exact and costs the same for 100 steps and for 100 000.

    Returns:
        float64, shape (draws,).
    """
    count = len(ordered)
    if statistic == "mean":
        return _resampled_means(ordered, draws, rng)
    rank = p99_index(count) + 1 if statistic == "p99" else (count + 1) // 2
    uniform = rng.beta(rank, count - rank + 1, size=draws)
    value = ordered[np.minimum((uniform * count).astype(np.int64), count - 1)]
    if statistic == "p99" or count % 2 == 1:
        return value
    following = uniform + (1 - uniform) * rng.beta(1, count - rank, size=draws)
    return (value + ordered[np.minimum((following * count).astype(np.int64), count - 1)]) / 2


def _resampled_means(ordered: Floats, draws: int, rng: np.random.Generator) -> Floats:
    count = len(ordered)
    means = np.empty(draws)
    batch = max(1, 2_000_000 // count)  # at most 16 MB of indices at a time
    for start in range(0, draws, batch):
        size = min(batch, draws - start)
        means[start : start + size] = ordered[rng.integers(0, count, size=(size, count))].mean(axis=1)
    return means


def _p_value(log_ratio: float, se: float, freedom: float) -> float:
    if se <= 0:
        return 1.0 if log_ratio == 0 else 0.0
    return t_two_sided(log_ratio / se, freedom)


def _welch(variances: Sequence[float], trials: tuple[int, int]) -> float:
    """Welch-Satterthwaite degrees of freedom; the smaller side's when there is no spread at all."""
    total = sum(variances)
    if total <= 0:
        return float(min(trials) - 1)
    return total**2 / sum(v**2 / (n - 1) for v, n in zip(variances, trials, strict=True))


def _needed_from_one_side(logs: Sequence[Floats], threshold: float) -> int:
    """Trials per side to ask for when one side has a single trial: from the other's spread, at least 3."""
    spreads = [float(side.std(ddof=1)) for side in logs if len(side) >= MIN_TRIALS]
    needed = trials_needed(max(spreads), threshold) if spreads else None
    return max(3, needed or 3)
