"""The interval of profrun 0.1, to be measured beside today's: a hierarchical bootstrap of trials and steps.

Trials are resampled, then steps inside each (Davison & Hinkley, "Bootstrap Methods and their Application",
1997, section 3.8), and the variance is corrected for few trials. The scatter of the steps counts twice: the
trials differ by it already.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from profrun.analysis.compare.student_t import t_quantile
from profrun.analysis.step_time import Floats, checked, logarithms

Times = Sequence[Sequence[float]]
Interval = tuple[float, float, float]
"""Ratio, and both ends of its 95 % interval."""


def resampled_interval(a: Times, b: Times, *, seed: int, resamples: int = 500) -> Interval:
    """Ratio of the medians of the trials of b to those of a, with at least two trials on each side."""
    rng = np.random.default_rng(seed)
    sides = [checked(side) for side in (a, b)]
    logs = [logarithms(side, "median") for side in sides]
    value = float(logs[1].mean() - logs[0].mean())
    variances = [_variance(side, resamples, rng) for side in sides]
    total = sum(variances)
    freedom = float(len(a) - 1)
    if total > 0:
        freedom = total**2 / sum(v**2 / (len(side) - 1) for v, side in zip(variances, sides, strict=True))
    half = t_quantile(0.975, freedom) * math.sqrt(total)
    return math.exp(value), math.exp(value - half), math.exp(value + half)


def _variance(side: Sequence[Floats], resamples: int, rng: np.random.Generator) -> float:
    count = len(side)
    logs = np.log(np.stack([_medians(trial, resamples * count, rng) for trial in side]))
    chosen = rng.integers(0, count, size=(resamples, count))
    draws = np.arange(resamples * count).reshape(resamples, count)
    return float(logs[chosen, draws].mean(axis=1).var()) * count / (count - 1)


def _medians(ordered: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Medians of resamples: order statistics of uniform draws are distributed as Beta."""
    count = len(ordered)
    rank = (count + 1) // 2
    uniform = rng.beta(rank, count - rank + 1, size=draws)
    value = ordered[np.minimum((uniform * count).astype(np.int64), count - 1)]
    if count % 2 == 1:
        return value
    following = uniform + (1 - uniform) * rng.beta(1, count - rank, size=draws)
    return (value + ordered[np.minimum((following * count).astype(np.int64), count - 1)]) / 2
