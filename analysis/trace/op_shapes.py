"""Recorded input shapes of ops as numbers: one code a distinct shape, so that grouping needs no strings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.trace.frame import Frame, Index, Ints

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


@dataclass(frozen=True)
class OpShapes:
    """Shapes and dtypes of the ops table.

    Attributes:
        slices: op slice ids, in the order of the table.
        shape, dtype: index into ``shapes`` and ``dtypes`` for each of them, -1 for NULL.
        shapes, dtypes: the distinct texts (JSON), as recorded.
    """

    slices: NDArray[np.int32]
    shape: NDArray[np.int32]
    dtype: NDArray[np.int32]
    shapes: list[str]
    dtypes: list[str]

    def of(self, size: int, ids: Index) -> tuple[Any, Any]:
        """(shape, dtype) codes of op slices, -1 where nothing is recorded; ``size`` is the frame's length."""
        found = []
        for codes in (self.shape, self.dtype):
            table = np.full(size, -1, dtype=np.int32)
            table[self.slices] = codes
            found.append(table[ids])
        return found[0], found[1]


def op_shapes(trace: Trace, source: Frame) -> OpShapes:
    """The shapes of a trace; kept with its frame."""
    found: OpShapes | None = source.cache.get("op_shapes")
    if found is None:
        found = source.cache["op_shapes"] = _read(trace)
    return found


def _read(trace: Trace) -> OpShapes:
    con = trace.tables
    slices = np.asarray(con.execute("SELECT slice::INTEGER AS v FROM ops").fetchnumpy()["v"], dtype=np.int32)
    shape, shapes = _codes(con, "shapes", len(slices))
    dtype, dtypes = _codes(con, "dtypes", len(slices))
    return OpShapes(slices, shape, dtype, shapes, dtypes)


def _codes(con: Any, column: str, rows: int) -> tuple[NDArray[np.int32], list[str]]:
    """A text column of the ops table as codes, and the texts; an enumeration keeps the order of the rows."""
    if not con.execute(f"SELECT count({column}) FROM ops").fetchall()[0][0]:
        return np.full(rows, -1, dtype=np.int32), []
    con.execute(f"DROP TYPE IF EXISTS op_{column}")
    con.execute(
        f"CREATE TYPE op_{column} AS ENUM (SELECT DISTINCT {column} FROM ops WHERE {column} IS NOT NULL)"
    )
    texts = list(con.execute(f"SELECT enum_range(NULL::op_{column})").fetchall()[0][0])
    code = con.execute(f"SELECT coalesce(enum_code({column}::op_{column})::INTEGER, -1) AS v FROM ops")
    return np.asarray(code.fetchnumpy()["v"], dtype=np.int32), texts


def dense(*columns: Any) -> tuple[Ints, Ints]:
    """Groups of equal rows: (index of the first row of each group, group of each row).

    Args:
        columns: integer arrays of one length; a row is one value of each.
    """
    count = len(columns[0])
    group = np.zeros(count, dtype=np.int64)
    if not count:
        return group, group
    for column in columns:
        low = int(column.min())
        group = _numbered(group * (int(column.max()) - low + 1) + (column.astype(np.int64) - low))
    first = np.empty(int(group.max()) + 1, dtype=np.int64)
    first[group[::-1]] = np.arange(count - 1, -1, -1)  # of equal indices the last assignment stays
    return first, group


def _numbered(key: Ints) -> Ints:
    """Each key (not negative) as its rank among the distinct ones; without a sort where they are small."""
    if int(key.max()) > 4 * len(key) + 1024:
        return np.asarray(np.unique(key, return_inverse=True)[1], dtype=np.int64)
    used = np.bincount(key) > 0
    return np.asarray((np.cumsum(used) - 1)[key], dtype=np.int64)
