"""The tree of nn.Modules: the GPU work and the host time of each, forward and backward.

``module_tree`` is given a trace and returns a ``ModuleTree``. Modules are those round which profrun's hook
put ranges, or else those of torch's own Python stacks; a module is below the module that called it. GPU
work belongs to the innermost module that launched it. Work of an autograd node belongs to the module whose
forward made the node, as torch's sequence numbers tell; where there are none (Nsight Systems), the ranges of
the hook round the backward of modules tell it. Modules that a backward calls again (activation
checkpointing) count as backward.

Repeated blocks are one row: modules of one class below one parent whose names differ in a number only.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.trace.backward import autograd_nodes, is_engine
from profrun.analysis.trace.frame import Frame, Index, frame
from profrun.analysis.trace.ranges import BACKWARD, MODULE, TORCH_MODULE
from profrun.analysis.trace.steps import step_index, step_of_host
from profrun.contract.module_names import ROOT
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")
_INSTANCE = re.compile(r"_\d+$")


@dataclass(frozen=True)
class ModuleNode:
    """A module, or the alike modules of a repeated block, with everything inside. All times are ns in total.

    Attributes:
        name: name below its parent: ``attn``, ``h.*`` for a repeated block, ``root`` for the outermost.
        path: qualified name in the model, with ``*`` for the number of a repeated block.
        module_class: class of the module.
        modules: how many modules the row stands for.
        calls: calls of their forward.
        forward_ns, backward_ns: GPU work of both directions.
        host_forward_ns, host_backward_ns: host time inside the forward, and in the autograd nodes that it
            made.
        own_ns, own_host_ns: the part of both directions that is in no module of ``children``.
        children: modules that these called, in the order of their first call.
    """

    name: str
    path: str
    module_class: str
    modules: int
    calls: int
    forward_ns: int
    backward_ns: int
    host_forward_ns: int
    host_backward_ns: int
    own_ns: int
    own_host_ns: int
    children: tuple[ModuleNode, ...] = ()

    @property
    def gpu_ns(self) -> int:
        """GPU work of both directions."""
        return self.forward_ns + self.backward_ns

    @property
    def host_ns(self) -> int:
        """Host time of both directions."""
        return self.host_forward_ns + self.host_backward_ns


@dataclass(frozen=True)
class OutsideRow:
    """GPU work that no module of the tree launched.

    Attributes:
        name: the outermost range of the program round the launch, such as ``Optimizer.step#AdamW.step``;
            ``backward`` for autograd nodes whose forward was in no module; empty for all other work.
        gpu_ns: GPU work, ns in total.
    """

    name: str
    gpu_ns: int


@dataclass(frozen=True)
class ModuleTree:
    """Modules of all ranks; the GPU work of ``roots`` and of ``outside`` adds up to ``gpu_ns``.

    Attributes:
        steps: steps of all ranks in which the work is counted; 0 where there are none: then all work is.
        gpu_ns: all GPU work that these steps launched, ns; work that runs side by side counts twice.
        host_ns: host time of these steps, ns; without steps that of the outermost modules.
        roots: the outermost modules.
        outside: work of no module, most first.
    """

    steps: int
    gpu_ns: int
    host_ns: int
    roots: tuple[ModuleNode, ...]
    outside: tuple[OutsideRow, ...]


@dataclass
class _Place:
    """A module as it is collected: own times by direction, forward first."""

    label: tuple[str, str]  # (qualified name, class)
    parent: int
    first_ns: int
    track: int
    calls: int = 0
    gpu: list[int] = field(default_factory=lambda: [0, 0])
    host: list[int] = field(default_factory=lambda: [0, 0])


_Label = tuple[str, str, bool]
"""(qualified name, class, is it the backward?)"""


def _labels(source: Frame) -> dict[int, _Label]:
    """Name id -> module, for the ranges of the hook; else for the calls in torch's Python stacks."""
    hook: dict[int, _Label] = {}
    stacks: dict[int, _Label] = {}
    for number, text in enumerate(source.names):
        backward = text.endswith(BACKWARD)
        hit = MODULE.match(text.removesuffix(BACKWARD))
        if hit:
            hook[number] = (hit["path"], hit["cls"], backward)
        elif other := TORCH_MODULE.match(text):
            stacks[number] = (text.removeprefix("nn.Module: "), other["cls"], False)
    return hook or stacks


