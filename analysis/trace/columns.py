"""Columns of a trace's tables as numpy arrays, and groups of equal rows.

``int_column`` and ``text_codes`` read one column in the order of its file. ``groups`` and ``distinct`` number
what is equal in such columns, without sorting where the numbers are small.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import duckdb

Ints = NDArray[np.int64]
Integer = TypeVar("Integer", bound=np.integer)


def int_column(
    con: duckdb.DuckDBPyConnection, table: str, expression: str, dtype: type[Integer]
) -> NDArray[Integer]:
    """One SQL expression over all rows of a table, in the order of its file; shape (rows,)."""
    got = con.execute(f'SELECT {expression} AS v FROM "{table}"').fetchnumpy()
    return np.asarray(got["v"], dtype=dtype)


def text_codes(
    con: duckdb.DuckDBPyConnection, table: str, column: str
) -> tuple[NDArray[np.int32], list[str]]:
    """A text column as codes, so that no row becomes a Python object.

    An enumeration of the engine does the work: it is a dictionary of texts that keeps the order of the rows.
    It exists on this connection only until the function returns.

    Returns:
        For each row the index of its text, shape (rows,), -1 for NULL; and the distinct texts.
    """
    rows, known = con.execute(f'SELECT count(*), count("{column}") FROM "{table}"').fetchall()[0]
    if not known:
        return np.full(rows, -1, dtype=np.int32), []
    con.execute(
        f'CREATE TEMP TYPE text_codes AS ENUM (SELECT DISTINCT "{column}" FROM "{table}" '
        f'WHERE "{column}" IS NOT NULL)'
    )
    try:
        texts = con.execute("SELECT enum_range(NULL::text_codes)").fetchall()[0][0]
        code = f'coalesce(enum_code("{column}"::text_codes)::INTEGER, -1)'
        return int_column(con, table, code, np.int32), list(texts)
    finally:
        con.execute("DROP TYPE text_codes")


def distinct(values: NDArray[np.integer]) -> list[int]:
    """The different values of an array of small integers (tracks, devices), increasing."""
    if not len(values):
        return []
    low = int(values.min())
    return [low + int(one) for one in np.flatnonzero(np.bincount(values - low))]


def places_of(owner: NDArray[np.integer], count: int) -> list[NDArray[np.intp]]:
    """The places at which each owner stands in an array, increasing; one pass for all owners.

    Args:
        owner: shape (rows,), 0 to ``count`` - 1; rows with -1 belong to nobody.
        count: how many owners there are.
    """
    order = np.argsort(owner, kind="stable")
    bounds = np.searchsorted(owner[order], np.arange(count + 1))
    return [order[first:last] for first, last in pairwise(bounds.tolist())]


def groups(*columns: NDArray[np.integer]) -> tuple[Ints, Ints]:
    """Groups of equal rows.

    Args:
        columns: integer arrays of one length, shape (rows,); a row is one value of each.

    Returns:
        The index of the first row of each group, shape (groups,), and the group of each row, shape (rows,).
    """
    count = len(columns[0])
    group = np.zeros(count, dtype=np.int64)
    if not count:
        return group, group
    for column in columns:
        low = int(column.min())
        group = _ranks(group * (int(column.max()) - low + 1) + (column.astype(np.int64) - low))
    first = np.empty(int(group.max()) + 1, dtype=np.int64)
    first[group[::-1]] = np.arange(count - 1, -1, -1)  # of equal indices the last assignment stays
    return first, group


def _ranks(key: Ints) -> Ints:
    """Each key (not negative) as its rank among the distinct keys; without a sort where they are small."""
    if int(key.max()) > 4 * len(key) + 1024:
        return np.asarray(np.unique(key, return_inverse=True)[1], dtype=np.int64)
    used = np.bincount(key) > 0
    return np.asarray((np.cumsum(used) - 1)[key], dtype=np.int64)
