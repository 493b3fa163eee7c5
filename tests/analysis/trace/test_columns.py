"""Columns as arrays, and groups of equal rows."""

from __future__ import annotations

import duckdb
import numpy as np

from profrun.analysis.trace.columns import distinct, groups, int_column, text_codes


def table() -> duckdb.DuckDBPyConnection:
    """Four rows, one without a text."""
    con = duckdb.connect(":memory:")
    con.execute("CREATE TABLE t AS FROM (VALUES (3, 'b'), (1, 'a'), (2, NULL), (4, 'b')) t(n, text)")
    return con


def test_a_column_keeps_the_order_of_its_rows() -> None:
    with table() as con:
        assert int_column(con, "t", "2 * n", np.int64).tolist() == [6, 2, 4, 8]


def test_a_text_column_is_read_as_codes() -> None:
    with table() as con:
        for _ in range(2):  # nothing is left on the connection
            codes, texts = text_codes(con, "t", "text")
            assert [texts[code] if code >= 0 else None for code in codes] == ["b", "a", None, "b"]
            assert sorted(texts) == ["a", "b"]
        con.execute("UPDATE t SET text = NULL")
        codes, texts = text_codes(con, "t", "text")
        assert (codes.tolist(), texts) == ([-1] * 4, [])


def test_distinct_values_increase() -> None:
    assert distinct(np.array([5, 3, 5, 9])) == [3, 5, 9]
    assert distinct(np.array([], dtype=np.int32)) == []


def test_equal_rows_are_one_group() -> None:
    big = 10**12
    first, group = groups(np.array([1, 2, 1, 1]), np.array([big, 0, big, 0]))
    assert group[0] == group[2]
    assert len(set(group.tolist())) == 3
    assert [group[row] for row in first] == [0, 1, 2]
    assert sorted(first.tolist()) == [0, 1, 3]
    assert [part.tolist() for part in groups(np.array([], dtype=np.int64))] == [[], []]
