"""The phases between change-points, joined where they are one: too short, too alike, or only wandering.

``run_phases`` finds the change-points and says what a phase is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


SHORTEST = 5
"""A phase has at least so many steps (or buckets, of long runs); only warm-up may have fewer."""


LEAST = 0.008
"""Neighbours whose medians differ by less than this share are one phase: so a true change of 1 % is found."""


DRIFT = 0.1
"""Neighbours that pass into each other gradually are one phase where they differ by less than this share."""


BUCKETS = 4096
"""Longer runs are cut by the medians of buckets of equally many steps, at most this many buckets."""


SHARE = 0.1
"""A phase that is not at the begin has at least this share of the steps; a shorter one is a disturbance."""


CAPPED = 0.05
"""After a faster begin, neighbours that differ by less than this share, and by less than half as much as the
begin does, are one phase: a GPU at its power cap wanders between clocks."""


WANDERING = 4
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
class Noise:
    """How steps scatter: standard deviation of their logarithms, and correlation of neighbours."""

    sigma: float
    rho: float

    @property
    def inflation(self) -> float:
        """How much larger the variance of a mean is than if steps were independent."""
        return (1 + max(self.rho, 0.0)) / (1 - max(self.rho, 0.0))


def buckets(times: Floats) -> tuple[Floats, int]:
    """Medians of buckets, and how many steps a bucket has."""
    size = -(-len(times) // BUCKETS)
    if size == 1:
        return times, 1
    return np.median(times[: len(times) // size * size].reshape(-1, size), axis=1), size


def make_cut(times: Floats, first: int, stop: int, noise: Noise | None) -> Cut:
    """The phase of these steps (logarithms of times); without noise it has no error."""
    inside = times[first:stop]
    error = 0.0 if noise is None else _error(inside, noise)
    return Cut(first, stop, float(np.exp(np.median(inside))), error)


def _error(inside: Floats, noise: Noise) -> float:
    """Standard error of the median of logarithms.

    The largest of three: what the noise of the whole run lets expect; a quarter of the interval between the
    order statistics two standard errors of the rank away from the median, which is wide where steps are of
    two kinds; and what the medians of ten blocks of the phase show, which knows of dependence over more than
    the next step.
    """
    count = len(inside)
    spread = np.sqrt(noise.inflation / count)
    low, high = np.quantile(inside, np.clip((0.5 - spread, 0.5 + spread), 0.1, 0.9))
    errors = [1.2533 * noise.sigma * spread, (high - low) / 4]
    if count >= 40:
        blocks = np.median(inside[: count // 10 * 10].reshape(10, -1), axis=1)
        errors.append(np.std(blocks, ddof=1) / np.sqrt(10))
    return float(max(errors))


def merged(times: Floats, cuts: list[Cut], noise: Noise) -> list[Cut]:
    """The phases that are left when the too short and the too alike are joined, the most alike first."""
    size = buckets(times)[1]
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
        cuts = _joined(times, cuts, place, noise)
    return cuts


def is_other_begin(times: Floats, cuts: list[Cut]) -> bool:
    """Whether the first phase is another state: its median lies outside of nearly all steps after it.

    A GPU that runs at a higher clock before its power cap acts, for example. How much the level changes later
    says nothing about that. As many steps as it has, twice over, must follow.
    """
    if len(cuts) < 2 or len(times) - cuts[0].stop < 2 * cuts[0].steps:
        return False
    low, high = np.quantile(times[cuts[0].stop :], (0.02, 0.98))
    median = float(np.log(cuts[0].median))
    return not low - np.log1p(LEAST) <= median <= high + np.log1p(LEAST)


def capped(times: Floats, begin: Cut, cuts: list[Cut], noise: Noise) -> list[Cut]:
    """The phases after a faster begin, with those joined that a power cap wanders between.

    The cap holds the power and not the clock. On an H200 the medians of long stretches differ by 4 % then,
    while the means of whole trials agree within 0.3 %.
    """
    jump = _ratio(begin, make_cut(times, cuts[0].first, len(times), noise))
    limit = min(jump / 2, float(np.log1p(CAPPED)))
    while len(cuts) > 1:
        apart = [abs(_ratio(a, b)) for a, b in pairwise(cuts)]
        place = int(np.argmin(apart))
        if apart[place] >= limit:
            break
        cuts = _joined(times, cuts, place, noise)
    return cuts


def without_short(times: Floats, cuts: list[Cut], noise: Noise) -> list[Cut]:
    """The phases, with those joined to a neighbour that have less than ``SHARE`` of the steps.

    The shortest is joined first, to the neighbour that is more alike. Then neighbours that do not differ any
    more are joined.
    """
    total = sum(cut.steps for cut in cuts)
    while len(cuts) > 1:
        place = min(range(len(cuts)), key=lambda place: cuts[place].steps)
        if cuts[place].steps >= SHARE * total:
            break
        beside = [one for one in (place - 1, place + 1) if 0 <= one < len(cuts)]
        other = min(beside, key=lambda one: abs(_ratio(cuts[place], cuts[one])))
        cuts = _joined(times, cuts, min(place, other), noise)
    return merged(times, cuts, noise)


def without_wander(times: Floats, cuts: list[Cut], noise: Noise) -> list[Cut]:
    """The phases, with those joined between which the level only wanders.

    The clock of a GPU at its power cap, for example, goes up and down by some per cent all the time. A level
    wanders where at least ``WANDERING`` phases have more than three levels and go up and down; then the
    change from phase to phase is itself noise, and what is left are jumps that are larger than it explains.
    """
    changes = np.diff(np.log([cut.median for cut in cuts]))
    turns = int((changes[1:] * changes[:-1] < 0).sum())
    if len(cuts) < WANDERING or 3 * turns < len(cuts) - 2 or len({one.level for one in levelled(cuts)}) <= 3:
        return cuts
    wander = float(np.median(np.abs(changes))) / 0.6745 / np.sqrt(2)
    parts = [1] * len(cuts)
    while len(cuts) > 1:
        limits = [ERRORS * wander * np.sqrt(1 / a + 1 / b) for a, b in pairwise(parts)]
        over = [abs(_ratio(a, b)) / limit for (a, b), limit in zip(pairwise(cuts), limits, strict=True)]
        place = int(np.argmin(over))
        if over[place] >= 1:
            break
        cuts = _joined(times, cuts, place, noise)
        parts = [*parts[:place], parts[place] + parts[place + 1], *parts[place + 2 :]]
    return cuts


def _joined(times: Floats, cuts: list[Cut], place: int, noise: Noise) -> list[Cut]:
    """The phases, with the one at this place and the next as one."""
    both = make_cut(times, cuts[place].first, cuts[place + 1].stop, noise)
    return [*cuts[:place], both, *cuts[place + 2 :]]


def _line(blocks: Floats) -> Floats:
    """The straight line of least squares through values at equal distances."""
    at = np.arange(len(blocks)) - (len(blocks) - 1) / 2
    return np.asarray(blocks.mean() + at * (at @ blocks) / (at @ at))


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
    return bool(((blocks - _line(blocks)) ** 2).sum() < ((blocks - levels) ** 2).sum())


def is_line(times: Floats, cuts: list[Cut]) -> bool:
    """Whether a line explains all phases better than levels: Schwarz's criterion on medians of blocks."""
    first, size = cuts[0].first, (len(times) - cuts[0].first) // 64
    medians = [cut.median for cut in cuts]
    if len(cuts) == 1 or size < 2 or max(medians) >= min(medians) * (1 + DRIFT):
        return False
    blocks = np.median(times[first : first + 64 * size].reshape(64, size), axis=1)
    levels = (
        np.repeat(np.log(medians), [cut.steps for cut in cuts])[: 64 * size].reshape(64, size).mean(axis=1)
    )
    by_line, by_levels = (float(((blocks - fit) ** 2).sum()) for fit in (_line(blocks), levels))
    by_line, by_levels = by_line + 1e-18, by_levels + 1e-18
    gain = 64 * np.log(by_levels / by_line) + (2 * len(cuts) - 3) * np.log(64)
    return bool(gain > 0)


def with_drift(times: Floats, cut: Cut) -> Cut:
    """The phase with its drift, if it has one that its error does not explain."""
    part = cut.steps // 5
    if part < 8:
        return cut
    change = float(
        np.median(times[cut.stop - part : cut.stop]) - np.median(times[cut.first : cut.first + part])
    )
    enough = max(np.log1p(LEAST), ERRORS * cut.error * np.sqrt(cut.steps / part) * np.sqrt(2) / 2)
    return replace(cut, drift=float(np.exp(change))) if abs(change) >= enough else cut


def levelled(cuts: list[Cut]) -> list[Cut]:
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
