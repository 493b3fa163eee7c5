"""Recorded input shapes of ops as numbers: one code per distinct shape, so that grouping needs no strings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.trace.columns import int_column, text_codes
from profrun.analysis.trace.frame import Index
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

Codes = NDArray[np.int32]


@dataclass(frozen=True)
class OpShapes:
    """Shapes and dtypes of the ops table.

    Attributes:
        slices: op slice ids, in the order of the table, shape (ops,).
        shape, dtype: index into ``shapes`` and ``dtypes`` for each of them, shape (ops,), -1 for NULL.
        shapes, dtypes: the distinct texts (JSON), as recorded.
    """

    slices: Codes
    shape: Codes
    dtype: Codes
    shapes: list[str]
    dtypes: list[str]

    def of(self, size: int, ids: Index) -> tuple[Codes, Codes]:
        """(shape, dtype) codes of op slices, -1 where nothing is recorded; ``size`` is the frame's length."""
        table = np.full((2, size), -1, dtype=np.int32)
        table[0, self.slices], table[1, self.slices] = self.shape, self.dtype
        return table[0, ids], table[1, ids]


@memoised
def op_shapes(trace: Trace) -> OpShapes:
    """The recorded shapes of a trace."""
    con = trace.tables
    slices = int_column(con, "ops", "slice::INTEGER", np.int32)
    shape, shapes = text_codes(con, "ops", "shapes")
    dtype, dtypes = text_codes(con, "ops", "dtypes")
    return OpShapes(slices, shape, dtype, shapes, dtypes)
