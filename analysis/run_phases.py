"""Phases of a run: stretches of steps that take equally long, by change-points of the step times.

The change-points are those of the least penalised cost with the biweight loss: Fearnhead and Rigaill,
"Changepoint Detection in the Presence of Outliers", JASA 114 (2019), doi 10.1080/01621459.2017.1385466. The
loss of a step is its squared distance from the level of its phase, at most ``OUTLIER`` squared, so that a
rare long step (a checkpoint, a log line, the garbage collector) makes no phase. The recursion over levels is
theirs; the levels are a grid that is taken from the data. Steps that resemble their neighbours raise the
penalty and the highest loss by (1 + rho) / (1 - rho), with rho and the noise as Chakar, Lebarbier, Levy-Leduc
and Robin estimate them: "A robust approach for estimating change-points in the mean of an AR(1) process",
Bernoulli 23 (2017), doi 10.3150/15-BEJ782. All of it is done on logarithms: phases differ by ratios.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.phase_cuts import (
    Cut,
    Floats,
    Noise,
    buckets,
    capped,
    is_line,
    is_other_begin,
    levelled,
    make_cut,
    merged,
    with_drift,
    without_short,
    without_wander,
)

FEWEST = 8
"""Runs of fewer steps are not cut: they are one phase."""


LONGEST_WARM_UP = 10
"""So many steps at the very beginning may be warm-up."""


WARM_UP = 0.10
"""Warm-up steps take longer than nearly all (98 %) of the steps after them by at least this share."""


OUTLIER = 3.0
"""A step this many standard deviations away from the level costs as much as any that is further away."""


PENALTY = 3.0
"""Cost of a change-point in squared standard deviations, times the logarithm of the number of steps."""


HIGHEST = 0.8
"""Correlation of neighbours counts as at most so much: jumps between phases look like correlation, too."""


def cut_phases(durs: Sequence[float] | NDArray[Any]) -> tuple[Cut, ...]:
    """The phases of a run's step times, in their order; together they hold every step.

    Arguments:
        durs: step times in any unit, all above 0, shape (steps,).

    Returns:
        One phase where the run is steady or has fewer than ``FEWEST`` steps; none for no steps.
    """
    times = np.log(np.asarray(durs, dtype=np.float64))
    if not len(times):
        return ()
    if len(times) < FEWEST:
        return (make_cut(times, 0, len(times), None),)
    warm = _warm_up_steps(times)
    rest = times[warm:]
    noise = _noise(buckets(rest)[0])
    bounds = [warm + bound for bound in _bounds(rest, noise)]
    cuts = [make_cut(times, first, stop, noise) for first, stop in pairwise(bounds)]
    cuts = merged(times, cuts, noise)
    if is_line(times, cuts):
        cuts = [make_cut(times, warm, len(times), noise)]
    apart = is_other_begin(times, cuts)
    cuts = merged(times, cuts[:1] + without_short(times, cuts[1:], noise), noise)
    # When a short phase after the begin is joined, the begin may pass into the rest gradually: one phase.
    begin = cuts[:1] if apart and len(cuts) > 1 else []
    after = without_wander(times, cuts[len(begin) :], noise)
    cuts = begin + (capped(times, begin[0], after, noise) if begin else after)
    cuts = [with_drift(times, cut) for cut in cuts]
    head = [replace(make_cut(times, 0, warm, noise), warm_up=True)] if warm else []
    return tuple(levelled(head + cuts))


def levels_of_steps(cuts: Sequence[Cut]) -> NDArray[np.int64]:
    """The number of the level of each step, int64, shape (steps,)."""
    return np.repeat(np.array([cut.level for cut in cuts], dtype=np.int64), [cut.steps for cut in cuts])


def steady_level(cuts: Sequence[Cut]) -> int | None:
    """Number of the level in which the program lives; None without steps.

    Warm-up is left out. Of the other levels the one with the most steps is taken. Where another one has at
    least half as many and lies after it as a whole, that is taken: a boost at the begin ends for good. Where
    the two come and go by turns, the faster is taken: load comes and goes. Steps count and not their time, or
    a short disturbance that makes steps many times as long would be the steady phase.
    """
    lived = [cut for cut in cuts if not cut.warm_up] or list(cuts)
    if not lived:
        return None
    steps: dict[int, int] = {}
    for cut in lived:
        steps[cut.level] = steps.get(cut.level, 0) + cut.steps
    most = max(steps, key=lambda level: steps[level])
    rivals = [level for level, count in steps.items() if 2 * count >= steps[most]]
    last = {cut.level: cut.first for cut in lived}
    first = {cut.level: cut.first for cut in reversed(lived)}
    median = {cut.level: cut.median for cut in lived}
    chosen = most
    for level in sorted(rivals, key=lambda level: first[level]):
        by_turns = first[level] < last[chosen] and first[chosen] < last[level]
        if median[level] < median[chosen] if by_turns else first[level] > last[chosen]:
            chosen = level
    return chosen


def _warm_up_steps(times: Floats) -> int:
    """How many of the first steps are warm-up.

    Each of them is longer than nearly all of the steps after, so that a step that is long every now and then
    is none. A begin that is long for more than ``LONGEST_WARM_UP`` steps is no warm-up but a phase.
    """
    longest = min(LONGEST_WARM_UP, len(times) // 4)
    after = times[longest : longest + 200]
    middle = float(np.median(after))
    spread = 1.4826 * float(np.median(np.abs(after - middle)))
    usual = float(np.quantile(after, 0.98, method="higher"))
    limit = max(middle + 5 * spread, usual + np.log1p(WARM_UP))
    if not longest or times[0] <= limit:
        return 0
    long = times[:longest] > limit
    return 0 if long.all() and longest == LONGEST_WARM_UP else int(np.argmin(np.append(long, False)))


def _noise(times: Floats) -> Noise:
    """The noise of steps, from differences over one and two steps, which jumps of the level hardly change."""
    if len(times) < 4:
        return Noise(1e-4, 0.0)
    one, two = (_scale(times[lag:] - times[:-lag]) for lag in (1, 2))
    if one <= 0:
        return Noise(max(two / np.sqrt(2), 1e-4), 0.0)
    rho = float(np.clip((two / one) ** 2 - 1, -0.9, HIGHEST))
    return Noise(max(one / np.sqrt(2 * (1 - rho)), 1e-4), rho)


def _scale(differences: Floats) -> float:
    """Standard deviation by quantiles; the upper one counts where the steps are of two kinds."""
    half, upper = np.quantile(np.abs(differences), (0.5, 0.7))
    return float(max(half / 0.6745, upper / 1.0364))


def _bounds(times: Floats, noise: Noise) -> list[int]:
    """Positions of the change-points, with 0 and the number of steps."""
    thin, size = buckets(times)
    found = _change_points(thin, noise)
    bounds = [0, *(place * size for place in found if place), len(times)]
    if size > 1:
        bounds = _moved_to_the_step(times, bounds, size)
    return bounds


def _change_points(times: Floats, noise: Noise) -> list[int]:
    """Where a new level begins, in order, with 0: the least sum of losses and penalties."""
    levels = _grid(times, noise)
    penalty = PENALTY * np.log(max(len(times), 30)) * noise.inflation
    cost = np.zeros(len(levels))
    begin = np.zeros(len(levels), dtype=np.int64)
    last = np.zeros(len(times) + 1, dtype=np.int64)
    for place, time in enumerate(times):
        if place:
            best = int(np.argmin(cost))
            last[place] = begin[best]
            anew = cost[best] + penalty
            changed = cost > anew
            cost[changed] = anew
            begin[changed] = place
        loss = (time - levels) / noise.sigma
        cost += np.minimum(loss * loss, OUTLIER**2 * noise.inflation)
    found = [int(begin[np.argmin(cost)])]
    while found[-1]:
        found.append(int(last[found[-1]]))
    return found[::-1]


def _grid(times: Floats, noise: Noise) -> Floats:
    """Levels that phases may have: values of the data, a tenth of the noise apart, at most about 400."""
    space = 0.1 * noise.sigma
    while True:
        levels: Floats = np.unique(np.round(times / space)) * space
        if len(levels) <= 400:
            return levels
        space *= 1.5


def _moved_to_the_step(times: Floats, bounds: list[int], size: int) -> list[int]:
    """Change-points between buckets, moved to the step where the level changes."""
    moved = [bounds[0]]
    for before, bound, after in zip(bounds, bounds[1:], bounds[2:], strict=False):
        low, high = max(before + 1, bound - size), min(after - 1, bound + size)
        left, right = np.median(times[before:low]), np.median(times[high:after])
        gain = np.abs(times[low:high] - right) - np.abs(times[low:high] - left)
        moved.append(low + int(np.argmax(np.concatenate(([0.0], np.cumsum(gain))))))
    return [*moved, bounds[-1]]
