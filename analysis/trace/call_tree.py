"""Call trees: the GPU work and the host time of each call path, with its own part and with everything inside.

``call_trees`` is given a trace and returns up to three trees of the same time: by module (``modules``), by
ranges, ops and kernels (``calls``), and by Python stack (``python``). In each tree the parts add up to the
whole: paths too small to keep are one node below their parent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.trace.columns import Ints, groups
from profrun.analysis.trace.frame import KIND, UNUSED, Frame, Index, frame
from profrun.analysis.trace.modules import ModuleNode, ModuleTree, module_tree
from profrun.analysis.trace.steps import in_steps, step_index, step_of_host
from profrun.traces.nest import depths

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

By = Literal["modules", "calls", "python"]
NODES = 800
"""Most nodes of a tree."""
LEAST = 0.0005
"""Nodes with a smaller part of the whole are not kept."""
REST, ALONE = "(smaller)", "(launched outside of all of these)"
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"(?<=[.#_])\d+\b")


@dataclass(frozen=True)
class CallNode:
    """A call path: all calls of one name below one parent. Times are ns in total.

    Attributes:
        parent: index of the node above in the tree, -1 for none; parents come before children.
        name: of the calls; numbers of repeated modules and of ranges are ``*``.
        kind: module, range, op, python, the kind of GPU work, or ``rest`` for what is not shown.
        calls: how many there are; 0 for a rest.
        gpu_ns: GPU work launched inside.
        own_gpu_ns: the part of ``gpu_ns`` that is in no child.
        host_ns: host time.
        own_host_ns: the part of ``host_ns`` that is in no child; never negative, although a child may end
            after its parent.
    """

    parent: int
    name: str
    kind: str
    calls: int
    gpu_ns: int
    own_gpu_ns: int
    host_ns: int
    own_host_ns: int


@dataclass(frozen=True)
class CallTree:
    """A tree; the ``gpu_ns`` of the nodes without a parent add up to ``gpu_ns``, likewise ``host_ns``.

    Attributes:
        by: what its nodes are.
        steps: how many steps of all ranks the times are of; 0 for the whole recording.
        gpu_ns: all GPU work that these steps launched; work that runs side by side counts twice.
        host_ns: host time of the nodes without a parent, over all threads.
    """

    by: By
    steps: int
    gpu_ns: int
    host_ns: int
    nodes: tuple[CallNode, ...]


def call_trees(trace: Trace) -> list[CallTree]:
    """The trees for which the trace has records; a tree without any time is left out."""
    source = frame(trace)
    found = [_of_modules(module_tree(trace))]
    found += [_folded(source, by, kinds) for by, kinds in KINDS.items()]
    return [tree for tree in found if tree is not None and tree.nodes]


KINDS: dict[By, tuple[str, ...]] = {"calls": ("range", "op"), "python": ("python",)}
"""Kinds of host slices that are nodes of a tree."""


@dataclass
class Columns:
    """Nodes as columns, parents before children: int64 arrays of shape (nodes,)."""

    parent: Ints
    name: Ints
    kind: Ints
    calls: Ints
    host: Ints
    own_gpu: Ints

    def within(self, own: Ints) -> Ints:
        """Of each node the sum of ``own`` over itself and everything below."""
        total = own.copy()
        for place in range(len(total) - 1, -1, -1):
            if self.parent[place] >= 0:
                total[self.parent[place]] += total[place]
        return total


def _folded(source: Frame, by: By, kinds: tuple[str, ...]) -> CallTree | None:
    """The tree whose nodes are host slices of these kinds, with GPU work as leaves."""
    index = step_index(source)
    ids = source.of(*kinds)
    ids = ids[~source.on_gpu[source.track[ids]]]
    gpu = source.gpu[in_steps(source, source.gpu)]
    if len(index.slices):
        ids = ids[step_of_host(source, index, ids) >= 0]
    if not len(ids):
        return None
    wanted = np.zeros(len(source), dtype=bool)
    wanted[ids] = True
    names, label = _labels(source)
    above = source.chase(wanted)
    node_of, columns = levels(source, ids, above, label)
    calls = source.launch[gpu]
    owner = np.where(calls < 0, -1, np.where(wanted[calls], calls, above[calls]))
    columns = _leaves(source, gpu, np.where(owner >= 0, node_of[owner], -1), columns, label)
    return _cut(by, len(index.slices), columns, names)


def plain_name(text: str) -> str:
    """The name of a call without addresses of objects; where it has a ``#``, its numbers are ``*``."""
    short = _ADDRESS.sub("", text)
    return _NUMBER.sub("*", short) if "#" in text else short


def _labels(source: Frame) -> tuple[list[str], Ints]:
    """Texts of labels, and the label of each name id: names that differ in a number only have one."""
    found: dict[str, int] = {ALONE: 0}
    label = np.zeros(len(source.names) + 1, dtype=np.int64)
    for number, text in enumerate(source.names):
        short = plain_name(text)
        if text.startswith("nn.Module: "):
            short = _NUMBER.sub("*", short)
        label[number] = found.setdefault(short, len(found))
    return list(found), label


