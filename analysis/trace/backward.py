"""Which forward op a piece of backward work belongs to: ``forward_ops``.

torch links an autograd node to the op of the forward that made it by a sequence number
(``ops.backward_of``). The engine's own slice round the node (``autograd::engine::evaluate_function``) does
work too: it reduces a broadcast gradient and adds gradients up. That work belongs to the same forward op.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.trace.frame import frame
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


def is_engine(text: str) -> bool:
    """Is this the name of the slice that autograd's engine puts round each node?"""
    return text.startswith("autograd::engine::evaluate_function")


@memoised
def autograd_nodes(trace: Trace) -> NDArray[np.int32]:
    """For every slice that is an autograd node, or the engine's slice round it: the forward op of the node.

    Returns:
        int32 slice ids by slice id, shape (slices,), -1 for every other slice and for nodes whose forward op
        is not recorded.
    """
    source = frame(trace)
    found = np.full(len(source), -1, dtype=np.int32)
    rows = trace.tables.execute(
        "SELECT slice, backward_of FROM ops WHERE backward_of IS NOT NULL"
    ).fetchnumpy()
    nodes = np.asarray(rows["slice"], dtype=np.int64)
    found[nodes] = rows["backward_of"]
    above = source.parent[nodes]
    nodes, above = nodes[above >= 0], above[above >= 0]
    engine = source.named(above, is_engine) & (found[above] < 0)
    found[above[engine]] = found[nodes[engine]]
    return found


@memoised
def early_nodes(trace: Trace) -> NDArray[np.bool_]:
    """Which slices are the engine's round an autograd node whose forward ran before the recording began.

    torch numbers the ops of a forward in their order, so the number of such a node is below that of every op
    of a forward that is recorded. AccumulateGrad has no number: no op of the forward makes it.

    Returns:
        bool by slice id, shape (slices,).
    """
    source = frame(trace)
    found = np.zeros(len(source), dtype=np.bool_)
    rows = trace.tables.execute("SELECT slice, sequence FROM ops WHERE sequence IS NOT NULL").fetchnumpy()
    slices, numbers = np.asarray(rows["slice"], dtype=np.int64), np.asarray(rows["sequence"], dtype=np.int64)
    engine = source.named(slices, is_engine)
    forward = ~engine & ~source.inside(slices[engine])[slices]
    process = source.process_of(slices)
    for number in np.unique(process[engine]):
        mine = process == number
        first = numbers[mine & forward].min(initial=np.iinfo(np.int64).max)
        found[slices[mine & engine & (numbers < first)]] = True
    return found


@memoised
def forward_ops(trace: Trace) -> NDArray[np.int32]:
    """For every slice the forward op whose backward it is, or lies in; -1 for none.

    Returns:
        int32 slice ids by slice id, shape (slices,).
    """
    nodes = autograd_nodes(trace)
    nearest = frame(trace).chase(nodes >= 0)
    return np.asarray(np.where(nodes >= 0, nodes, np.where(nearest >= 0, nodes[nearest], -1)), dtype=np.int32)
