"""The call tree by line: modules, in them the lines of the program, in these the GPU work that they launched.

``line_tree`` is given the addresses of a trace. Below a line stands the name of a generated kernel where
torch.compile made one of it, then the kernels, copies and memsets. The time of a kernel that was made of
several lines is divided equally among them. Work without an address lies below the reason for that. So the
parts add up to all GPU work of the counted steps, in whole ns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from profrun.analysis.trace.addressed_work import AddressedWork, Work, addressed_work, equal_parts
from profrun.analysis.trace.addresses import UNRESOLVED, Addresses
from profrun.analysis.trace.call_tree import LEAST, NODES, REST
from profrun.analysis.trace.frame import Frame
from profrun.analysis.trace.line_table import OUTSIDE
from profrun.analysis.trace.modules import NUMBER
from profrun.contract.line_names import LINE, Line, line_name

NO_ADDRESS = "(no line known)"
"""The node above the reasons for which work has no address."""


@dataclass(frozen=True)
class LineNode:
    """A path of the tree. Times are ns in total.

    Attributes:
        parent: index of the node above in the tree, -1 for none; parents come before children.
        name: a part of the qualified name of a module, numbers of repeated ones as ``*``; ``file:line
            function``; a generated kernel; GPU work; or why work has no address.
        kind: module, line, generated, the kind of GPU work, or ``rest`` for what is none of these.
        launches: kernels, copies and memsets; each counts once, also where several lines below share it.
        gpu_ns: their time, of work that is shared with other lines its part.
        own_gpu_ns: the part of ``gpu_ns`` that is in no child.
        backward_ns: the part of ``gpu_ns`` that is work of the backward.
        line: of a node of kind ``line``.
    """

    parent: int
    name: str
    kind: str
    launches: int
    gpu_ns: int
    own_gpu_ns: int
    backward_ns: int
    line: Line | None = None


@dataclass(frozen=True)
class LineWork:
    """Kernels, copies or memsets of one name that lie in the same nodes.

    Attributes:
        name, kind: what they are.
        backward: whether they are work of the backward; None where that is not known.
        launches: how many there are.
        parts: (node, ns): the innermost nodes that they lie in, and how much of their time each has.
    """

    name: str
    kind: str
    backward: bool | None
    launches: int
    parts: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class LineTree:
    """The tree; the ``gpu_ns`` of its nodes without a parent add up to ``gpu_ns``, and so does its ``work``.

    Attributes:
        steps: steps of all ranks that the times are of; 0 for the whole recording.
        gpu_ns: all GPU work that these steps launched; work that runs side by side counts twice.
    """

    steps: int
    gpu_ns: int
    nodes: tuple[LineNode, ...]
    work: tuple[LineWork, ...]


@dataclass(frozen=True)
class _Label:
    """What a node is: calls with one label below one node are one node."""

    name: str
    kind: str
    line: Line | None = None
    backward: bool | None = None


@dataclass
class _Node:
    parent: int
    label: _Label
    gpu: int = 0
    own: int = 0
    backward: int = 0
    launches: int = 0
    below: dict[_Label, int] = field(default_factory=dict)


class _Tree:
    """Nodes as they are found; a node's index is that of its first path."""

    def __init__(self) -> None:
        self.nodes: list[_Node] = []
        self._top: dict[_Label, int] = {}

    def add(self, path: Sequence[_Label], ns: int, backward: bool) -> int:
        """Add time to a path; returns its innermost node."""
        at = -1
        for label in path:
            here = self._top if at < 0 else self.nodes[at].below
            if label not in here:
                here[label] = len(self.nodes)
                self.nodes.append(_Node(at, label))
            at = here[label]
            self.nodes[at].gpu += ns
            self.nodes[at].backward += ns * backward
        self.nodes[at].own += ns
        return at

    def way(self, at: int) -> Iterator[int]:
        """A node and those above it."""
        while at >= 0:
            yield at
            at = self.nodes[at].parent