@memoised
def module_tree(trace: Trace) -> ModuleTree | None:
    """The modules of a trace; None where none is recorded."""
    source = frame(trace)
    labels = _labels(source)
    marks = _marks(source, labels)
    if not len(marks):
        return None
    index = step_index(source)
    nodes = autograd_nodes(trace)
    autograd = np.flatnonzero(nodes >= 0)
    both = np.union1d(marks, autograd)
    if len(index.slices):
        both = both[step_of_host(source, index, both) >= 0]
    wanted = np.zeros(len(source), dtype=bool)
    wanted[marks], wanted[autograd] = True, True
    above = source.chase(wanted)
    places = _Places(source, labels, nodes, above)
    places.add_all(both[np.lexsort((both, -source.end[both], source.ts[both]))].tolist())
    gpu = source.launched if not len(index.slices) else source.gpu[index.of_gpu[source.gpu] >= 0]
    outside = places.add_gpu(gpu, wanted)
    _add_host(source, places, both, above)
    roots = _nodes(places, {-1}, "")
    steps = source.durs(index.slices)
    host = int(steps.sum()) if len(steps) else sum(root.host_ns for root in roots)
    return ModuleTree(len(steps), int(source.durs(gpu).sum()), host, roots, outside)


def _marks(source: Frame, labels: dict[int, _Label]) -> Index:
    """Host slices that are calls of modules."""
    ids = source.of("range", "python")
    ids = ids[~source.on_gpu[source.track[ids]]]
    return np.asarray(ids[source.has_name(ids, list(labels))] if labels else ids[:0])


class _Places:
    """The modules that were found, and which slices are calls of them.

    Attributes:
        found: the modules, parents before children.
        of: slice id -> (place in ``found``, -1 for none; direction: 0 forward, 1 backward).
    """

    def __init__(self, source: Frame, labels: dict[int, _Label], nodes: Index, above: Index) -> None:
        self.found: list[_Place] = []
        self.of: dict[int, tuple[int, int]] = {}
        self._source, self._labels = source, labels
        self._forward_op, self._above = nodes, above
        self._by_key: dict[tuple[int, tuple[str, str]], int] = {}
        self._by_label: dict[tuple[str, str], int] = {}
        self._engine = source.chase(source.named(np.arange(len(source)), is_engine))

    def add_all(self, ids: list[int]) -> None:
        """Take the calls of modules and the autograd nodes, sorted by start, outer ones first.

        A call without a module round it, of a module that others call elsewhere, waits until all are known:
        the recording began inside the outer module, or a backward makes the call.
        """
        inside = {self._label(one) for one in ids if self._above[one] >= 0}
        waiting = []
        for slice_id in ids:
            label, backward = self._label(slice_id)
            parent = int(self._above[slice_id])
            outermost = parent < 0 and (label, False) not in inside
            if label is None or backward or not (outermost or parent in self.of):
                waiting.append(slice_id)
            else:
                self._call(slice_id, label, self.of[parent][0] if parent >= 0 else -1)
        for slice_id in waiting:
            self._settle(slice_id)

    def _label(self, slice_id: int) -> tuple[tuple[str, str] | None, bool]:
        """((qualified name, class) or None for an autograd node, is it the backward?)."""
        found = self._labels.get(int(self._source.name[slice_id]))
        return (None, True) if found is None else (found[:2], found[2])

    def _call(self, slice_id: int, label: tuple[str, str], parent: int) -> None:
        at = self._by_key.get((parent, label))
        if at is None:
            at = self._by_key[(parent, label)] = len(self.found)
            start, track = int(self._source.ts[slice_id]), int(self._source.track[slice_id])
            self.found.append(_Place(label, parent, start, track))
            self._by_label.setdefault(label, at)
        self.found[at].calls += 1
        self.of[slice_id] = (at, 0)

    def _settle(self, slice_id: int) -> None:
        """Find the module of an autograd node, of a range of the backward, or of a call that waited."""
        label, backward = self._label(slice_id)
        parent = int(self._above[slice_id])
        place, way = self.of.get(parent, (-1, 0))
        if label is None:
            forward = int(self._above[self._forward_op[slice_id]])
            self.of[slice_id] = (self.of.get(forward, (-1, 0))[0] if forward >= 0 else -1, 1)
            return
        at = self._by_key.get((place, label), self._by_label.get(label, -1))
        if backward:
            self.of[slice_id] = (at, 1)
        elif at < 0:
            self._call(slice_id, label, place)
        elif way == 1 or self._engine[slice_id] >= 0 or self._other_thread(slice_id, parent, at):
            self.of[slice_id] = (at, 1)  # called again by a backward
        else:
            self.found[at].calls += 1
            self.of[slice_id] = (at, 0)

    def _other_thread(self, slice_id: int, parent: int, at: int) -> bool:
        return parent < 0 and self.found[at].track != int(self._source.track[slice_id])

    def add_gpu(self, gpu: Index, wanted: Index) -> tuple[OutsideRow, ...]:
        """Add GPU work to the modules; returns what belongs to none."""
        source = self._source
        calls = source.launch[gpu]
        mark = np.where(wanted[calls], calls, self._above[calls])
        marks, place = np.unique(mark, return_inverse=True)
        time = np.bincount(place, weights=source.durs(gpu), minlength=len(marks)).astype(np.int64)
        outside: dict[str, int] = defaultdict(int)
        for slice_id, ns in zip(marks.tolist(), time.tolist(), strict=True):
            at, direction = self.of.get(slice_id, (-1, 0))
            if at >= 0:
                self.found[at].gpu[direction] += ns
            elif slice_id >= 0:
                outside["backward"] += ns
        stray = np.flatnonzero(mark < 0)
        top = _outermost_range(source)[calls[stray]]
        names, place = np.unique(np.where(top >= 0, source.name[top], -1), return_inverse=True)
        sums = np.bincount(place, weights=source.durs(gpu[stray]), minlength=len(names)).astype(np.int64)
        for number, ns in zip(names.tolist(), sums.tolist(), strict=True):
            outside[source.names[number] if number >= 0 else ""] += ns
        rows = [OutsideRow(name, ns) for name, ns in outside.items() if ns]
        return tuple(sorted(rows, key=lambda row: (-row.gpu_ns, row.name)))


