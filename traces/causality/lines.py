"""Lines between points: every d(t) = a + b t that lies above some points and below others.

The lower bounds of a clock's offset are points that the line must not lie below, the upper bounds points that
it must not lie above. Only the corners of two convex hulls matter, so that the feasible (a, b) are found in
linear time after sorting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from profrun.traces.causality.model import Floats, Mask

Points: TypeAlias = tuple[Floats, Floats]
"""Times and values of points."""

_FEW = 4096
"""Points that are taken one by one; more are first thinned out by whole arrays."""
_ROUNDING = 1e-12
"""Of floating point numbers."""
_PASSES = 64
"""Each pass takes a third of the points away where times are random."""


@dataclass(frozen=True)
class Lines:
    """The lines that are possible; there is at least one.

    Attributes:
        slopes: their slopes, rising: the first and last are the least and the most, and between two of them
            the bounds are straight.
        low, high: for each slope the bounds of the value at t = 0; None where nothing bounds it on that side.
    """

    slopes: Floats
    low: Floats | None
    high: Floats | None

    def best(self) -> tuple[float, float | None, float | None]:
        """The slope with the most room between the bounds, and the bounds there; without both bounds the
        smallest slope."""
        if self.low is None or self.high is None:
            place = int(np.argmin(np.abs(self.slopes)))
        else:
            place = int(np.argmax(self.high - self.low))
        low, high = (None if bound is None else float(bound[place]) for bound in (self.low, self.high))
        return float(self.slopes[place]), low, high

    def at(self, t: float) -> tuple[float | None, float | None]:
        """The least and the most value of any line at a time."""
        low = None if self.low is None else float((self.low + self.slopes * t).min())
        return low, None if self.high is None else float((self.high + self.slopes * t).max())


def hull(t: Floats, v: Floats) -> Points:
    """Corners of the upper hull of points, by t: the points that no line between two others lies above."""
    order = np.argsort(t, kind="stable")
    t, v = t[order], v[order]
    first = np.flatnonzero(np.append(True, t[1:] != t[:-1]))
    t, v = t[first], np.maximum.reduceat(v, first)  # of points at one time the highest
    for _ in range(_PASSES):
        if len(t) <= _FEW:
            break
        keep = _above_neighbours(t, v)
        if keep.all():
            break
        t, v = t[keep], v[keep]
    corners: list[int] = []
    for place in range(len(t)):
        while len(corners) > 1 and _below(t, v, corners[-2], corners[-1], place):
            corners.pop()
        corners.append(place)
    return t[corners], v[corners]


def _below(t: Floats, v: Floats, left: int, middle: int, right: int) -> bool:
    """Is the middle point on or below the line between the others?"""
    return bool((v[middle] - v[left]) * (t[right] - t[left]) <= (v[right] - v[left]) * (t[middle] - t[left]))


def _above_neighbours(t: Floats, v: Floats) -> Mask:
    """Points above the line between their neighbours. The others are no corners, whoever stays."""
    keep = np.ones(len(t), dtype=bool)
    keep[1:-1] = (v[1:-1] - v[:-2]) * (t[2:] - t[:-2]) > (v[2:] - v[:-2]) * (t[1:-1] - t[:-2])
    return keep


def _edges(corners: Points) -> Floats:
    return np.asarray(np.diff(corners[1]) / np.diff(corners[0]))


def _highest(corners: Points, slopes: Floats) -> Floats:
    """For each slope b the largest v - b t over the points."""
    t, v = corners
    place = np.searchsorted(-_edges(corners), -slopes, side="left")  # edges fall along an upper hull
    return np.asarray(v[place] - slopes * t[place])


def lines_between(lower: Points | None, upper: Points | None, limit: float) -> Lines | None:
    """The lines above all lower and below all upper points, with a slope of at most ``limit`` either way.

    Args:
        lower, upper: times and values of the points, each with at least one; None for no points.
        limit: of the slope.

    Returns:
        None when there is no such line.
    """
    floor = None if lower is None else hull(*lower)
    ceiling = None if upper is None else hull(upper[0], -upper[1])
    edges = [np.array([-limit, 0.0, limit])]
    edges += [] if floor is None else [_edges(floor)]
    edges += [] if ceiling is None else [-_edges(ceiling)]
    slopes = np.unique(np.concatenate(edges))
    slopes = slopes[np.abs(slopes) <= limit]
    low = None if floor is None else _highest(floor, slopes)
    high = None if ceiling is None else -_highest(ceiling, -slopes)
    if low is None or high is None:
        return Lines(slopes, low, high)
    return _possible(slopes, low, high)


def _possible(slopes: Floats, low: Floats, high: Floats) -> Lines | None:
    """The slopes that leave room between the bounds, with the ends of that stretch."""
    room = high - low  # concave in the slope, and straight between these slopes
    inside = np.flatnonzero(room >= -_ROUNDING * np.maximum(np.abs(low), 1))
    if not len(inside):
        return None
    parts: list[tuple[float, float, float]] = []
    for place, beyond in ((inside[0], inside[0] - 1), (inside[-1], inside[-1] + 1)):
        if 0 <= beyond < len(slopes):
            part = max(room[place], 0.0) / (room[place] - room[beyond])
            end, value = (one[place] + part * (one[beyond] - one[place]) for one in (slopes, low))
            parts.append((float(end), float(value), float(value)))
    found = np.array([*zip(slopes[inside], low[inside], high[inside], strict=True), *parts])
    found = found[np.argsort(found[:, 0], kind="stable")]
    return Lines(found[:, 0], found[:, 1], found[:, 2])
