"""FLOPs of matrix multiplies, convolutions and attention, each counted once: ``matrix_work`` of a trace.

FLOPs come from recorded shapes (``op_cost``), else from what the trace states. Two sums are of interest. The
hardware's FLOPs are all that ran. The model's FLOPs are those that the mathematics of forward and backward
need: without what activation checkpointing computes again, and without the product that a fused attention
backward computes again (two of its ten halves: FlashAttention-2, arXiv 2307.08691, section 2.3.1, five
products where four are needed).

A forward op that checkpointing runs again is recognised in this way: it lies in the backward of another op,
and autograd records it (it has a sequence number), which it does not do in an ordinary backward. A backward
that is itself recorded for a second derivative (``create_graph``) has sequence numbers on all ops; its ops
are no recomputed ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.trace.backward import is_engine
from profrun.analysis.trace.columns import Ints, groups, int_column
from profrun.analysis.trace.flops import parse_list
from profrun.analysis.trace.frame import Frame, Index, Mask, frame
from profrun.analysis.trace.matrix_ops import MATRIX, is_attention, is_counted
from profrun.analysis.trace.op_cost import cost_of
from profrun.analysis.trace.op_shapes import op_shapes
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

Floats = NDArray[np.float64]

NEEDED = 4 / 5
"""Part of the five products of a fused attention backward that are not computed for the second time."""
_LIKE = re.compile(
    r"(?:^|[_:.])(?:w?\d?_?)?(?:bmm|mm|gemm|matmul|linear|attn|attention|moe|conv\dd|convolution)(?![a-z])"
)
_NODE = re.compile(r"Backward\d*$|^autograd::engine::|^torch::autograd::")


@dataclass(frozen=True)
class MatrixWork:
    """The ops that together hold each piece of matrix work once.

    Attributes:
        slices: their slice ids, increasing, shape (ops,).
        flops: FLOPs of each, float64, shape (ops,); NaN where shapes do not tell them.
        needed: the part of these FLOPs that the model needs, 0 to 1, likewise.
        kind: index into ``dtypes`` of each, int64, likewise.
        dtypes: dtypes by the inputs of the ops (``op_cost``); None where they do not tell it.
        told: whether the trace tells recomputed ops from others; False for a backward without any sequence
            number.
    """

    slices: Index
    flops: Floats
    needed: Floats
    kind: Ints
    dtypes: list[str | None]
    told: bool


@memoised
def matrix_work(trace: Trace) -> MatrixWork:
    """Every matrix op of a trace, in steps or not."""
    source = frame(trace)
    ops = source.of("op")
    ids = counted_once(source, ops[source.named(ops, is_counted)])
    recorded = op_shapes(trace)
    shape, types = recorded.of(len(source), ids)
    first, group = groups(source.name[ids], shape, types)
    costs = [
        cost_of(
            source.text(ids[place]),
            parse_list(recorded.shapes[shape[place]] if shape[place] >= 0 else None),
            parse_list(recorded.dtypes[types[place]] if types[place] >= 0 else None),
        )
        for place in first
    ]
    each = np.array([np.nan if cost.flops is None else cost.flops for cost in costs], dtype=np.float64)
    flops = each[group] if len(ids) else np.zeros(0)
    missing = np.flatnonzero(np.isnan(flops))
    flops[missing] = _stated(trace, ids[missing])
    dtypes = sorted({cost.dtype or "" for cost in costs})
    kinds = np.array([dtypes.index(cost.dtype or "") for cost in costs], dtype=np.int64)
    again, told = recomputed(trace)
    flops[stopped(source, ids, again)] = 0.0
    fused = source.named(ids, lambda text: is_attention(text) and "backward" in text)
    needed = np.where(again[ids], 0.0, np.where(fused, NEEDED, 1.0))
    kind = kinds[group] if len(ids) else np.zeros(0, dtype=np.int64)
    return MatrixWork(ids, flops, needed, kind, [one or None for one in dtypes], told)


def _stated(trace: Trace, ids: Index) -> Floats:
    """FLOPs of ops as the trace states them, NaN where it does not; float64, shape (ops,)."""
    if not len(ids):
        return np.zeros(0)
    rows = trace.tables.execute("SELECT slice, flops FROM ops WHERE flops IS NOT NULL").fetchall()
    known = {int(number): float(flops) for number, flops in rows}
    return np.array([known.get(int(number), np.nan) for number in ids])


def counted_once(source: Frame, ids: Index) -> Index:
    """Those of the matrix ops that together hold each piece of work once.

    A matrix op inside an attention op counts instead of it. Of nested attention ops the outermost counts (its
    shapes are batch, heads, sequence, width), of nested convolutions the outermost.
    """
    matrix = np.zeros(len(source), dtype=bool)
    matrix[ids[source.named(ids, MATRIX.__contains__)]] = True
    other = np.zeros(len(source), dtype=bool)
    other[ids] = True
    other &= ~matrix
    up = source.chase(other)
    return np.flatnonzero(matrix | (other & ~_holding(up, np.flatnonzero(matrix)) & (up < 0)))


def _holding(up: Index, ids: Index) -> Mask:
    """Which slices lie round these ones, of those that ``up`` leads to.

    Args:
        up: of ``Frame.chase``, by slice id.
    """
    holds = np.zeros(len(up), dtype=bool)
    at = up[ids]
    at = at[at >= 0]
    while len(at):
        holds[at] = True
        at = up[at]
        at = at[at >= 0]
    return holds


@memoised
def recomputed(trace: Trace) -> tuple[Mask, bool]:
    """Ops that lie in a forward which checkpointing runs again during the backward.

    Returns:
        By slice id, bool, shape (slices,): whether the slice lies in such a forward; and whether the trace
        can tell it.
    """
    source = frame(trace)
    again = np.zeros(len(source), dtype=bool)
    recorded = np.zeros(len(source), dtype=bool)
    slices = int_column(trace.tables, "ops", "slice", np.int64)
    sequence = int_column(trace.tables, "ops", "coalesce(sequence, -1)", np.int64)
    recorded[slices[sequence >= 0]] = True
    ops = source.of("op")
    node = np.zeros(len(source), dtype=bool)
    node[ops[source.named(ops, lambda text: bool(_NODE.search(text)))]] = True
    if not node.any():
        return again, True
    inside = source.chase(node)
    mine = ops[(inside[ops] >= 0) & ~node[ops]]
    first = mine[inside[mine] == source.parent[mine]]  # what a node calls itself
    plain = np.zeros(len(source), dtype=bool)  # nodes in whose backward autograd does not record
    silent = first[~recorded[first] & source.named(first, _records)]
    plain[inside[silent]] = True
    engine = np.flatnonzero(node)
    engine = engine[source.named(engine, is_engine)]
    held = source.chase(node)[engine]
    plain[held[held >= 0]] = True  # a backward inside of a node: checkpointing with use_reentrant
    plain[np.flatnonzero(node)[source.named(np.flatnonzero(node), _is_checkpoint)]] = True
    kept = mine[recorded[mine] & plain[inside[mine]]]
    again[kept] = True
    below = source.chase(again | node)
    lowest = mine[(below[mine] >= 0) & ~again[mine]]
    again[lowest] = again[below[lowest]]
    return again, bool(recorded.any())


def stopped(source: Frame, ids: Index, again: Mask) -> Mask:
    """Which ops checkpointing began and did not compute.

    A forward that runs again is left by an exception as soon as it has saved the last tensor that the
    backward needs (``torch.utils.checkpoint``, ``early_stop``). Autograd saves the inputs of an op before the
    op runs, so all that the trace has of this op is the detaching of its inputs.

    Args:
        ids: ops that count, shape (ops,).
        again: by slice id, whether it lies in a forward that runs again.

    Returns:
        bool, shape (ops,).
    """
    below = np.flatnonzero(source.parent >= 0)
    above = source.parent[below]
    children = np.bincount(above, minlength=len(source))
    detached = source.named(below, lambda text: text in ("aten::detach", "detach"))
    only = children == np.bincount(above[detached], minlength=len(source))
    ops = np.flatnonzero(again & only & (children > 0))
    leaf = ops[source.named(ops, is_counted)]
    found = np.zeros(len(source) + 1, dtype=bool)
    at: Index = leaf
    while len(at):  # the op that counts is round it, or it is that op
        found[at] = True
        at = source.parent[at]
        at = at[at >= 0]
        at = at[again[at] & source.named(at, is_counted)]
    return np.asarray(found[ids])


def _records(text: str) -> bool:
    """Would autograd record this op, if it recorded at all? It never records one that has no tensor as
    input."""
    return text.startswith("aten::") and not text.startswith(("aten::empty", "aten::zeros", "aten::ones"))


def _is_checkpoint(text: str) -> bool:
    return "CheckpointFunctionBackward" in text


def unknown_like(trace: Trace) -> Index:
    """Ops that by their names do matrix work, of which nothing is counted: no counted op is inside of them
    or around them.

    Returns:
        Slice ids, shape (ops,).
    """
    source = frame(trace)
    counted = np.zeros(len(source), dtype=bool)
    ops = source.of("op")
    counted[ops[source.named(ops, is_counted)]] = True
    like = source.named(ops, is_matrix_like) & ~counted[ops]
    ids = ops[like & (source.chase(counted)[ops] < 0)]
    wanted = np.zeros(len(source), dtype=bool)
    wanted[ids] = True
    holds = _holding(source.chase(wanted), np.flatnonzero(counted | wanted))
    return np.asarray(ids[~holds[ids]])


def is_matrix_like(text: str) -> bool:
    """Does the name of an op tell that it multiplies matrices?"""
    return not _NODE.search(text) and bool(_LIKE.search(text))
