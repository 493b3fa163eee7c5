"""Lines between points: every d(t) = a + b t that lies above some points and below others.

The lower bounds of a clock's offset are points that the line must not lie below, the upper bounds points that
it must not lie above. Only the corners of two convex hulls matter, so that the feasible (a, b) are found in
linear time after sorting.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profrun.traces.causality.model import Floats, Mask

_FEW = 4096
"""Points that are taken one by one; more are first thinned out by whole arrays."""
_PASSES = 64
"""Each pass takes a third of the points away where times are random."""


@dataclass(frozen=True)
class Lines:
    """The lines that are possible.

    Attributes:
        slope: that of the line with the most room between the bounds.
        low, high: bounds of the intercept (the value at t = 0) for that slope.
        least, most: all slopes that are possible lie between these.
    """

    slope: float
    low: float
    high: float
    least: float
    most: float


def hull(t: Floats, v: Floats) -> tuple[Floats, Floats]:
    """Corners of the upper hull of points, by t: the points that no line between two others lies above."""
    order = np.lexsort((-v, t))
    t, v = t[order], v[order]
    first = np.ones(len(t), dtype=bool)
    first[1:] = t[1:] != t[:-1]  # of points at one time the highest comes first
    t, v = t[first], v[first]
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


def _highest(corners: tuple[Floats, Floats], slopes: Floats) -> Floats:
    """For each slope b the largest v - b t over the points."""
    t, v = corners
    edges = np.diff(v) / np.diff(t)  # falling along an upper hull
    place = np.searchsorted(-edges, -slopes, side="left")
    return np.asarray(v[place] - slopes * t[place])


def lines_between(lower: tuple[Floats, Floats], upper: tuple[Floats, Floats], limit: float) -> Lines | None:
    """The lines above all lower and below all upper points, with a slope of at most ``limit`` either way.

    Args:
        lower, upper: times and values of the points, each with at least one.

    Returns:
        None when there is no such line.
    """
    floor = hull(*lower)
    turned_t, turned_v = hull(upper[0], -upper[1])
    ceiling = (turned_t, turned_v)
    edges = np.concatenate(
        (np.diff(floor[1]) / np.diff(floor[0]), -np.diff(turned_v) / np.diff(turned_t), [-limit, 0.0, limit])
    )
    slopes = np.unique(edges[np.abs(edges) <= limit])
    low, high = _highest(floor, slopes), -_highest(ceiling, -slopes)
    room = high - low  # concave in the slope, and straight between these slopes
    best = int(np.argmax(room))
    if room[best] < 0:
        return None
    possible = np.flatnonzero(room >= 0)
    least = _crossing(slopes, room, int(possible[0]), -1)
    most = _crossing(slopes, room, int(possible[-1]), 1)
    return Lines(float(slopes[best]), float(low[best]), float(high[best]), least, most)


def _crossing(slopes: Floats, room: Floats, last: int, step: int) -> float:
    """The slope at which the room ends, on one side of the last slope that has room."""
    beyond = last + step
    if not 0 <= beyond < len(slopes):
        return float(slopes[last])
    part = room[last] / (room[last] - room[beyond])
    return float(slopes[last] + part * (slopes[beyond] - slopes[last]))