def levels(source: Frame, ids: Index, above: NDArray[np.int32], label: Ints) -> tuple[Ints, Columns]:
    """Fold calls level by level: one node for each label and kind below a node.

    Returns:
        Node of each slice id, -1 for none, and the nodes.
    """
    node_of = np.full(len(source), -1, dtype=np.int64)
    parts: list[tuple[Ints, ...]] = []
    count = 0
    for level in _by_depth(ids, above):
        parent = np.where(above[level] >= 0, node_of[above[level]], -1)
        nodes, place, calls = _distinct(parent, label[source.name[level]], source.kind[level])
        host = np.bincount(place, weights=source.durs(level), minlength=len(calls)).astype(np.int64)
        parts.append((*nodes, calls, host))
        node_of[level] = place + count
        count += len(calls)
    parent, name, kind, calls, host = (np.concatenate(column) for column in zip(*parts, strict=True))
    return node_of, Columns(parent, name, kind, calls, host, np.zeros(count, dtype=np.int64))


def _distinct(
    parent: Ints, label: Ints, kind: NDArray[np.uint8]
) -> tuple[tuple[Ints, Ints, Ints], Ints, Ints]:
    """The distinct rows of three columns, which of them each row is, and how often each occurs."""
    first, place = groups(parent, label, kind)
    count = np.bincount(place, minlength=len(first))
    return (parent[first], label[first], kind[first].astype(np.int64)), place, count


def _by_depth(ids: Index, above: NDArray[np.int32]) -> Iterator[Index]:
    """The slices level by level: those with nothing above, then those right below them, and so on."""
    depth = depths(above)[ids]
    order = np.argsort(depth, kind="stable")
    cuts = np.flatnonzero(np.diff(depth[order])) + 1
    yield from np.split(ids[order], cuts)


def _leaves(source: Frame, gpu: Index, node: Ints, columns: Columns, label: Ints) -> Columns:
    """The nodes with GPU work as leaves below what launched it; what no node launched is below one more node.

    Args:
        source: the frame.
        gpu: GPU slices, shape (n,).
        node: the node that launched each of them, shape (n,); -1 for none.
        columns: the nodes.
        label: label of each name id.
    """
    size = len(columns.parent)
    if (node < 0).any():
        columns = _joined(columns, Columns(*(np.array([one]) for one in (-1, 0, UNUSED, 0, 0, 0))))
        node = np.where(node < 0, size, node)
    leaves, place, count = _distinct(node, label[source.name[gpu]], source.kind[gpu])
    time = np.bincount(place, weights=source.durs(gpu), minlength=len(count)).astype(np.int64)
    zero = np.zeros(len(count), dtype=np.int64)
    return _joined(columns, Columns(*leaves, count, zero, time))


def _joined(first: Columns, second: Columns) -> Columns:
    both = (np.concatenate([one, vars(second)[name]]) for name, one in vars(first).items())
    return Columns(*both)


def _cut(by: By, steps: int, columns: Columns, names: list[str]) -> CallTree:
    """The tree of the largest nodes; what is smaller becomes one node below its parent."""
    gpu = columns.within(columns.own_gpu)
    below = columns.parent >= 0
    own_host = columns.host.copy()
    np.subtract.at(own_host, columns.parent[below], columns.host[below])
    whole_gpu, whole_host = int(columns.own_gpu.sum()), int(columns.host[~below].sum())
    weight = np.maximum(gpu / max(whole_gpu, 1), columns.host / max(whole_host, 1))
    least = LEAST if len(weight) <= NODES else max(LEAST, float(np.sort(weight)[-NODES]))
    kept = weight >= least
    kind_of = {code: kind for kind, code in KIND.items()}
    place = np.full(len(weight) + 1, -1, dtype=np.int64)  # one more: a parent of -1 finds -1 there
    place[np.flatnonzero(kept)] = np.arange(int(kept.sum()))
    nodes = [
        CallNode(
            int(place[columns.parent[at]]),
            names[columns.name[at]],
            kind_of.get(int(columns.kind[at]), "rest"),
            int(columns.calls[at]),
            int(gpu[at]),
            int(columns.own_gpu[at]),
            int(columns.host[at]),
            max(0, int(own_host[at])),
        )
        for at in np.flatnonzero(kept)
    ]
    first_out = np.flatnonzero(~kept & np.where(below, kept[np.maximum(columns.parent, 0)], True))
    rest: dict[int, list[int]] = {}
    for at in first_out.tolist():
        one = rest.setdefault(int(place[columns.parent[at]]), [0, 0])
        one[0] += int(gpu[at])
        one[1] += int(columns.host[at])
    nodes += [CallNode(above, REST, "rest", 0, g, g, h, h) for above, (g, h) in rest.items() if g or h]
    return CallTree(by, steps, whole_gpu, whole_host, tuple(nodes))


def _of_modules(tree: ModuleTree | None) -> CallTree | None:
    """The tree of modules with forward and backward, and the work outside of all modules."""
    if tree is None:
        return None
    nodes: list[CallNode] = []

    def add(node: ModuleNode, parent: int) -> None:
        times = f" x {node.modules}" if node.modules > 1 else ""
        name = f"{node.name} ({node.module_class}){times}"
        own = (node.gpu_ns, node.own_ns, node.host_ns, node.own_host_ns)
        nodes.append(CallNode(parent, name, "module", node.calls, *own))
        here = len(nodes) - 1
        for child in node.children:
            add(child, here)

    for root in tree.roots:
        add(root, -1)
    for row in tree.outside:
        name = row.name or "(no module, no range)"
        nodes.append(CallNode(-1, name, "range" if row.name else "rest", 0, row.gpu_ns, row.gpu_ns, 0, 0))
    inside = sum(node.host_ns for node in nodes if node.parent < 0)
    left = tree.host_ns - inside
    if left > 0:
        nodes.append(CallNode(-1, "(outside of all modules)", "rest", 0, 0, 0, left, left))
    return CallTree("modules", tree.steps, tree.gpu_ns, max(tree.host_ns, inside), tuple(nodes))
