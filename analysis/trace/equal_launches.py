"""Launches that should take equally long: the same kernel, stream, grid, block and input shapes of its op."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.kernel_names import MATRIX_CATEGORIES
from profrun.analysis.trace.columns import Ints, groups
from profrun.analysis.trace.frame import Index, Mask, frame
from profrun.analysis.trace.op_shapes import Codes, op_shapes
from profrun.analysis.trace.roles import kernel_names
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

_SIZES = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")


@dataclass(frozen=True)
class EqualLaunches:
    """Kernel launches in groups of equal ones.

    Attributes:
        ids: kernel slices with a grid, shape (n,), in id order.
        group: a number for each group of equal launches, shape (n,).
        whole: whether all that decides the work is known, bool, shape (n,): the grid of a matrix kernel does
            not tell its inner dimension, so without the shapes of its op it is not.
    """

    ids: Index
    group: Ints
    whole: Mask


@memoised
def equal_launches(trace: Trace) -> EqualLaunches:
    """All kernel launches with a grid, in groups of equal ones."""
    source = frame(trace)
    ids, form = _launch_forms(trace)
    op = source.launching_op(ids)
    shape = np.where(op >= 0, op_shapes(trace).of(len(source), np.maximum(op, 0))[0], -1)
    names = kernel_names(source)
    matrix = [number for number, kernel in names.items() if kernel.category in MATRIX_CATEGORIES]
    whole = (shape >= 0) | ~source.has_name(ids, matrix)
    _, group = groups(source.name[ids], source.track[ids], form, shape)
    return EqualLaunches(ids, group, whole)


def _launch_forms(trace: Trace) -> tuple[Index, Codes]:
    """Kernel slices with a grid, in id order, and a number for each distinct grid and block."""
    sizes = ", ".join(_SIZES)
    known = ", ".join(f"coalesce({name}, -1) AS {name}" for name in _SIZES)
    got = trace.tables.execute(
        f"WITH launch AS (SELECT slice, {known} FROM kernels WHERE grid_x IS NOT NULL), "
        f"forms AS (SELECT *, row_number() OVER () AS form FROM (SELECT DISTINCT {sizes} FROM launch)) "
        "SELECT slice::INTEGER AS slice, form::INTEGER AS form "
        f"FROM launch JOIN forms USING ({sizes}) ORDER BY slice"
    ).fetchnumpy()
    return np.asarray(got["slice"], dtype=np.int32), np.asarray(got["form"], dtype=np.int32)
