"""Nesting against the plain stack walk, and its borders one by one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.traces import nest as nest_module
from profrun.traces.nest import depths, nest_sorted, nesting
from profrun.traces.writer import TraceWriter

Interval = tuple[int, int, int]  # track, start, duration


def stack_walk(rows: list[Interval]) -> tuple[list[int], list[int]]:
    """torch's algorithm, one slice at a time."""
    parents: list[int] = []
    found: list[int] = []
    stack: list[int] = []
    for place, (track, start, duration) in enumerate(rows):
        if place and rows[place - 1][0] != track:
            stack = []
        while stack:
            _, top_start, top_duration = rows[stack[-1]]
            top_end = top_start + top_duration
            if start < top_end and start + duration <= top_end:
                break
            stack.pop()
        parents.append(stack[-1] if stack else -1)
        found.append(len(stack))
        stack.append(place)
    return parents, found


intervals = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 30), st.sampled_from([0, 0, 1, 2, 3, 7, 30])), max_size=60
).map(lambda rows: sorted(rows, key=lambda row: (row[0], row[1], -row[2])))


def arrays(rows: list[Interval]) -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    return [np.array([row[column] for row in rows], dtype=np.int64) for column in range(3)]


@given(intervals)
def test_equals_the_stack_walk(rows: list[Interval]) -> None:
    found = nesting(*arrays(rows))
    assert (found.parent.tolist(), found.depth.tolist()) == stack_walk(rows)


@given(intervals, st.integers(1, 9))
def test_pieces_give_the_same_as_the_whole(rows: list[Interval], size: int) -> None:
    whole = nesting(*arrays(rows))
    chain = nest_module._Chain()
    parent: list[int] = []
    depth: list[int] = []
    overlaps: list[int] = []
    for start in range(0, len(rows), size):
        piece = chain.advance(start, *(column[start : start + size] for column in arrays(rows)))
        parent += piece.parent.tolist()
        depth += piece.depth.tolist()
        overlaps += piece.overlaps.tolist()
    assert (parent, depth, overlaps) == (
        whole.parent.tolist(),
        whole.depth.tolist(),
        whole.overlaps.tolist(),
    )


@pytest.mark.parametrize(
    ("rows", "parents", "crossing"),
    [
        pytest.param([(0, 0, 10), (0, 2, 3), (0, 5, 5)], [-1, 0, 0], [], id="siblings that touch"),
        pytest.param([(0, 0, 10), (0, 10, 5)], [-1, -1], [], id="start at an end is outside"),
        pytest.param([(0, 0, 10), (0, 10, 0)], [-1, -1], [], id="an instant at an end is outside"),
        pytest.param([(0, 0, 10), (0, 9, 0)], [-1, 0], [], id="an instant inside"),
        pytest.param([(0, 5, 0), (0, 5, 0)], [-1, -1], [], id="an instant holds nothing"),
        pytest.param([(0, 0, 10), (0, 0, 10)], [-1, 0], [], id="the same twice: the first holds"),
        pytest.param([(0, 0, 10), (0, 5, 10), (0, 6, 1)], [-1, -1, 1], [1], id="crossing"),
        pytest.param([(0, 0, 20), (0, 1, 5), (0, 4, 6)], [-1, 0, 0], [2], id="crossing inside a third"),
        pytest.param([(0, 0, 10), (1, 1, 2)], [-1, -1], [], id="another thread"),
    ],
)
def test_borders(rows: list[Interval], parents: list[int], crossing: list[int]) -> None:
    found = nesting(*arrays(rows))
    assert found.parent.tolist() == parents
    assert found.overlaps.tolist() == crossing


@pytest.mark.parametrize("size", [1, 2, 1 << 19])
def test_a_table_is_nested_row_by_row_and_rows_beyond_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(nest_module, "PIECE", size)
    with TraceWriter(tmp_path / "trace") as writer:
        writer.con.execute(
            "CREATE TABLE calls AS SELECT * FROM (VALUES (0, 'step#1', 0, 0, 10), (1, 'add', 0, 0, 10), "
            "(2, 'launch', 0, 2, 6), (3, 'late', 0, 5, 10), (4, 'there', 1, 6, 1), (5, 'beyond', 2, 0, 99), "
            "(6, 'kernel', 2, 1, 1)) t(slice, name, track, ts_ns, dur_ns)"
        )
        assert nest_sorted(writer.con, "calls", "slice < 5", "nested") == (1, "late")
        found = writer.con.execute("FROM nested").fetchall()
    assert found == [(None, 0), (0, 1), (1, 2), (None, 0), (None, 0)]


def test_nothing_to_nest(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "trace") as writer:
        view = "SELECT slice, name, track, ts_ns, dur_ns FROM slices"
        assert nest_sorted(writer.con, f"({view})", "true", "nested") == (0, None)
        assert writer.con.execute("FROM nested").fetchall() == []


def test_depths_follow_the_parents() -> None:
    assert depths(np.array([-1, 0, 1, 0, -1, 4], dtype=np.int32)).tolist() == [0, 1, 2, 1, 0, 1]
    assert depths(np.zeros(0, dtype=np.int32)).tolist() == []