def _outermost_range(source: Frame) -> Index:
    """For every slice the outermost range round it on its track that is no step, -1 for none."""
    outermost = source.kinds("range")[source.kind] & (source.nearest("range") < 0)
    return source.chase(outermost)


def _add_host(source: Frame, places: _Places, both: Index, above: Index) -> None:
    """Add to each module the host time of its calls and nodes that is in no other call or node."""
    own = np.zeros(len(source), dtype=np.int64)
    own[both] = source.durs(both)
    inside = both[above[both] >= 0]
    np.subtract.at(own, above[inside], source.durs(inside))
    for slice_id, (at, direction) in places.of.items():
        if at >= 0:
            places.found[at].host[direction] += max(0, int(own[slice_id]))


def _nodes(places: _Places, parents: set[int], path: str) -> tuple[ModuleNode, ...]:
    """The rows below a row of the tree; those of repeated blocks are one.

    Args:
        places: the modules.
        parents: the modules of that row; -1 for the rows at the top.
        path: the qualified name of that row, empty at the top.
    """
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for at, one in enumerate(places.found):
        if one.parent in parents:
            name, cls = one.label
            groups[(_pattern(name, cls), cls)].append(at)
    rows = []
    for (pattern, _), group in groups.items():
        names = {places.found[at].label[0] for at in group}
        whole = pattern if len(names) > 1 else places.found[group[0]].label[0]
        below = _nodes(places, set(group), whole)
        rows.append((min(places.found[at].first_ns for at in group), _row(places, group, whole, path, below)))
    return tuple(row for _, row in sorted(rows, key=lambda pair: pair[0]))


def _pattern(name: str, cls: str) -> str:
    """The name with ``*`` for the number in a list: ``h.0`` is ``h.*``, ``Linear_3`` is ``Linear_*``."""
    if _INSTANCE.sub("", name) == cls:
        return f"{cls}_*"
    return NUMBER.sub("*", name)


def _row(
    places: _Places, group: list[int], whole: str, path: str, below: tuple[ModuleNode, ...]
) -> ModuleNode:
    """The row of a group of modules with the rows below it."""
    mine = [places.found[at] for at in group]
    gpu = [sum(one.gpu[way] for one in mine) for way in (0, 1)]
    host = [sum(one.host[way] for one in mine) for way in (0, 1)]
    return ModuleNode(
        name=_below(whole, path),
        path=whole,
        module_class=mine[0].label[1],
        modules=len({one.label[0] for one in mine}),
        calls=sum(one.calls for one in mine),
        forward_ns=gpu[0] + sum(one.forward_ns for one in below),
        backward_ns=gpu[1] + sum(one.backward_ns for one in below),
        host_forward_ns=host[0] + sum(one.host_forward_ns for one in below),
        host_backward_ns=host[1] + sum(one.host_backward_ns for one in below),
        own_ns=sum(gpu),
        own_host_ns=sum(host),
        children=below,
    )


def _below(whole: str, path: str) -> str:
    """The name of a module without the name of its parent."""
    start = f"{path}."
    return whole[len(start) :] if path and path != ROOT and whole.startswith(start) else whole
