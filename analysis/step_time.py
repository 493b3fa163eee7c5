"""The one estimate of a step time: a statistic of each trial, and its geometric mean over trials.

The ratio of two such values is what comparisons state, so a step time that is shown alone and one that is
shown in a comparison are the same number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

Statistic = Literal["median", "mean", "p99"]
Floats = npt.NDArray[np.float64]


def checked(side: Sequence[Sequence[float]]) -> list[Floats]:
    """The durations of each trial, sorted: float64 arrays of shape (steps,).

    Raises:
        ValueError: there is no trial, a trial has no step, or a duration is not above 0 and finite.
    """
    arrays = [np.sort(np.asarray(trial, dtype=np.float64)) for trial in side]
    if not arrays or any(len(trial) == 0 for trial in arrays):
        raise ValueError("each side needs at least one trial, and each trial a step")
    if any(not (trial[0] > 0 and math.isfinite(trial[-1])) for trial in arrays):
        raise ValueError("step durations must be above 0 and finite")
    return arrays


def side_value(side: Sequence[Sequence[float]], statistic: Statistic) -> float:
    """Geometric mean over trials of the statistic of each: the ratio of two sides is ``Estimate.ratio``.

    Args:
        side: for each trial the durations of its steps, all above 0.

    Returns:
        A duration in the same unit.
    """
    return math.exp(float(logarithms(checked(side), statistic).mean()))


def logarithms(side: Sequence[Floats], statistic: Statistic) -> Floats:
    """Logarithm of the statistic of each trial: float64, shape (trials,)."""
    return np.log([trial_value(trial, statistic) for trial in side])


def trial_value(ordered: Floats, statistic: Statistic) -> float:
    """The statistic of the sorted steps of one trial."""
    if statistic == "mean":
        return float(ordered.mean())
    if statistic == "median":
        return float(np.median(ordered))
    return float(ordered[p99_index(len(ordered))])


def p99_index(count: int) -> int:
    """Index of the nearest-rank 99th percentile in ``count`` ordered values."""
    return max(0, math.ceil(0.99 * count) - 1)
