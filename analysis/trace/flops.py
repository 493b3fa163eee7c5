"""Floating point operations of framework ops, from their recorded input shapes, counted as torch does.

``torch/csrc/profiler/util.cpp``, ``computeFlops``: matrix multiplies and convolutions by multiply-adds x 2,
``add`` and ``mul`` by elements of the first input; nothing else. ``op_cost.cost_of`` also counts attention.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.trace.columns import groups
from profrun.analysis.trace.frame import frame
from profrun.analysis.trace.op_shapes import op_shapes

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

Shapes = Sequence[object]
"""Input shapes of one call as recorded: a list of ints per tensor, anything else for what is no tensor."""


def dimensions(shape: object) -> list[int] | None:
    """A tensor's dimensions, None for anything that is not a recorded tensor shape."""
    if isinstance(shape, list) and shape and all(isinstance(size, int) for size in shape):
        return shape
    return None


def _pair(left: object, right: object) -> tuple[list[int], list[int]] | None:
    a, b = dimensions(left), dimensions(right)
    return (a, b) if a and b else None


def _matmul(shapes: Shapes, at: int) -> int | None:
    if len(shapes) < at + 2:
        return None
    pair = _pair(shapes[at], shapes[at + 1])
    if pair is None or len(pair[0]) < 2 or len(pair[1]) < 2 or pair[0][-1] != pair[1][-2]:
        return None
    a, b = pair
    return 2 * prod(a[:-1]) * a[-1] * b[-1]


def flops_of(name: str, shapes: Shapes, concrete: Sequence[object] | None = None) -> int | None:
    """FLOPs of one call as torch counts them, None for ops it does not count or shapes that do not say.

    Args:
        name: the op, such as aten::mm.
        shapes: input shapes; lists of ints, [] for what is no tensor.
        concrete: values of non-tensor inputs where recorded (stride, padding, ...), for convolutions.
    """
    if name in ("aten::mm", "aten::bmm", "aten::_scaled_mm"):
        return _matmul(shapes, 0)
    if name in ("aten::addmm", "aten::baddbmm", "aten::_addmm_activation"):
        return _matmul(shapes, 1)
    if name in ("aten::add", "aten::mul"):
        dims = dimensions(shapes[0]) if shapes else None
        return prod(dims) if dims else None
    if name == "aten::conv2d":
        return _conv2d(shapes, concrete)
    return None


def _ints(value: object, count: int) -> list[int] | None:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    if isinstance(value, int):
        return [value] * count
    if isinstance(value, list) and value and all(isinstance(item, int) for item in value):
        return value * count if len(value) == 1 else value
    return None


def _conv2d(shapes: Shapes, concrete: Sequence[object] | None) -> int | None:
    pair = _pair(*shapes[:2]) if len(shapes) >= 2 else None
    if pair is None or len(pair[0]) != 4 or len(pair[1]) != 4 or not concrete or len(concrete) < 7:
        return None
    stride, padding, dilation = (_ints(concrete[place], 2) for place in (3, 4, 5))
    groups = _ints(concrete[6], 1)
    if stride is None or padding is None or dilation is None or not groups or 0 in stride or not groups[0]:
        return None
    (batch, channels, height, width), (out, _, kernel_h, kernel_w) = pair
    rows = (height + 2 * padding[0] - dilation[0] * (kernel_h - 1) - 1) // stride[0] + 1
    columns = (width + 2 * padding[1] - dilation[1] * (kernel_w - 1) - 1) // stride[1] + 1
    return 2 * batch * rows * columns * out * (channels // groups[0]) * kernel_h * kernel_w


def parse_list(text: str | None) -> list[object]:
    """A JSON list column of the ops table; [] when it is NULL or no list."""
    if not text:
        return []
    try:
        value = json.loads(text)
    except ValueError:
        return []
    return value if isinstance(value, list) else []


_COUNTED = """
aten::mm aten::bmm aten::addmm aten::baddbmm aten::add aten::mul aten::_scaled_mm aten::_addmm_activation
aten::conv2d
"""
COUNTED = frozenset(_COUNTED.split())
"""Ops whose FLOPs torch counts from shapes."""


def flops_by_op(trace: Trace) -> dict[str, int]:
    """Total FLOPs by op name: as the trace states them, else from shapes; each distinct shape is parsed
    once."""
    total: dict[str, int] = {}
    stated = np.zeros(0, dtype=np.int64)
    if trace.sql("SELECT count(flops) FROM ops").scalar():
        rows = trace.sql(
            "SELECT s.name, sum(o.flops)::BIGINT FROM ops o JOIN slices s USING (slice) "
            "WHERE o.flops IS NOT NULL GROUP BY s.name"
        ).rows
        total = {str(name): int(count) for name, count in rows}
        numbers = trace.tables.execute("SELECT slice FROM ops WHERE flops IS NOT NULL").fetchnumpy()
        stated = np.asarray(numbers["slice"], dtype=np.int64)
    source = frame(trace)
    shapes = op_shapes(trace)
    keep = (shapes.shape >= 0) & source.named(shapes.slices, COUNTED.__contains__)
    keep &= source.is_kind(shapes.slices, "op")
    if len(stated):
        keep &= ~np.isin(shapes.slices, stated)
    name, shape = source.name[shapes.slices[keep]], shapes.shape[keep]
    first, group = groups(name, shape)
    for place, calls in zip(first, np.bincount(group), strict=True):
        op = source.names[int(name[place])]
        each = flops_of(op, parse_list(shapes.shapes[int(shape[place])]))
        if each is not None:
            total[op] = total.get(op, 0) + each * int(calls)
    return total