def line_tree(source: Frame, found: Addresses) -> LineTree | None:
    """The tree of a trace; None where its steps have no GPU work.

    Args:
        source: the frame of the trace.
        found: the addresses of its GPU slices.
    """
    work = addressed_work(source, found)
    if not work.gpu_ns:
        return None
    tree = _Tree()
    parts = []
    for one in work.rows:
        paths = list(_paths(one))
        times = equal_parts(one.ns, len(paths))
        backward = one.address is not None and one.address.backward
        ends = [tree.add(path, ns, backward) for path, ns in zip(paths, times, strict=True)]
        parts.append(list(zip(ends, times, strict=True)))
    return _cut(tree, work, parts)


def _paths(work: Work) -> Iterator[tuple[_Label, ...]]:
    """The paths that lead to GPU work, one for each line that it was made of."""
    address = work.address
    if address is None:
        assert work.why is not None
        reason = (_Label(NO_ADDRESS, "rest"), _Label(UNRESOLVED[work.why], "rest"))
        yield (*reason, _Label(work.name, work.kind))
        return
    module = (
        tuple(_Label(part, "module") for part in module_parts(address.module))
        if address.module is not None
        else (_Label(OUTSIDE, "rest"),)
    )
    end = _Label(work.name, work.kind, backward=address.backward)
    made = (_Label(address.kernel, "generated"),) if address.kernel is not None else ()
    for line in address.lines:
        yield (*module, _Label(line_name(line).removeprefix(LINE), "line", line), *made, end)


def module_parts(path: str) -> list[str]:
    """The parts of the qualified name of a module: ``layers.3.mlp`` is ``layers.*`` and ``mlp``."""
    parts: list[str] = []
    for part in NUMBER.sub("*", path).split("."):
        if part == "*" and parts:
            parts[-1] += ".*"
        else:
            parts.append(part)
    return parts


def _cut(tree: _Tree, work: AddressedWork, parts: Sequence[list[tuple[int, int]]]) -> LineTree:
    """The largest nodes; what is smaller becomes one node below its parent.

    Args:
        parts: of each row of ``work`` (innermost node, ns).
    """
    sizes = sorted((node.gpu for node in tree.nodes), reverse=True)
    made, shown = _kept(tree, max(LEAST * work.gpu_ns, sizes[NODES - 1] if len(sizes) > NODES else 0))
    launches: dict[tuple[_Label, tuple[int, ...]], int] = defaultdict(int)
    times: dict[tuple[_Label, tuple[int, ...]], list[int]] = {}
    for row, ends in zip(work.rows, parts, strict=True):
        for at in {shown[above] for end, _ in ends for above in tree.way(end)}:
            made[at].launches += row.launches
        backward = None if row.address is None else row.address.backward
        key = (_Label(row.name, row.kind, backward=backward), tuple(shown[end] for end, _ in ends))
        launches[key] += row.launches
        times[key] = [a + b for a, (_, b) in zip(times.get(key, [0] * len(ends)), ends, strict=True)]
    told = [
        LineWork(one.name, one.kind, one.backward, launches[one, ends], tuple(zip(ends, ns, strict=True)))
        for (one, ends), ns in times.items()
    ]
    return LineTree(work.steps, work.gpu_ns, tuple(_node(one) for one in made), tuple(told))


def _kept(tree: _Tree, least: float) -> tuple[list[_Node], list[int]]:
    """The nodes of at least so many ns and the rests, and which of these stands for each node of the tree."""
    made: list[_Node] = []
    shown: list[int] = []
    rests: dict[int, int] = {}  # by the node above
    inside: set[int] = set()
    for node in tree.nodes:
        above = shown[node.parent] if node.parent >= 0 else -1
        if node.gpu >= least:
            shown.append(len(made))
            made.append(_Node(above, node.label, node.gpu, node.own, node.backward))
        elif above in inside:
            shown.append(above)
        else:
            if above not in rests:
                rests[above] = len(made)
                inside.add(len(made))
                made.append(_Node(above, _Label(REST, "rest")))
            shown.append(rests[above])
            rest = made[rests[above]]
            rest.gpu += node.gpu
            rest.own += node.gpu
            rest.backward += node.backward
    return made, shown


def _node(one: _Node) -> LineNode:
    label = one.label
    return LineNode(
        one.parent, label.name, label.kind, one.launches, one.gpu, one.own, one.backward, label.line
    )
