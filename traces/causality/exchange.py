"""Clocks of ranks against each other: what collectives say of them.

A collective in which every rank needs data of every other ends on no rank before the last one has begun. With
h the time at which the last one begins, and d the offset that is added to a rank's times:
start + d <= h <= end + d, for every rank. These are difference constraints between ranks and collectives. The
bounds of every rank against the first one are shortest paths; whole sweeps over all records relax them until
nothing changes, so that bounds over several ranks and groups count, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profrun.traces.causality.model import Ids, Ints, Mask

FAR = 1 << 61
"""Stands for no bound."""
MOST_SWEEPS = 1000
"""More are only needed by constraints that contradict each other round many ranks."""


@dataclass(frozen=True)
class Exchanges:
    """Parts of collectives: what each rank recorded of each.

    Attributes:
        rank, collective: int, which each is of, both from 0.
        start, end: int64 ns, on the rank's own axis.
        ranks: how many ranks there are.
    """

    rank: Ids
    collective: Ids
    start: Ints
    end: Ints
    ranks: int


@dataclass(frozen=True)
class RankBounds:
    """Bounds of what must be added to each rank's times to be on the axis of the first rank.

    Attributes:
        low, high: int64 ns by rank; -FAR and FAR for a rank that nothing ties to the first.
        possible: whether any offsets fit all collectives.
        wrong: ranks that contradict another, as far as that is known; True by rank.
        sweeps: how often all records were gone through.
    """

    low: Ints
    high: Ints
    possible: bool
    wrong: Mask
    sweeps: int

    @property
    def tied(self) -> Mask:
        """Ranks with a bound on both sides."""
        return np.asarray((self.low > -FAR) & (self.high < FAR))


def bounds(parts: Exchanges, tolerance: int = 0) -> RankBounds:
    """Bounds of every rank against rank 0.

    Args:
        parts: what was recorded, in any order.
        tolerance: ns by which each start may be early and each end late.
    """
    by_collective = _Groups(parts.collective)
    by_rank = _Groups(parts.rank)
    start, end = parts.start - tolerance, parts.end + tolerance
    high, sweeps = _relax(parts, by_collective, by_rank, start, end)
    mirrored, more = _relax(parts, by_collective, by_rank, -end, -start)
    low = -mirrored
    wrong = (high < low) | ((np.arange(parts.ranks) == 0) & ((high < 0) | (low > 0)))
    return RankBounds(low, high, not wrong.any(), wrong, max(sweeps, more))


class _Groups:
    """Rows by a number, for minima of each number."""

    def __init__(self, number: Ids) -> None:
        self.order = np.argsort(number, kind="stable")
        ordered = number[self.order]
        self.first = (
            np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(number) else self.order
        )
        self.number = ordered[self.first]

    def least(self, values: Ints) -> Ints:
        """The smallest value of each number."""
        return np.asarray(np.minimum.reduceat(values[self.order], self.first))


def _relax(
    parts: Exchanges, by_collective: _Groups, by_rank: _Groups, start: Ints, end: Ints
) -> tuple[Ints, int]:
    """Upper bounds by shortest paths: d <= h - start, h <= end + d of any rank."""
    high = np.full(parts.ranks, FAR, np.int64)
    high[0] = 0
    if not len(parts.rank):
        return high, 0
    place = np.zeros(int(parts.collective.max()) + 1, np.int64)
    place[by_collective.number] = np.arange(len(by_collective.number))
    mine = place[parts.collective]
    for sweep in range(1, MOST_SWEEPS + 1):
        own = high[parts.rank]
        latest = by_collective.least(np.where(own < FAR, own + end, FAR))[mine]
        found = by_rank.least(np.where(latest < FAR, latest - start, FAR))
        lower = found < high[by_rank.number]
        if not lower.any():
            return high, sweep
        high[by_rank.number[lower]] = found[lower]
        if high[0] < 0:
            return high, sweep
    return high, MOST_SWEEPS
