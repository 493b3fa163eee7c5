"""Phases of a run: stretches of steps that take equally long, by change-points of the step times.

The change-points are those of the least penalised cost with the biweight loss: Fearnhead and Rigaill,
"Changepoint Detection in the Presence of Outliers", JASA 114 (2019), doi 10.1080/01621459.2017.1385466. The
loss of a step is its squared distance from the level of its phase, at most ``OUTLIER`` squared, so that a
rare long step (a checkpoint, a log line, the garbage collector) makes no phase. The recursion over levels is
theirs; the levels are a grid that is taken from the data. Steps that resemble their neighbours raise the
penalty by (1 + rho) / (1 - rho), with rho and the noise as Chakar, Lebarbier, Levy-Leduc and Robin estimate
them: "A robust approach for estimating change-points in the mean of an AR(1) process", Bernoulli 23 (2017),
doi 10.3150/15-BEJ782. All of it is done on logarithms: phases differ by ratios.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FEWEST = 8
"""Runs of fewer steps are not cut: they are one phase."""

SHORTEST = 5
"""A phase has at least so many steps (or buckets, of long runs); only warm-up may have fewer."""

LEAST = 0.008
"""Neighbours whose medians differ by less than this share are one phase: so a true change of 1 % is found."""

LONGEST_WARM_UP = 10
"""So many steps at the very beginning may be warm-up."""

WARM_UP = 0.10
"""Warm-up steps take longer than nearly all (98 %) of the steps after them by at least this share."""

DRIFT = 0.1
"""Neighbours that pass into each other gradually are one phase where they differ by less than this share."""

BUCKETS = 4096
"""Longer runs are cut by the medians of buckets of equally many steps, at most this many buckets."""

OUTLIER = 3.0
"""A step this many standard deviations away from the level costs as much as any that is further away."""

PENALTY = 3.0
"""Cost of a change-point in squared standard deviations, times the logarithm of the number of steps."""

WANDERING = 5
"""A level may wander where there are at least so many phases."""

ERRORS = 4.0
"""Neighbours whose medians differ by less than so many standard errors are one phase."""


@dataclass(frozen=True)
class Cut:
    """A phase of an array of step times.

    Attributes:
        first, stop: positions of its steps, [first, stop).
        median: of its step times, in their unit.
        error: standard error of the logarithm of the median, which is the error of the median as a share.
        level: number of its level, from 0 in the order of their first phases: phases whose medians agree
            have the same.
        warm_up: whether these are the long first steps of the run.
        drift: ratio of the end of the phase to its begin, where it drifts by at least ``LEAST``; else None.
    """

    first: int
    stop: int
    median: float
    error: float = 0.0
    level: int = 0
    warm_up: bool = False
    drift: float | None = None

    @property
    def steps(self) -> int:
        """How many steps it has."""
        return self.stop - self.first


@dataclass(frozen=True)
class _Noise:
    """How steps scatter: standard deviation of their logarithms, and correlation of neighbours."""

    sigma: float
    rho: float

    @property
    def inflation(self) -> float:
        """How much larger the variance of a mean is than if steps were independent."""
        return (1 + max(self.rho, 0.0)) / (1 - max(self.rho, 0.0))


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
        return (_cut(times, 0, len(times), None),)
    warm = _warm_up_steps(times)
    rest = times[warm:]
    noise = _noise(_buckets(rest)[0])
    bounds = [warm + bound for bound in _bounds(rest, noise)]
    cuts = [_cut(times, first, stop, noise) for first, stop in pairwise(bounds)]
    cuts = _merged(times, cuts, noise)
    if _is_line(times, cuts):
        cuts = [_cut(times, warm, len(times), noise)]
    cuts = _without_wander(times, cuts, noise)
    cuts = [_with_drift(times, cut) for cut in cuts]
    head = [replace(_cut(times, 0, warm, noise), warm_up=True)] if warm else []
    return tuple(_levelled(head + cuts))


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


def _cut(times: Floats, first: int, stop: int, noise: _Noise | None) -> Cut:
    inside = times[first:stop]
    error = 0.0 if noise is None else _error(inside, noise)
    return Cut(first, stop, float(np.exp(np.median(inside))), error)


def _error(inside: Floats, noise: _Noise) -> float:
    """Standard error of the median of logarithms.

    The largest of three: what the noise of the whole run lets expect; a quarter of the interval between the
    order statistics two standard errors of the rank away from the median, which is wide where steps are of
    two kinds; and what the medians of ten blocks of the phase show, which knows of dependence over more than
    the next step.
    """
    count = len(inside)
    spread = np.sqrt(noise.inflation / count)
    low, high = np.quantile(inside, np.clip((0.5 - spread, 0.5 + spread), 0, 1))
    errors = [1.2533 * noise.sigma * spread, (high - low) / 4]
    if count >= 40:
        blocks = np.median(inside[: count // 10 * 10].reshape(10, -1), axis=1)
        errors.append(np.std(blocks, ddof=1) / np.sqrt(10))
    return float(max(errors))


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


def _noise(times: Floats) -> _Noise:
    """The noise of steps, from differences over one and two steps, which jumps of the level hardly change."""
    if len(times) < 4:
        return _Noise(1e-4, 0.0)
    one, two = (_scale(times[lag:] - times[:-lag]) for lag in (1, 2))
    if one <= 0:
        return _Noise(max(two / np.sqrt(2), 1e-4), 0.0)
    rho = float(np.clip((two / one) ** 2 - 1, -0.9, 0.95))
    return _Noise(max(one / np.sqrt(2 * (1 - rho)), 1e-4), rho)


def _scale(differences: Floats) -> float:
    """Standard deviation by quantiles; the upper one counts where the steps are of two kinds."""
    half, upper = np.quantile(np.abs(differences), (0.5, 0.7))
    return float(max(half / 0.6745, upper / 1.0364))


def _buckets(times: Floats) -> tuple[Floats, int]:
    """Medians of buckets, and how many steps a bucket has."""
    size = -(-len(times) // BUCKETS)
    if size == 1:
        return times, 1
    return np.median(times[: len(times) // size * size].reshape(-1, size), axis=1), size


def _bounds(times: Floats, noise: _Noise) -> list[int]:
    """Positions of the change-points, with 0 and the number of steps."""
    thin, size = _buckets(times)
    found = _change_points(thin, noise)
    bounds = [0, *(place * size for place in found if place), len(times)]
    if size > 1:
        bounds = _moved_to_the_step(times, bounds, size)
    return bounds


def _change_points(times: Floats, noise: _Noise) -> list[int]:
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
        cost += np.minimum(loss * loss, OUTLIER**2)
    found = [int(begin[np.argmin(cost)])]
    while found[-1]:
        found.append(int(last[found[-1]]))
    return found[::-1]


def _grid(times: Floats, noise: _Noise) -> Floats:
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


def _merged(times: Floats, cuts: list[Cut], noise: _Noise) -> list[Cut]:
    """The phases that are left when the too short and the too alike are joined, the most alike first."""
    size = _buckets(times)[1]
    while len(cuts) > 1:
        pairs = list(pairwise(cuts))
        apart = [abs(_ratio(a, b)) for a, b in pairs]
        alike = [
            place
            for place, (a, b) in enumerate(pairs)
            if min(a.steps, b.steps) < SHORTEST * size or not _differ(a, b) or _gradual(times, a, b)
        ]
        if not alike:
            break
        place = min(alike, key=lambda place: apart[place])
        a, b = pairs[place]
        cuts = [*cuts[:place], _cut(times, a.first, b.stop, noise), *cuts[place + 2 :]]
    return cuts


def _without_wander(times: Floats, cuts: list[Cut], noise: _Noise) -> list[Cut]:
    """The phases, with those joined between which the level only wanders.

    The clock of a GPU at its power cap, for example, goes up and down by some per cent all the time. A level
    wanders where at least ``WANDERING`` phases have more than three levels and go up and down; then the
    change from phase to phase is itself noise, and what is left are jumps that are larger than it explains.
    """
    changes = np.diff(np.log([cut.median for cut in cuts]))
    turns = int((changes[1:] * changes[:-1] < 0).sum())
    if len(cuts) < WANDERING or 3 * turns < len(cuts) - 2 or len({one.level for one in _levelled(cuts)}) <= 3:
        return cuts
    wander = float(np.median(np.abs(changes))) / 0.6745 / np.sqrt(2)
    parts = [1] * len(cuts)
    while len(cuts) > 1:
        limits = [ERRORS * wander * np.sqrt(1 / a + 1 / b) for a, b in pairwise(parts)]
        over = [abs(_ratio(a, b)) / limit for (a, b), limit in zip(pairwise(cuts), limits, strict=True)]
        place = int(np.argmin(over))
        if over[place] >= 1:
            break
        joined = _cut(times, cuts[place].first, cuts[place + 1].stop, noise)
        cuts = [*cuts[:place], joined, *cuts[place + 2 :]]
        parts = [*parts[:place], parts[place] + parts[place + 1], *parts[place + 2 :]]
    return cuts


def _ratio(a: Cut, b: Cut) -> float:
    return float(np.log(b.median / a.median))


def _differ(a: Cut, b: Cut) -> bool:
    """Whether the medians differ by more than the practical threshold and their errors."""
    error = float(np.hypot(a.error, b.error))
    return abs(_ratio(a, b)) >= max(float(np.log1p(LEAST)), ERRORS * error)


def _gradual(times: Floats, a: Cut, b: Cut) -> bool:
    """Whether one passes into the other without a jump.

    Equally many steps on either side of the cut are looked at. A passage is gradual where they differ by less
    than half as much as the phases do, or where a line fits them better than two levels do (least squares of
    the medians of eight blocks on either side).
    """
    near = min(a.steps, b.steps) // 8
    if near < 2 or abs(_ratio(a, b)) >= np.log1p(DRIFT):
        return False
    around = times[b.first - 8 * near : b.first + 8 * near]
    if abs(np.median(around[8 * near :]) - np.median(around[: 8 * near])) < abs(_ratio(a, b)) / 2:
        return True
    blocks = np.median(around.reshape(16, near), axis=1)
    levels = np.repeat((blocks[:8].mean(), blocks[8:].mean()), 8)
    at = np.arange(16) - 7.5
    line = blocks.mean() + at * (at @ blocks) / (at @ at)
    return bool(((blocks - line) ** 2).sum() < ((blocks - levels) ** 2).sum())


def _is_line(times: Floats, cuts: list[Cut]) -> bool:
    """Whether a line explains all phases better than levels: Schwarz's criterion on medians of blocks."""
    first, size = cuts[0].first, (len(times) - cuts[0].first) // 64
    medians = [cut.median for cut in cuts]
    if len(cuts) == 1 or size < 2 or max(medians) >= min(medians) * (1 + DRIFT):
        return False
    blocks = np.median(times[first : first + 64 * size].reshape(64, size), axis=1)
    levels = (
        np.repeat(np.log(medians), [cut.steps for cut in cuts])[: 64 * size].reshape(64, size).mean(axis=1)
    )
    at = np.arange(64) - 31.5
    line = blocks.mean() + at * (at @ blocks) / (at @ at)
    by_line, by_levels = (float(((blocks - fit) ** 2).sum()) for fit in (line, levels))
    by_line, by_levels = by_line + 1e-18, by_levels + 1e-18
    gain = 64 * np.log(by_levels / by_line) + (2 * len(cuts) - 3) * np.log(64)
    return bool(gain > 0)


def _with_drift(times: Floats, cut: Cut) -> Cut:
    """The phase with its drift, if it has one that its error does not explain."""
    part = cut.steps // 5
    if part < 8:
        return cut
    change = float(
        np.median(times[cut.stop - part : cut.stop]) - np.median(times[cut.first : cut.first + part])
    )
    enough = max(np.log1p(LEAST), ERRORS * cut.error * np.sqrt(cut.steps / part) * np.sqrt(2) / 2)
    return replace(cut, drift=float(np.exp(change))) if abs(change) >= enough else cut


def _levelled(cuts: list[Cut]) -> list[Cut]:
    """The phases with the numbers of their levels; neighbours never have the same."""
    known: list[Cut] = []
    numbered: list[Cut] = []
    for cut in cuts:
        same = [
            level
            for level, one in enumerate(known)
            if not (cut.warm_up or one.warm_up or (numbered and numbered[-1].level == level))
            and not _differ(one, cut)
        ]
        level = min(same, key=lambda level: abs(_ratio(known[level], cut)), default=len(known))
        if level == len(known):
            known.append(cut)
        numbered.append(replace(cut, level=level))
    return numbered
