"""Where the operator table differs from torch's own ``key_averages()``.

torch puts two kinds of records on the thread that stopped the profiler, whichever thread they came from:
runtime calls that no op made (a watchdog's ``cudaEventQuery``), and the profiler's own overhead. There they
lie inside slices that have nothing to do with them, and take from their self time. And torch finds the GPU
work of a record by an id; a runtime call that no op made may have the same id as an op, and then counts that
op's GPU work, too.

Here a call belongs to its own thread, and GPU work to one op. This module builds torch's table as well, so
that each row can say what torch has instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.frame import KIND, Frame, Index, Mask, frame
from profrun.analysis.trace.op_tree import OpTree, device_by_op, make_tree, op_tree, parents_of, tree_nodes
from profrun.traces.memo import memoised
from profrun.traces.nest import KIND_ORDER

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


@memoised
def torch_tree(trace: Trace) -> OpTree:
    """The tree as torch builds it; ``op_tree`` itself where nothing makes a difference."""
    source = frame(trace)
    if trace.meta.get("source") != "kineto":
        return op_tree(source)
    alone = _alone(source)
    overhead = source.of("overhead")
    track = source.track.copy()
    for process in range(len(source.processes)):
        main = _main_track(source, process)
        for ids in (alone, overhead):
            track[ids[source.process_of(ids) == process]] = main
    twice = _twice(trace, source, alone)
    if not twice.any() and bool((track == source.track).all()):
        return op_tree(source)
    nodes, late = tree_nodes(source)
    nodes[overhead] = True
    parent = parents_of(source, _sorted(source, nodes, track), track)
    return make_tree(source, nodes, late, parent, device_by_op(source) + twice)


@memoised
def device_unknown(trace: Trace) -> Mask:
    """Slices under which torch puts a record of its own overhead.

    Its id, which is not in the file, may be that of an op: then torch counts that op's GPU time here, too.
    """
    source, tree = frame(trace), torch_tree(trace)
    found = np.zeros(len(source), dtype=bool)
    if tree is not op_tree(source):
        at = source.of("overhead").astype(np.int64)
        while len(at):
            at = np.unique(tree.parent[at])
            at = at[at >= 0]
            found[at] = True
    return found


def _alone(source: Frame) -> Index:
    """Runtime calls that no op made."""
    calls = source.of("api")
    calls = calls[~source.on_gpu[source.track[calls]]]
    return np.asarray(calls[source.nearest("op")[calls] < 0])


def _main_track(source: Frame, process: int) -> int:
    """The thread that stopped the profiler: that of the steps, else that of most ops."""
    for kind in ("step", "op", "api"):
        ids = source.of(kind)
        ids = ids[(source.process_of(ids) == process) & ~source.on_gpu[source.track[ids]]]
        if len(ids):
            return int(np.bincount(source.track[ids]).argmax())
    return -1


def _sorted(source: Frame, nodes: Mask, track: NDArray[np.int32]) -> Index:
    """The nodes by the given tracks, start, and longest first."""
    order = np.zeros(256, dtype=np.int64)
    for kind, code in KIND.items():
        order[code] = KIND_ORDER.index(kind) if kind in KIND_ORDER else len(KIND_ORDER)
    ids = np.flatnonzero(nodes)
    start, dur = source.ts[ids], source.durs(ids)
    return np.asarray(ids[np.lexsort((ids, order[source.kind[ids]], -dur, start, track[ids]))])


def _twice(trace: Trace, source: Frame, alone: Index) -> Ints:
    """GPU time that torch counts once more, by slice id: for calls whose id is also that of an op."""
    found = np.zeros(len(source), dtype=np.int64)
    if not len(alone):
        return found
    own = device_by_op(source)
    rows = trace.tables.execute(
        "SELECT slice, external_id FROM ops WHERE external_id IS NOT NULL"
    ).fetchnumpy()
    ops, ids = rows["slice"].astype(np.int64), rows["external_id"].astype(np.int64)
    calls = trace.tables.execute(
        "SELECT slice, correlation FROM slices WHERE kind = 'api' AND correlation IS NOT NULL"
    ).fetchnumpy()
    correlation = np.full(len(source), -1, dtype=np.int64)
    correlation[calls["slice"].astype(np.int64)] = calls["correlation"]
    keep = own[ops] > 0
    ops, ids = ops[keep], ids[keep]
    order = np.argsort(ids, kind="stable")
    ops, ids = ops[order], ids[order]
    place = np.searchsorted(ids, correlation[alone])
    hit = place < len(ids)
    hit[hit] &= ids[place[hit]] == correlation[alone[hit]]
    found[alone[hit]] = own[ops[place[hit]]]
    return found
