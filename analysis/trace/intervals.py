"""Interval algebra on int64 ns: unions, differences, coverage. Half-open intervals [start, end).

Everything is exact integer arithmetic on numpy arrays; a set of intervals is a pair (starts, ends), sorted,
disjoint and not touching. Empty and negative intervals carry no time and are dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from profrun.analysis.trace.columns import Ints

_NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Intervals:
    """A set of disjoint intervals, sorted.

    Attributes:
        starts: int64 ns, shape (intervals,), increasing.
        ends: int64 ns, the same shape; each > its start and < the next start.
    """

    starts: Ints
    ends: Ints

    @property
    def total(self) -> int:
        """Covered ns."""
        return int((self.ends - self.starts).sum())

    def __len__(self) -> int:
        return len(self.starts)

    def pairs(self) -> list[tuple[int, int]]:
        """As (start, end) tuples."""
        return [(int(start), int(end)) for start, end in zip(self.starts, self.ends, strict=True)]


EMPTY = Intervals(_NONE, _NONE)


def union(starts: ArrayLike, ends: ArrayLike) -> Intervals:
    """Union of arbitrary intervals, in any order; touching ones become one."""
    left, right = np.asarray(starts, dtype=np.int64), np.asarray(ends, dtype=np.int64)
    keep = right > left
    if not keep.all():
        left, right = left[keep], right[keep]
    if not len(left):
        return EMPTY
    if (left[1:] < left[:-1]).any():
        order = np.argsort(left, kind="stable")
        left, right = left[order], right[order]
    reach = np.maximum.accumulate(right)
    first = np.empty(len(left), dtype=bool)
    first[0] = True
    np.greater(left[1:], reach[:-1], out=first[1:])
    last = np.append(first[1:], True)
    return Intervals(left[first], reach[last])


def merge(*sets: Intervals) -> Intervals:
    """Union of interval sets."""
    return union(np.concatenate([part.starts for part in sets]), np.concatenate([part.ends for part in sets]))


def complement(inner: Intervals, start: int, end: int) -> Intervals:
    """What of [start, end) is not covered."""
    if end <= start:
        return EMPTY
    cut = clip(inner, start, end)
    return _positive(np.append(np.int64(start), cut.ends), np.append(cut.starts, np.int64(end)))


def clip(source: Intervals, start: int, end: int) -> Intervals:
    """The part inside [start, end)."""
    return _positive(
        np.clip(source.starts, start, max(start, end)), np.clip(source.ends, start, max(start, end))
    )


def intersect(left: Intervals, right: Intervals) -> Intervals:
    """What both cover."""
    if not len(left) or not len(right):
        return EMPTY
    low = int(min(left.starts[0], right.starts[0]))
    high = int(max(left.ends[-1], right.ends[-1]))
    return complement(merge(complement(left, low, high), complement(right, low, high)), low, high)


def subtract(left: Intervals, right: Intervals) -> Intervals:
    """What ``left`` covers and ``right`` does not."""
    if not len(left) or not len(right):
        return left
    low, high = int(left.starts[0]), int(left.ends[-1])
    return intersect(left, complement(right, low, high))


def _positive(starts: ArrayLike, ends: ArrayLike) -> Intervals:
    """The intervals (sorted and disjoint already) that have a length."""
    left, right = np.asarray(starts, dtype=np.int64), np.asarray(ends, dtype=np.int64)
    keep = right > left
    return Intervals(left[keep], right[keep])


def covered(source: Intervals, starts: ArrayLike, ends: ArrayLike) -> Ints:
    """Covered ns inside each query [start, end).

    Args:
        source: the intervals that cover.
        starts, ends: the queries, ns, shape (queries,); they may overlap.

    Returns:
        int64 ns, shape (queries,). Work: two binary searches per query.
    """
    left, right = np.asarray(starts, dtype=np.int64), np.asarray(ends, dtype=np.int64)
    if not len(source):
        return np.zeros(len(left), dtype=np.int64)
    before = np.concatenate(([0], np.cumsum(source.ends - source.starts)))

    def up_to(times: Ints) -> Ints:
        place = np.searchsorted(source.starts, times, side="right")
        inside = np.maximum(source.ends[np.maximum(place, 1) - 1] - times, 0)
        inside[place == 0] = 0
        return np.asarray(before[place] - inside, dtype=np.int64)

    return np.asarray(np.maximum(up_to(right) - up_to(left), 0), dtype=np.int64)


def sweep(
    starts: ArrayLike, ends: ArrayLike, values: ArrayLike, *, start: int, end: int, cap: float | None = None
) -> float:
    """Integral over [start, end) of the sum of the values of all intervals that run at once, capped.

    This is the sweep of kineto's TensorBoard plugin (``merge_ranges_with_value``): values of concurrent
    intervals add up, and the sum is capped at each instant.

    Args:
        starts, ends: intervals, ns, shape (intervals,), in any order.
        values: value of each interval, float64, the same shape.
        start, end: the window, ns.
        cap: the most that the sum can be; None for no limit.

    Returns:
        value x ns.
    """
    left, right = np.asarray(starts, dtype=np.int64), np.asarray(ends, dtype=np.int64)
    weight = np.asarray(values, dtype=np.float64)
    keep = right > left
    left, right, weight = left[keep], right[keep], weight[keep]
    if not len(left) or end <= start:
        return 0.0
    times = np.concatenate((left, right))
    change = np.concatenate((weight, -weight))
    order = np.argsort(times, kind="stable")
    times, level = times[order], np.cumsum(change[order])
    running = np.cumsum(np.concatenate((np.ones(len(left)), -np.ones(len(right))))[order])
    level[running < 0.5] = 0.0  # rounding must not leave a level behind when nothing runs
    if cap is not None:
        np.minimum(level, cap, out=level)
    edges = np.clip(times, start, end)
    return float((level[:-1] * (edges[1:] - edges[:-1])).sum())
