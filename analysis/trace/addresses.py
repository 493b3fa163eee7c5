"""From which line of the program each GPU slice of a trace comes: ``addresses``.

A mapping is a trace with ranges round the lines of the program (``contract.line_names``). Other traces may
have the Python stacks of launches. The address of a kernel is found in this order:

1. ``line``: the innermost of the ranges of lines and of autograd's nodes round its launch is a line.
2. ``autograd``: it is a node. The address is that of the forward op that made the node, as torch's sequence
   numbers tell.
3. ``compiled``: the line is one of code that torch.compile has generated, and the compiler tells the lines
   behind the kernel that is called there. A fused kernel has several.
4. ``stack``: there is no such range, and the Python stack of the launch is recorded. The address is the
   innermost line in it that is of the program's own code. Where that is generated code, 3. applies.
5. ``backward``: a thread of autograd launched it outside of any such node (gradients that are reduced, copied
   or added up). The address is the line in which the main thread waits, the call of ``backward``. A node
   whose forward ran before the recording has no address.

Everything else has no address, with the reason. None is guessed. The Python functions that torch.profiler
records (``with_stack``) tell no address: they have the line of the function's definition, and not the one
that launched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.trace.backward import autograd_nodes, early_nodes, is_engine
from profrun.analysis.trace.call_stacks import CallStacks, call_stacks
from profrun.analysis.trace.frame import Frame, Index, frame
from profrun.analysis.trace.generated_kernels import GeneratedKernels, below, generated_kernels
from profrun.analysis.trace.graph_replays import GRAPH_LAUNCH, captured_calls
from profrun.analysis.trace.ranges import MODULE, range_at
from profrun.analysis.trace.waiting_calls import waiting_lines
from profrun.contract.code_paths import is_generated
from profrun.contract.line_names import Line, parse_line
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

Via = Literal["line", "autograd", "compiled", "stack", "backward"]
Unresolved = Literal[
    "no-launch", "graph", "generated", "no-line", "no-stack", "no-forward", "other-work", "ambiguous"
]
UNRESOLVED: dict[Unresolved, str] = {
    "no-launch": "the call that launched them is not recorded",
    "graph": "they were replayed by a CUDA graph",
    "generated": "torch.compile does not tell what its kernel stands for",
    "no-line": "no line of the program is round their launch, or in its stack",
    "no-stack": "their launch was recorded without a Python stack",
    "no-forward": "the forward of their backward ran before the recording",
    "other-work": "the mapping launched no such kernels in this order",
    "ambiguous": "steps of the mapping launched the same kernels from different lines",
}
"""Why GPU work has no address, in words."""


@dataclass(frozen=True)
class Address:
    """Where a kernel comes from.

    Attributes:
        lines: of the program; several for a kernel that the compiler made of several, each once.
        module: qualified name of the innermost nn.Module round it, or round all that the compiler made it of;
            None for none.
        backward: whether it is work of the backward.
        via: how it was found.
        kernel: what the compiler calls a generated kernel, ``triton_poi_fused_gelu_1:4``; else None.
        replayed: whether a CUDA graph replayed it; the rest is then that of its capture.
    """

    lines: tuple[Line, ...]
    module: str | None
    backward: bool
    via: Via
    kernel: str | None = None
    replayed: bool = False


@dataclass(frozen=True)
class Addresses:
    """The addresses of the GPU slices of a trace.

    Attributes:
        gpu: ids of the GPU slices, shape (n,).
        of: index into ``table`` by GPU slice, int64, shape (n,); -1 for none.
        table: the different addresses.
        why: index into ``UNRESOLVED`` by GPU slice, int8, shape (n,); -1 where there is an address.
        digests: file of the program -> digest of each line, from line 1 (``contract.source_digests``).
        waits: slice id of a call that waits for the GPU -> the line that makes it, where that is known.
    """

    gpu: Index
    of: NDArray[np.int64]
    table: tuple[Address, ...]
    why: NDArray[np.int8]
    digests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    waits: Mapping[int, Line] = field(default_factory=dict)

    def unresolved(self, source: Frame) -> dict[Unresolved, int]:
        """ns of GPU work without an address, by reason; those with any."""
        durs = source.durs(self.gpu)
        found = {code: int(durs[self.why == number].sum()) for number, code in enumerate(UNRESOLVED)}
        return {code: ns for code, ns in found.items() if ns}


@memoised
def addresses(trace: Trace) -> Addresses | None:
    """The addresses that a trace itself tells; None for one without ranges of lines and without stacks."""
    source = frame(trace)
    lines = {number: line for number, text in enumerate(source.names) if (line := parse_line(text))}
    stacks = call_stacks(trace)
    if not lines and stacks is None:
        return None
    gpu = source.gpu
    captured = captured_calls(source)
    calls = np.where(captured >= 0, captured, source.launch[gpu])
    generated = generated_kernels(trace)
    finder = _Finder(source, lines, autograd_nodes(trace), early_nodes(trace), generated, stacks)
    anchors = np.concatenate([finder.anchors(calls), (captured >= 0)[np.newaxis]])
    keys, place = np.unique(anchors, axis=1, return_inverse=True)
    rows: list[Address | Unresolved] = [finder.address(*(int(one) for one in key)) for key in keys.T]
    table = tuple(dict.fromkeys(row for row in rows if isinstance(row, Address)))
    number = {row: at for at, row in enumerate(table)}
    codes = list(UNRESOLVED)
    of = np.array([number[row] if isinstance(row, Address) else -1 for row in rows], dtype=np.int64)
    why = np.array([-1 if isinstance(row, Address) else codes.index(row) for row in rows], dtype=np.int8)
    place = np.ravel(place)
    return Addresses(gpu, of[place], table, why[place], _digests(trace), waiting_lines(trace))


_NO_LAUNCH, _GRAPH_REPLAY, _AT_LINE, _AT_NODE, _AT_STACK, _AT_BACKWARD, _AT_EARLY, _NOWHERE = range(8)
COPIES_OF_INPUTS = "aten::_foreach_copy_"
"""The op by which generated code copies its inputs to the buffers of a CUDA graph. It stands for no operation
of the program, so its address is the line that runs the generated code."""
_EARLY = -2
"""In the place of the line that runs generated code: it ran before the recording."""


class _Finder:
    """Finds addresses by anchors: which slice tells the address of a launch, and how.

    Args:
        lines: name id -> line.
        nodes: for every slice that is an autograd node its forward op, -1 for others.
        early: which slices are round a node whose forward ran before the recording.
        generated: (file, line of generated code) -> what stands behind it.
        stacks: of calls; None where none is recorded.
    """

    def __init__(
        self,
        source: Frame,
        lines: dict[int, Line],
        nodes: NDArray[np.int32],
        early: NDArray[np.bool_],
        generated: GeneratedKernels,
        stacks: CallStacks | None,
    ) -> None:
        self._source, self._lines, self._nodes, self._generated = source, lines, nodes, generated
        self._stacks = stacks
        ids = np.arange(len(source))
        self._is_line = source.has_name(ids, list(lines)) & source.kinds("range")[source.kind]
        self._is_line &= ~np.append(source.on_gpu, False)[source.track]
        self._line_of = source.chase(self._is_line)
        program = [
            number
            for number, line in lines.items()
            if (line.file, line.line) not in generated and not is_generated(line.file)
        ]
        self._is_program = self._is_line & source.has_name(ids, program)
        named = [number for number, line in lines.items() if (line.file, line.line) in generated]
        self._is_unnamed = self._is_line & ~self._is_program & ~source.has_name(ids, named)
        self._copies = source.named(ids, lambda text: text == COPIES_OF_INPUTS)
        self._module_of = source.chase(source.named(ids, lambda text: MODULE.match(text) is not None))
        self._early_of = source.chase(early)
        engine = source.named(ids, is_engine)
        self._engine_of = source.chase(engine)
        self._engine_tracks = np.unique(source.track[engine])

    def anchors(self, calls: Index) -> NDArray[np.int64]:
        """How the address of each launch is told, and by which names.

        Returns:
            int64, shape (5, n): the way, the name id of the line or the number of the stack, the name id of
            the module, whether it is work of the backward, and the name id of the line of the program itself
            that runs generated code; -1 where there is none, and _EARLY where it ran before the recording.
        """
        source = self._source
        known = calls >= 0
        at = np.where(known, calls, 0)
        line, anchor, node = self._round(at, self._is_line)
        runs, runs_anchor, runs_node = self._round(at, self._is_program)
        above = source.parent[at]
        copies = known & (line >= 0) & self._is_unnamed[line] & (above >= 0) & self._copies[above]
        line, anchor = np.where(copies, runs, line), np.where(copies, runs_anchor, anchor)
        node = np.where(copies, runs_node, node)
        engine = (self._engine_of[at] >= 0) | np.isin(source.track[at], self._engine_tracks)
        engine &= known
        early = known & (runs < 0) & (self._early_of[at] >= 0)
        waits = np.where((runs < 0) & engine & ~early, self._waiting_line(calls), -1)
        graph = source.named(at, lambda text: GRAPH_LAUNCH.match(text) is not None)
        stack = np.full(len(at), -1) if self._stacks is None else self._stacks.at(source, at)
        way = np.select(
            [~known, graph, (line >= 0) & node, line >= 0, stack >= 0, early, waits >= 0],
            [_NO_LAUNCH, _GRAPH_REPLAY, _AT_NODE, _AT_LINE, _AT_STACK, _AT_EARLY, _AT_BACKWARD],
            _NOWHERE,
        )
        line = np.where(line >= 0, line, waits)
        anchor = np.where(anchor >= 0, anchor, np.where(way == _AT_STACK, at, line))
        module = np.where(anchor >= 0, self._module_of[anchor], -1)
        names = np.append(source.name, np.int32(-1))
        place = np.where(way == _AT_STACK, stack, names[line])
        program = np.where(early, _EARLY, names[np.where(runs >= 0, runs, waits)])
        late = node | engine | (waits >= 0)
        return np.stack([way, place, names[module], late, program]).astype(np.int64)

    def _round(
        self, at: Index, is_line: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """The line round each call, of its forward where a node of autograd makes it.

        Args:
            is_line: which slices are lines that count.

        Returns:
            Slice id of the line, -1 for none; of what its module is round, the call or the forward op; and
            whether it is a node.
        """
        source = self._source
        nearest = source.chase(is_line | (self._nodes >= 0))[at]
        node = (nearest >= 0) & (self._nodes[nearest] >= 0) & ~is_line[nearest]
        forward = np.where(node, self._nodes[nearest], -1)
        line = np.where(node, source.chase(is_line)[forward], nearest)
        anchor = np.where(node, forward, np.where(nearest >= 0, at, -1))
        return line.astype(np.int64), anchor.astype(np.int64), node

    def _waiting_line(self, calls: Index) -> Index:
        """The line in which the main thread was when each call was made, -1 for none."""
        source = self._source
        found = np.full(len(calls), -1, dtype=np.int64)
        known = np.flatnonzero(calls >= 0)
        process = source.process_of(calls[known])
        for number in np.unique(process):
            mine = known[process == number]
            ranges = range_at(source, int(number), source.ts[calls[mine]])
            line = np.where(self._is_line[ranges], ranges, self._line_of[ranges])
            found[mine] = np.where(ranges >= 0, line, -1)
        return found

    def address(
        self, way: int, place: int, mark: int, backward: int, runs: int, replayed: int
    ) -> Address | Unresolved:
        """The address of launches with these anchors, or why they have none.

        Args:
            place: name id of the line, or index of the stack.
            mark: name id of the range round the module, -1 for none.
            runs: name id of the line of the program that runs generated code, -1 for none, or _EARLY.
        """
        if way == _NO_LAUNCH:
            return "no-launch"
        if way == _GRAPH_REPLAY:
            return "graph"
        if way == _AT_EARLY:
            return "no-forward"
        if way == _NOWHERE:
            return "no-line" if self._lines else "no-stack"
        stack = self._stacks.table[place] if way == _AT_STACK and self._stacks is not None else None
        found = self._lines[place] if stack is None else stack.line
        if found is None:
            return "no-line"
        name = MODULE.match(self._source.names[mark]) if mark >= 0 else None
        path = name["path"] if name else None
        late = bool(backward) if stack is None else bool(backward) or stack.backward
        behind = self._generated.get((found.file, found.line))
        if behind is not None and (lines := behind.lines_in(self._lines.get(runs))):
            module = below(path, behind.module)
            return Address(lines, module, late, "compiled", behind.kernel, bool(replayed))
        if (found.file, found.line) in self._generated or is_generated(found.file):
            return "no-forward" if behind is not None and runs == _EARLY else "generated"
        return Address((found,), path, late, _VIA[way], replayed=bool(replayed))


_VIA: dict[int, Via] = {_AT_NODE: "autograd", _AT_LINE: "line", _AT_STACK: "stack", _AT_BACKWARD: "backward"}


def _digests(trace: Trace) -> dict[str, tuple[str, ...]]:
    """File -> digest of each line, from line 1; "" of a blank one."""
    found: dict[str, list[str]] = {}
    for file, line, digest in trace.sql(
        "SELECT file, line, digest FROM source_lines ORDER BY file, line"
    ).rows:
        known = found.setdefault(file, [])
        known.extend([""] * (line - 1 - len(known)))
        known.append(digest)
    return {file: tuple(lines) for file, lines in found.items()}
