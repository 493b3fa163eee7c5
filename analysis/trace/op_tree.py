"""torch's tree over host slices: which call is a child of which, and the time with and without children.

torch's rules (``torch/autograd/profiler.py``, ``profiler_util.py``), followed here so that the numbers agree:

* utility names (``aten::is_leaf``, ...) are no nodes, and their children belong to the node above;
* annotations of asynchronous collectives (``nccl:all_reduce``) are no nodes either: for torch they end on
  another thread, so they have a total but no self time and no children;
* a slice that is the only child of a slice of the same name is the same call (``_remove_dup_nodes``);
* a runtime call is a child of the op or annotation round it and lowers its self time;
* a slice that starts inside another and ends after it is not its child;
* GPU time belongs to the innermost op round the launch; a node's total adds its children's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.frame import Frame, Index, Mask
from profrun.contract.step_names import OWN_STEP, TORCH_STEP
from profrun.traces.memo import memoised
from profrun.traces.nest import nesting

Floats = NDArray[np.float64]
Parents = NDArray[np.int32]
_UTILITY = """
[memory] [OutOfMemory] profiler::_record_function_enter profiler::_record_function_enter_new
profiler::_record_function_exit aten::is_leaf aten::output_nr aten::_version
"""
UTILITY = frozenset(_UTILITY.split())
"""Names that torch leaves out of its table."""
ASYNCHRONOUS = re.compile(r"^(?:nccl|gloo|mpi|ucc|xccl|hccl):")
"""Annotations that c10d makes for a collective, which ends whenever its work does."""


@dataclass(frozen=True)
class OpTree:
    """torch's tree over host slices, as arrays by slice id, shape (slices,).

    Attributes:
        counted: slices that are rows.
        repeat: slices that are the same call as their parent (not a call of their own).
        parent: int32, parent in torch's tree, -1 for none.
        self_cpu: ns, whole numbers in float64: they are exact, for they stay under 2**53.
        self_device, device: ns of GPU work, likewise.
    """

    counted: Mask
    repeat: Mask
    parent: Parents
    self_cpu: Floats
    self_device: Floats
    device: Floats


@memoised
def op_tree(source: Frame) -> OpTree:
    """torch's tree of a frame."""
    nodes, late = tree_nodes(source)
    if late.any():  # other slices may lie in one of these only, and cross its ends
        order = source.host_order
        parent = parents_of(source, order[nodes[order]], source.track)
    else:
        parent = source.chase(nodes)
        parent[~nodes] = -1
    return make_tree(source, nodes, late, parent, device_by_op(source))


def tree_nodes(source: Frame) -> tuple[Mask, Mask]:
    """Slices that are nodes of the tree, and annotations that are rows without being nodes."""
    nodes = np.zeros(len(source), dtype=bool)
    late = np.zeros(len(source), dtype=bool)
    ids = source.host_order
    nodes[ids[source.is_kind(ids, "op", "range", "step", "api")]] = True
    ids = np.flatnonzero(nodes)
    nodes[ids[source.named(ids, UTILITY.__contains__)]] = False
    names = source.name_ids(lambda text: bool(ASYNCHRONOUS.match(text)))
    if len(names):
        ids = source.of("range")
        late[ids[source.has_name(ids, names) & nodes[ids]]] = True
        nodes &= ~late
    return nodes, late


def parents_of(source: Frame, ids: Index, track: NDArray[np.int32]) -> Parents:
    """Parents of nodes among themselves, by slice id.

    Args:
        ids: the nodes, sorted by track, start, and longest first.
        track: the track of each slice, by slice id.
    """
    found = nesting(track[ids], source.ts[ids], source.durs(ids)).parent
    parent = np.full(len(source), -1, dtype=np.int32)
    parent[ids] = np.where(found >= 0, ids[found], -1)
    return parent


def make_tree(source: Frame, nodes: Mask, late: Mask, parent: Parents, self_device: Floats) -> OpTree:
    """The tree of these parents.

    Args:
        nodes, late: as ``tree_nodes`` gives them.
        parent: of each node by slice id, -1 for none.
        self_device: ns of GPU work that each slice launched itself.
    """
    size = len(source)
    children = np.flatnonzero(parent >= 0)
    above = parent[children]
    repeat = np.zeros(size, dtype=bool)
    same = row_names(source)
    alike = same[source.name[children]] == same[source.name[above]]
    if alike.any():
        repeat[children] = alike & (np.bincount(above, minlength=size)[above] == 1)
    self_cpu = np.bincount(above, weights=source.durs(children), minlength=size)
    del children, above, alike
    np.subtract(source.dur, self_cpu, out=self_cpu)
    self_cpu[~nodes] = 0
    cpu = np.asarray(self_cpu, dtype=np.float64)
    return OpTree(nodes | late, repeat, parent, cpu, self_device, tree_sum(parent, self_device))


def device_by_op(source: Frame) -> Floats:
    """ns of GPU work by slice id: each GPU slice adds its duration to the innermost op round its launch."""
    launched = source.launched
    owner = source.launching_op(launched)
    keep = owner >= 0
    total = np.bincount(owner[keep], weights=source.durs(launched[keep]), minlength=len(source))
    return np.asarray(total, dtype=np.float64)


def tree_sum(parent: Parents, values: Floats) -> Floats:
    """For every slice the sum of ``values`` over itself and its descendants; whole numbers stay exact."""
    found = values.copy()
    at: Index = np.flatnonzero(values)
    carried = values[at]
    while len(at):  # every value goes up by one parent
        at = parent[at]
        carried, at = carried[at >= 0], at[at >= 0]
        np.add.at(found, at, carried)
    return found


STEP_ROWS = {TORCH_STEP: "ProfilerStep*", OWN_STEP: "profrun.step*"}
"""Beginning of the names of step ranges -> name of the one row that they have."""


def row_names(source: Frame) -> Ints:
    """Name id -> id of the row it belongs to: all ``ProfilerStep#N`` are one row, as in torch's table."""
    same = np.arange(len(source.names), dtype=np.int64)
    for start in STEP_ROWS:
        steps = [number for number, text in enumerate(source.names) if text.startswith(start)]
        same[steps] = steps[0] if steps else 0
    return same


def row_text(source: Frame, name: int) -> str:
    """Name of the row of a name id, as ``row_names`` gives it."""
    text = source.names[name]
    return next((row for start, row in STEP_ROWS.items() if text.startswith(start)), text)
