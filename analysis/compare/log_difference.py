"""How far apart the mean levels of two groups of trials are: ``log_difference``, with its standard error.

Levels are logarithms of one number per trial. Trials are independent repeats, steps of one trial are not. So
the standard error comes from the differences between trials:

* Welch's t (Welch, "The generalization of Student's problem when several different population variances are
  involved", 1947): each side has a variance of its own, and Welch-Satterthwaite degrees of freedom.
* Where the trials of both sides were run in turns and each side has ``TREND_FROM`` of them: the same with a
  trend that both sides share, a straight line over the order in which the trials were run, fitted by least
  squares with the difference (analysis of covariance: Cochran & Cox, "Experimental Designs", 1957, chapter
  3.8). The line takes one degree of freedom. The variance of each side is the sum of its squared residuals
  over their number less what the fit took of them.

The decision for the trend looks at the order of the trials alone, never at their times: to choose the
narrower of two intervals would raise false alarms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profrun.analysis.step_time import Floats

TREND_FROM = 3
"""Trials per side from which drift is fitted. Without drift the lost degree of freedom makes intervals 17 %
wider with 3 trials and 6 % with 5; with a drift of 5 % they are 3 times narrower (docs/statistics.md)."""
IN_TURNS = 0.17
"""Trials count as run in turns up to this squared correlation of side and order. A B A B A B has
0.09, A A A B B B has 0.77; at 0.17 the trend makes the interval 10 % wider."""


@dataclass(frozen=True)
class LogDifference:
    """Mean level of b less that of a.

    Attributes:
        value: the difference, with drift taken out where it was fitted.
        se: its standard error. freedom: its degrees of freedom, above 0.
        spread: standard deviation between trials of one side, the root of the mean variance of both.
        drift: what the fitted trend makes of the level from the first trial to the last; None where none was
            fitted.
    """

    value: float
    se: float
    freedom: float
    spread: float
    drift: float | None = None


def log_difference(
    sides: tuple[Floats, Floats],
    least: tuple[float, float] = (0.0, 0.0),
    order: Sequence[Sequence[float]] | None = None,
    trend_from: int = TREND_FROM,
    evenly: bool = True,
) -> LogDifference:
    """The difference of the means of two sides.

    Args:
        sides: levels of the trials of a and b, float64, shape (trials,); at least two on each side.
        least: variance of the level of one trial that the scatter of its steps alone explains. Trials that
            agree better than that do so by chance.
        order: for each trial of both sides when it was run, in any unit; None where that is not known.
        trend_from: trials per side from which drift is fitted.
        evenly: the line is fitted over the places of these trials in their order. Otherwise it is fitted over
            ``order`` itself. That is right where the trials of other sides ran between them: of rounds A B C
            A B C, C is two trials behind the A before it and one ahead of the A behind it.
    """
    counts = len(sides[0]), len(sides[1])
    places = _places(order, counts, evenly) if min(counts) >= trend_from else None
    if places is None:
        variances = [max(float(side.var(ddof=1)), low) for side, low in zip(sides, least, strict=True)]
        shares = [variance / count for variance, count in zip(variances, counts, strict=True)]
        value = float(sides[1].mean() - sides[0].mean())
        return _difference(value, variances, shares, [count - 1.0 for count in counts])
    levels, is_b = np.concatenate(sides), np.repeat([0.0, 1.0], counts)
    design = np.stack([np.ones(len(levels)), is_b, places], axis=1)
    solver = np.linalg.pinv(design)
    _, value, slope = (float(one) for one in solver @ levels)
    residuals = levels - design @ (solver @ levels)
    left = 1 - np.einsum("ij,ji->i", design, solver)  # what the fit leaves of each trial's variance
    variances, shares, freedoms = [], [], []
    for mine, low in zip((is_b == 0, is_b == 1), least, strict=True):
        freedoms.append(float(left[mine].sum()))
        variances.append(max(float((residuals[mine] ** 2).sum()) / freedoms[-1], low))
        shares.append(variances[-1] * float((solver[1][mine] ** 2).sum()))
    drift = slope * float(places.max() - places.min())
    return _difference(value, variances, shares, freedoms, drift)


def _difference(
    value: float,
    variances: Sequence[float],
    shares: Sequence[float],
    freedoms: Sequence[float],
    drift: float | None = None,
) -> LogDifference:
    """From the variance of one trial of each side, and what each side adds to that of the difference."""
    total = sum(shares)
    freedom = min(freedoms)
    if total > 0:  # Welch-Satterthwaite
        freedom = total**2 / sum(share**2 / one for share, one in zip(shares, freedoms, strict=True))
    return LogDifference(value, math.sqrt(total), freedom, math.sqrt(sum(variances) / 2), drift)


def _places(order: Sequence[Sequence[float]] | None, counts: tuple[int, int], evenly: bool) -> Floats | None:
    """When the trials of both sides were run, about their mean; None where no drift is to be fitted."""
    if order is None:
        return None
    moments = np.concatenate([np.asarray(side, dtype=np.float64) for side in order])
    if len(np.unique(moments)) < len(moments):
        return None  # trials at the same moment, on several machines
    places = np.argsort(np.argsort(moments)).astype(np.float64)
    is_b = np.repeat([0.0, 1.0], counts)
    turns = float(np.corrcoef(places, is_b)[0, 1]) ** 2
    if turns > IN_TURNS:
        return None
    if not evenly:  # the unit cancels; numbers near 1 keep the fit exact for times since 1970
        places = (moments - moments.mean()) / float(np.ptp(moments))
    about: Floats = places - places.mean()
    return about
