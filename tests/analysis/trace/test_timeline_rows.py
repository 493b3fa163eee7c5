"""Rows of slices: nested ones by depth, overlapping ones side by side, none over another."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.analysis.trace.timeline_rows import MOST_ROWS, place


def placed(slices: list[tuple[int, int, int]], track: list[int] | None = None) -> list[int]:
    """Rows of (start, end, depth)."""
    start, end, depth = (np.array(column, dtype=np.int64) for column in zip(*slices, strict=True))
    on = np.array(track or [0] * len(slices), dtype=np.intp)
    return [int(row) for row in place(on, depth.astype(np.int32), start, end)]


@pytest.mark.parametrize(
    ("slices", "rows"),
    [
        ([(0, 100, 0), (10, 20, 1), (20, 30, 1), (40, 40, 1)], [0, 1, 1, 1]),  # nested: the depth
        ([(0, 100, 0), (50, 150, 0), (100, 110, 0)], [0, 1, 0]),  # overlapping: the first free row
        ([(0, 10, 0), (0, 10, 0), (0, 10, 0)], [0, 1, 2]),
        ([(0, 10, 0), (5, 5, 0), (10, 10, 0)], [0, 1, 0]),  # no length
        ([(0, 100, 0), (10, 90, 1), (95, 120, 0), (96, 97, 1)], [0, 1, 1, 2]),  # one that is not nested
    ],
)
def test_rows(slices: list[tuple[int, int, int]], rows: list[int]) -> None:
    assert placed(slices) == rows


def test_an_overlap_moves_nothing_on_other_tracks() -> None:
    assert placed([(0, 9, 0), (1, 2, 1), (0, 9, 0), (1, 9, 0), (0, 5, 0)], [0, 0, 1, 1, 2]) == [0, 1, 0, 1, 0]


def test_the_deepest_share_a_row() -> None:
    deep = MOST_ROWS + 3
    nested = [(n, 1000 - n, n) for n in range(deep)]
    assert placed(nested) == [min(n, MOST_ROWS - 1) for n in range(deep)]
    at_once = [(n, 1000, 0) for n in range(deep)]
    assert placed(at_once) == [min(n, MOST_ROWS - 1) for n in range(deep)]


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), min_size=1, max_size=40))
def test_no_slice_hides_another(drawn: list[tuple[int, int]]) -> None:
    slices = sorted(((start, start + dur, 0) for start, dur in drawn), key=lambda one: (one[0], -one[1]))
    rows = placed(slices)
    for first, (start, end, _) in enumerate(slices):
        for later in range(first + 1, len(slices)):
            if rows[first] == rows[later]:
                assert slices[later][0] >= end or start == end
