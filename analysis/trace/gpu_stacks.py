"""The GPU work of a trace as call stacks, each with its GPU time: ``gpu_stacks``.

A piece of GPU work whose address is known has the module, the line of the program and the op above it. A
kernel that torch.compile made of several lines is below each of them, with an equal part of its time and of
its launches, in whole numbers that add up. All other work has the ranges, Python frames and ops round its
launch above it, and above them the reason why it has no address, if one is known.

Only the work of the steps counts, as in ``line_table``: the stacks add up to the same time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.trace.addressed_work import equal_parts
from profrun.analysis.trace.addresses import UNRESOLVED, Address, Addresses
from profrun.analysis.trace.backward import forward_ops, is_engine
from profrun.analysis.trace.call_tree import Columns, levels, plain_name
from profrun.analysis.trace.columns import Ints, groups
from profrun.analysis.trace.frame import Frame, Index, frame
from profrun.analysis.trace.graph_replays import GRAPH_LAUNCH
from profrun.analysis.trace.python_frames import python_frame
from profrun.analysis.trace.ranges import BACKWARD, MODULE, is_backward
from profrun.analysis.trace.steps import denominator, in_steps, step_index
from profrun.contract.line_names import Line, parse_line
from profrun.traces.labels import labels
from profrun.traces.schema import SLICE_KINDS

if TYPE_CHECKING:
    from profrun.contract.denominator import Denominator
    from profrun.traces.trace import Trace

GpuKind = Literal["kernel", "memcpy", "memset"]
_HOST = ("range", "python", "op")
"""Kinds of host slices that are frames of a stack."""
_CODES = list(UNRESOLVED)


@dataclass(frozen=True)
class StackFrame:
    """One frame of a stack.

    Attributes:
        kind: ``module``, ``line`` (of the program), ``range``, ``python``, ``op``, ``kernel``, ``memcpy`` or
            ``memset``; ``reason`` where it says why what is below has no address.
        name: qualified name of the module, function of the line, the reason, or the name as recorded, without
            what differs from call to call.
        line: of a line, and of a Python frame where it is recorded; else None.
    """

    kind: str
    name: str
    line: Line | None = None


@dataclass(frozen=True)
class GpuStack:
    """All GPU work of a process with the same stack.

    Attributes:
        process: index into ``GpuStacks.processes``.
        frames: indices into ``GpuStacks.frames``, outermost first.
        kind: of the GPU work: ``kernel``, ``memcpy`` or ``memset``.
        backward: whether it is work of the backward; None where nothing tells.
        replayed: whether CUDA graphs replayed it.
        gpu_ns: its time in all steps, ns; of work that lines share its part.
        launches: how many pieces of GPU work; of those that lines share its part.
    """

    process: int
    frames: tuple[int, ...]
    kind: GpuKind
    backward: bool | None
    replayed: bool
    gpu_ns: int
    launches: int


@dataclass(frozen=True)
class StackProcess:
    """A process that launched GPU work.

    Attributes:
        rank: its rank.
        name: what it is called; no two have the same name.
        steps: how many of its steps are counted; 0 where all of its work is.
    """

    rank: int
    name: str
    steps: int


@dataclass(frozen=True)
class GpuStacks:
    """The stacks of a trace; their ``gpu_ns`` add up to ``gpu_ns``.

    Attributes:
        frames: the different frames, in the order in which the GPU first ran work below them.
        stacks: by process and frames, so that stacks which begin alike are neighbours.
        processes: by rank; those with GPU work that counts.
        of: what the times are of.
        steps: steps of all ranks that are counted; 0 where there are none: then all work is.
        gpu_ns: time of all GPU work that counts, ns; work that runs side by side counts twice.
        resolved_ns: the part of ``gpu_ns`` with an address; None where nothing tells addresses.
    """

    frames: tuple[StackFrame, ...]
    stacks: tuple[GpuStack, ...]
    processes: tuple[StackProcess, ...]
    of: Denominator
    steps: int
    gpu_ns: int
    resolved_ns: int | None


def gpu_stacks(trace: Trace, found: Addresses | None) -> GpuStacks:
    """The stacks of a trace.

    Args:
        found: the addresses of its GPU slices; None where nothing tells them.
    """
    source = frame(trace)
    work = _work(trace, found)
    processes = _processes(trace, np.unique(work.process).tolist())
    durs = source.durs(work.gpu)
    first, group = groups(*work.alike())
    order = np.argsort(first)
    time = np.bincount(group, weights=durs, minlength=len(first)).astype(np.int64)[order]
    count = np.bincount(group, minlength=len(first))[order]
    makers = _Makers(source, work, () if found is None else found.table)
    place_of = {number: place for place, number in enumerate(processes)}
    sums: dict[_Key, list[int]] = defaultdict(lambda: [0, 0])
    for at, ns, launches in zip(first[order].tolist(), time.tolist(), count.tolist(), strict=True):
        stacks = makers.stacks(at)
        shared = zip(stacks, equal_parts(ns, len(stacks)), equal_parts(launches, len(stacks)), strict=True)
        for frames, own_ns, own_launches in shared:
            row = sums[(place_of[int(work.process[at])], frames, *work.labels(at))]
            row[0] += own_ns
            row[1] += own_launches
    return GpuStacks(
        frames=tuple(makers.numbers),
        stacks=tuple(_stack(key, *sums[key]) for key in sorted(sums)),
        processes=tuple(processes.values()),
        of=denominator(trace),
        steps=len(step_index(source).slices),
        gpu_ns=int(durs.sum()),
        resolved_ns=None if found is None else int(durs[work.address >= 0].sum()),
    )


_Key: TypeAlias = "tuple[int, tuple[int, ...], int, int, int]"
"""What a stack is told by: its process and frames, then the labels of ``_Work``."""


def _stack(key: _Key, gpu_ns: int, launches: int) -> GpuStack:
    process, frames, kind, backward, replayed = key
    name: GpuKind = SLICE_KINDS[kind]  # type: ignore[assignment]
    known = None if backward < 0 else bool(backward)
    return GpuStack(process, frames, name, known, bool(replayed), gpu_ns, launches)


@dataclass(frozen=True)
class _Work:
    """The GPU slices that count, by start, and what their stacks are made of; columns of shape (n,).

    Attributes:
        gpu: slice ids.
        name: name ids.
        kind: codes of their kinds.
        process: ids of the processes that launched them.
        address: index into the table of addresses, -1 for none.
        why: index into ``UNRESOLVED``, -1 where there is an address and where nothing tells.
        op: of work with an address the name id of the innermost op round its launch, -1 for none.
        node: of other work the node of the innermost frame round its launch, -1 for none.
        backward: 1 for work of the backward, 0 for other work, -1 where nothing tells.
        replayed: 1 for what a CUDA graph replayed, else 0.
        nodes: the frames of the host, parents before children; None where no work has such a frame.
    """

    gpu: Index
    name: Index
    kind: NDArray[np.uint8]
    process: Index
    address: Ints
    why: Index
    op: Index
    node: Ints
    backward: Index
    replayed: Index
    nodes: Columns | None

    def alike(self) -> tuple[Index | NDArray[np.uint8], ...]:
        """The columns in which the slices of one stack are equal."""
        stack = (self.process, self.address, self.why, self.op, self.node, self.name)
        return (*stack, self.kind, self.backward, self.replayed)

    def labels(self, at: int) -> tuple[int, int, int]:
        """Kind, backward and replayed of one slice."""
        return int(self.kind[at]), int(self.backward[at]), int(self.replayed[at])


def _work(trace: Trace, found: Addresses | None) -> _Work:
    """The columns of all GPU work that counts."""
    source = frame(trace)
    place = np.flatnonzero(in_steps(source, source.gpu))
    place = place[np.argsort(source.ts[source.gpu[place]], kind="stable")]
    gpu = source.gpu[place]
    calls = source.launch[gpu]
    known = calls >= 0
    if found is None:
        address = np.full(len(gpu), -1, dtype=np.int64)
        why: Index = np.where(known, -1, _CODES.index("no-launch"))
        table: tuple[Address, ...] = ()
    else:
        address, why, table = found.of[place], found.why[place], found.table
    told = address >= 0
    replayed = known & source.named(calls, lambda text: GRAPH_LAUNCH.match(text) is not None)
    replayed |= np.array([*(one.replayed for one in table), False])[address]
    backward = np.array([*(one.backward for one in table), False]).astype(np.int8)
    op = np.where(told & ~replayed, source.launching_op(gpu), -1)
    node, nodes = _host_nodes(source, np.where(told, -1, calls))
    return _Work(
        gpu=gpu,
        name=source.name[gpu],
        kind=source.kind[gpu],
        process=np.where(known, source.process_of(calls), source.process_of(gpu)),
        address=address,
        why=why,
        op=np.where(op >= 0, source.name[op], -1),
        node=node,
        backward=np.where(told, backward[address], _backward(trace, calls)),
        replayed=replayed.astype(np.int8),
        nodes=nodes,
    )


def _backward(trace: Trace, calls: Index) -> NDArray[np.int8]:
    """1 for launches of the backward, as autograd's slices and the hook's ranges tell it; -1 for others."""
    source = frame(trace)
    marks = source.named(np.arange(len(source)), lambda text: is_engine(text) or is_backward(text))
    inside = marks | (source.chase(marks) >= 0) | (forward_ops(trace) >= 0)
    return np.where((calls >= 0) & inside[calls], 1, -1).astype(np.int8)


def _host_nodes(source: Frame, calls: Index) -> tuple[Ints, Columns | None]:
    """The frames round launches, folded: frames of one name below one another are one node.

    Args:
        calls: host slices, shape (n,); -1 for launches whose frames are not wanted.

    Returns:
        The innermost node round each launch, shape (n,), -1 for none; and the nodes, with labels that are
        indices into ``source.names``.
    """
    wanted = source.kinds(*_HOST)[source.kind] & ~np.append(source.on_gpu, False)[source.track]
    above = source.chase(wanted)
    inner = np.where(calls < 0, -1, np.where(wanted[calls], calls, above[calls]))
    needed = np.zeros(len(source), dtype=bool)
    level = np.unique(inner[inner >= 0])
    while len(level):
        needed[level] = True
        level = np.unique(above[level])
        level = level[(level >= 0) & ~needed[level]]
    ids = np.flatnonzero(needed)
    if not len(ids):
        return np.full(len(calls), -1, dtype=np.int64), None
    first: dict[str, int] = {}
    same = [first.setdefault(_plain(text), number) for number, text in enumerate(source.names)]
    node_of, nodes = levels(source, ids, above, np.array(same, dtype=np.int64))
    return np.where(inner >= 0, node_of[inner], -1), nodes


def _plain(text: str) -> str:
    """The name without what differs from call to call; names of modules and of lines stay."""
    kept = parse_line(text) or python_frame(text) or _module(text)
    return text if kept else plain_name(text)


def _module(text: str) -> str | None:
    """The qualified name of the module of a range, with the words for its backward; None for others."""
    hit = MODULE.match(text.removesuffix(BACKWARD))
    return hit["path"] + text[hit.end() :] if hit else None


class _Makers:
    """Makes the stacks of GPU slices, and numbers their frames.

    Attributes:
        numbers: frame -> its number, in the order of the numbers.
    """

    def __init__(self, source: Frame, work: _Work, table: tuple[Address, ...]) -> None:
        self.numbers: dict[StackFrame, int] = {}
        self._source, self._work, self._table = source, work, table
        self._paths: dict[int, tuple[int, ...]] = {-1: ()}

    def stacks(self, at: int) -> list[tuple[int, ...]]:
        """The stacks of a slice by its place: one, or one for each of its lines."""
        work, names = self._work, self._source.names
        kernel = StackFrame(SLICE_KINDS[work.kind[at]], names[work.name[at]])
        if work.address[at] < 0:
            why = int(work.why[at])
            reason = [StackFrame("reason", UNRESOLVED[_CODES[why]])] if why >= 0 else []
            return [(*self._numbered(reason), *self._path(int(work.node[at])), *self._numbered([kernel]))]
        address, op = self._table[work.address[at]], int(work.op[at])
        parts = address.module.split(".") if address.module else []
        modules = [StackFrame("module", ".".join(parts[: end + 1])) for end in range(len(parts))]
        ops = [StackFrame("op", plain_name(names[op]))] if op >= 0 else []
        lines = (StackFrame("line", line.function, line) for line in address.lines)
        return [self._numbered([*modules, line, *ops, kernel]) for line in lines]

    def _numbered(self, frames: list[StackFrame]) -> tuple[int, ...]:
        return tuple(self.numbers.setdefault(one, len(self.numbers)) for one in frames)

    def _path(self, node: int) -> tuple[int, ...]:
        """The frames of a node of the host, outermost first."""
        waiting = []
        nodes = self._work.nodes
        while node not in self._paths:
            waiting.append(node)
            node = int(nodes.parent[node]) if nodes is not None else -1
        path = self._paths[node]
        for one in reversed(waiting):
            path = self._paths[one] = (*path, *self._numbered([self._frame(one)]))
        return path

    def _frame(self, node: int) -> StackFrame:
        assert self._work.nodes is not None
        text = self._source.names[self._work.nodes.name[node]]
        kind = SLICE_KINDS[self._work.nodes.kind[node]]
        if line := parse_line(text):
            return StackFrame("line", line.function, line)
        if module := _module(text):
            return StackFrame("module", module)
        return StackFrame(kind, _plain(text), python_frame(text) if kind == "python" else None)


def _processes(trace: Trace, numbers: list[int]) -> dict[int, StackProcess]:
    """Process id -> what it is called, by rank; a pid tells processes of one rank apart."""
    source, named = frame(trace), labels(trace)
    steps = Counter(step_index(source).process.tolist())
    rows = [source.processes[number] for number in source.by_rank if number in numbers]
    names = {row["process"]: named.rank_on_host(row["rank"]) for row in rows}
    for more in (" (pid {pid})", " (process {process})"):
        count = Counter(names.values())
        for row in rows:
            if count[names[row["process"]]] > 1:
                names[row["process"]] += more.format(**row)
    return {
        row["process"]: StackProcess(row["rank"], names[row["process"]], steps[row["process"]])
        for row in rows
    }
