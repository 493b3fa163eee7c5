"""How sure a difference is: hierarchical bootstrap on the ratio of two sides' step times.

The unit is the step inside a trial inside a point. Steps of one trial share a process, a clock state and a
neighbour on the machine, so they are not independent repeats: the trial is. Each side's statistic (median,
mean or p99 of a trial's steps) is averaged over its trials on the log scale, and the log ratio of the sides
gets an interval from

* resampling trials, then steps inside each (Davison & Hinkley, "Bootstrap Methods and their Application",
  1997, section 3.8, strategy 1 for hierarchical data), which gives a standard error for each side,
* times sqrt(n / (n - 1)), because resampling n trials under-states the spread of n trials by that factor
  (Hesterberg, "What Teachers Should Know About the Bootstrap", 2015, section 3.2),
* and Student's t with Welch-Satterthwaite degrees of freedom from the trials, not from the steps.

Few trials therefore widen the interval; one trial a side has no interval at all. ``bench/intervals.py``
measures false alarms, coverage and power against known truth (docs/statistics.md).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Statistic = Literal["median", "mean", "p99"]
Verdict = Literal["faster", "slower", "same", "inconclusive"]
Floats = npt.NDArray[np.float64]

CONFIDENCE = 0.95
POWER = 0.8
MIN_TRIALS = 2
"""Trials a side below which the spread between trials cannot be estimated at all."""


@dataclass(frozen=True)
class Estimate:
    """Ratio b / a of a statistic of step time, with its uncertainty.

    Attributes:
        ratio: point estimate; above 1 means b takes longer.
        ci95: interval of the ratio, or None with fewer than two trials on a side.
        mde: smallest relative change (0.02 is 2 %) that these trials would find with 80 % power, or None.
        trials: trials on each side.
        steps: steps on each side.
        trials_needed: trials a side for an ``mde`` of the threshold, or None when no spread is known.
    """

    statistic: Statistic
    ratio: float
    ci95: tuple[float, float] | None
    mde: float | None
    trials: tuple[int, int]
    steps: tuple[int, int]
    trials_needed: int | None


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
        a, b: one sequence of step durations (any one unit, all above 0) for each trial of the side.
        threshold: practical threshold as a fraction, for ``trials_needed``.
        seed: the resampling is deterministic for a seed.

    Raises:
        ValueError: a side has no trial, a trial no step, or a duration is not above 0.
    """
    sides = [_checked(side) for side in (a, b)]
    logs = [np.log([_statistic(trial, statistic) for trial in side]) for side in sides]
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
    )


