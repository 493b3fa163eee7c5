"""The row in which each slice of a timeline is drawn, so that no slice hides another.

Slices of a host thread lie by their nesting depth. Slices that overlap without nesting, as on a GPU stream
that runs several kernels at once, take the first row that is free.
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.frame import Index

Rows = NDArray[np.int32]

MOST_ROWS = 64
"""Most rows of one track; deeper slices share the last row."""


def place(track: Index, depth: Rows, start: Ints, end: Ints) -> Rows:
    """The row of each slice.

    Args:
        track: what the slices lie on, shape (n,), not decreasing.
        depth: int32, shape (n,): the row wanted, that is the nesting depth.
        start, end: int64 ns, shape (n,); by start within a track, and longest first.

    Returns:
        int32, shape (n,), at most ``MOST_ROWS`` - 1. It is the depth on tracks where no slices of one depth
        overlap, else the first free row.
    """
    rows = np.minimum(depth, MOST_ROWS - 1).astype(np.int32)
    order = np.argsort(track.astype(np.int64) * MOST_ROWS + rows, kind="stable")
    same = (track[order[1:]] == track[order[:-1]]) & (rows[order[1:]] == rows[order[:-1]])
    hidden = same & (start[order[1:]] < end[order[:-1]])
    hidden &= depth[order[1:]] < MOST_ROWS  # the last row is shared anyway
    for number in np.unique(track[order[1:]][hidden]):
        low, high = np.searchsorted(track, [number, number + 1])
        rows[low:high] = _first_free(start[low:high], end[low:high])
    return rows


def _first_free(start: Ints, end: Ints) -> Rows:
    """The first free row of each slice of one track."""
    rows = np.zeros(len(start), dtype=np.int32)
    reach = np.maximum.accumulate(end)
    alone = np.ones(len(start), dtype=bool)  # a slice that overlaps no other has the first row
    meets = start[1:] < reach[:-1]
    alone[1:] &= ~meets
    alone[:-1] &= ~meets
    busy: list[tuple[int, int]] = []  # (end, row) of the slices that run, the first to end on top
    free: list[int] = []  # rows that are free again, the lowest on top
    used = 0
    crowd = np.flatnonzero(~alone)
    for at, begin, stop in zip(crowd.tolist(), start[crowd].tolist(), end[crowd].tolist(), strict=True):
        while busy and busy[0][0] <= begin:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            row = heapq.heappop(free)
        else:
            row, used = used, used + 1
        heapq.heappush(busy, (stop, row))
        rows[at] = row
    return np.minimum(rows, MOST_ROWS - 1)