def verdict(result: Estimate, threshold: float = 0.01) -> Verdict:
    """What may be said of a ratio.

    ``slower`` (``faster``): the interval excludes 1 and the point estimate is at least ``threshold`` away;
    ``same``: the whole interval lies within the threshold (an equivalence, not a lack of evidence);
    ``inconclusive``: neither can be said, or there is no interval.
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


def trials_needed(spread: float, threshold: float, *, most: int = 10_000) -> int | None:
    """Trials a side so that a change of ``threshold`` is found with 80 % power at 95 % confidence.

    Args:
        spread: standard deviation between trials of the log statistic, one side.

    Returns:
        At least 2; None when even ``most`` trials would not do.
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

    The deviation is 1.4826 x the median absolute deviation (the normal's sigma), at least 2 % of the median
    so that a very even trial does not call noise an outlier. They are named, never cut.
    """
    values = np.asarray(steps, dtype=np.float64)
    if len(values) < 3:
        return []
    middle = float(np.median(values))
    deviation = max(1.4826 * float(np.median(np.abs(values - middle))), 0.02 * middle)
    return [int(index) for index in np.nonzero(values > middle + width * deviation)[0]]


@functools.lru_cache(maxsize=4096)
def t_quantile(probability: float, freedom: float) -> float:
    """Quantile of Student's t, ``probability`` in (0, 1), ``freedom`` above 0 (Welch's are not whole).

    Solved by bisection on the distribution function, which is the regularised incomplete beta function
    (Abramowitz & Stegun, 26.7.1); exact to about 1e-10.
    """
    if probability < 0.5:
        return -t_quantile(1 - probability, freedom)
    low, high = 0.0, 1.0
    while _t_cdf(high, freedom) < probability and high < 1e12:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if _t_cdf(middle, freedom) < probability:
            low = middle
        else:
            high = middle
        if high - low < 1e-11 * max(1.0, high):
            break
    return (low + high) / 2


def _t_cdf(value: float, freedom: float) -> float:
    """P(T <= value) for value >= 0."""
    return 1 - 0.5 * _incomplete_beta(freedom / (freedom + value * value), freedom / 2, 0.5)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Regularised incomplete beta I_x(a, b) by its continued fraction (Abramowitz & Stegun, 26.5.8)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast only below this point
        return 1 - _incomplete_beta(1 - x, b, a)
    front = math.exp(
        a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a + 1) - math.lgamma(b)
    )
    # Evaluated from the innermost term outwards; the fraction needs of the order of sqrt(max(a, b)) terms.
    value = 1.0
    for m in range(20 + int(2 * math.sqrt(max(a, b))), 0, -1):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m - 1) * (a + b + m - 1) * x / ((a + 2 * m - 2) * (a + 2 * m - 1))
        value = 1 + odd / (1 + even / value)
    return front / value


def _checked(side: Sequence[Sequence[float]]) -> list[Floats]:
    arrays = [np.sort(np.asarray(trial, dtype=np.float64)) for trial in side]
    if not arrays or any(len(trial) == 0 for trial in arrays):
        raise ValueError("each side needs at least one trial, and each trial a step")
    if any(not (trial[0] > 0 and math.isfinite(trial[-1])) for trial in arrays):
        raise ValueError("step durations must be above 0 and finite")
    return arrays


def _statistic(ordered: Floats, statistic: Statistic) -> float:
    if statistic == "mean":
        return float(ordered.mean())
    if statistic == "median":
        return float(np.median(ordered))
    return float(ordered[_p99_index(len(ordered))])


def _p99_index(count: int) -> int:
    """Index of the nearest-rank 99th percentile in ``count`` ordered values."""
    return max(0, math.ceil(0.99 * count) - 1)


def _bootstrap_variance(
    side: Sequence[Floats], statistic: Statistic, resamples: int, rng: np.random.Generator
) -> float:
    """Variance of the side's mean log statistic over hierarchical resamples, corrected for few trials."""
    count = len(side)
    logs = np.log(np.stack([_resampled(trial, statistic, resamples * count, rng) for trial in side]))
    chosen = rng.integers(0, count, size=(resamples, count))
    draws = np.arange(resamples * count).reshape(
        resamples, count
    )  # each draw of a trial resamples its steps anew
    return float(logs[chosen, draws].mean(axis=1).var()) * count / (count - 1)


def _resampled(ordered: Floats, statistic: Statistic, draws: int, rng: np.random.Generator) -> Floats:
    """The statistic of ``draws`` resamples (with replacement) of one trial's ordered steps.

    Order statistics of a resample need no resample: the k-th smallest of m uniform draws is Beta(k, m-k+1),
    and given it, the next one is its uniform continuation; the empirical quantile function maps them to
    steps. That is exact and costs the same for 100 steps and for 100 000.
    """
    count = len(ordered)
    if statistic == "mean":
        return _resampled_means(ordered, draws, rng)
    rank = _p99_index(count) + 1 if statistic == "p99" else (count + 1) // 2
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


def _welch(variances: Sequence[float], trials: tuple[int, int]) -> float:
    """Welch-Satterthwaite degrees of freedom; the smaller side's when there is no spread at all."""
    total = sum(variances)
    if total <= 0:
        return float(min(trials) - 1)
    return total**2 / sum(v**2 / (n - 1) for v, n in zip(variances, trials, strict=True))


def _needed_from_one_side(logs: Sequence[Floats], threshold: float) -> int:
    """Trials a side to ask for when one side has a single trial: from the other's spread, at least 3."""
    spreads = [float(side.std(ddof=1)) for side in logs if len(side) >= MIN_TRIALS]
    needed = trials_needed(max(spreads), threshold) if spreads else None
    return max(3, needed or 3)
