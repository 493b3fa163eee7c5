"""From which line of the program each GPU slice of a mapping comes: ``addresses``.

A mapping is a trace with ranges round the lines of the program (``contract.line_names``). The address of a
kernel is found in this order:

1. ``line``: the innermost of the ranges of lines and of autograd's nodes round its launch is a line.
2. ``autograd``: it is a node. The address is that of the forward op that made the node, as torch's sequence
   numbers tell.
3. ``compiled``: the line is one of code that torch.compile has generated, and the compiler tells the lines
   behind the kernel that is called there. A fused kernel has several.
4. ``backward``: a thread of autograd launched it outside of any such node (gradients that are reduced, copied
   or added up). The address is the line in which the main thread waits, the call of ``backward``.

Everything else has no address, with the reason. None is guessed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.trace.backward import autograd_nodes, is_engine
from profrun.analysis.trace.frame import Frame, Index, frame
from profrun.analysis.trace.graph_replays import GRAPH_LAUNCH, captured_calls
from profrun.analysis.trace.ranges import MODULE, range_at
from profrun.analysis.trace.waiting_calls import waiting_lines
from profrun.contract.line_names import Line, parse_line
from profrun.contract.module_names import ROOT
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

Via = Literal["line", "autograd", "compiled", "backward"]
Unresolved = Literal["no-launch", "graph", "generated", "no-line", "other-work", "ambiguous"]
UNRESOLVED: dict[Unresolved, str] = {
    "no-launch": "the call that launched them is not recorded",
    "graph": "they were replayed by a CUDA graph",
    "generated": "torch.compile does not tell what its kernel stands for",
    "no-line": "no line of the program is round their launch",
    "other-work": "the mapping launched no such kernels in this order",
    "ambiguous": "steps of the mapping launched the same kernels from different lines",
}
"""Why GPU work has no address, in words."""
_UNTOLD = re.compile("torchinductor_")
"""In the path of generated code, where nobody has moved it."""
_INSTALLED = re.compile(r"(?:^|/)(?:site-packages|dist-packages|lib/python3\.\d+)/")


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
    """The addresses of the GPU slices of a trace: of a mapping, or of a trial beside it.

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
    """The addresses of a mapping; None for a trace without ranges of lines."""
    source = frame(trace)
    lines = {number: line for number, text in enumerate(source.names) if (line := parse_line(text))}
    if not lines:
        return None
    gpu = source.gpu
    captured = captured_calls(source)
    calls = np.where(captured >= 0, captured, source.launch[gpu])
    generated = _generated(trace)
    files = {file for file, _ in generated}
    # What other lines of generated code launch comes from where the code is called: copies of its inputs.
    lines = {
        number: line
        for number, line in lines.items()
        if line.file not in files or (line.file, line.line) in generated
    }
    finder = _Finder(source, lines, autograd_nodes(trace), generated)
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


_NO_LAUNCH, _GRAPH_REPLAY, _AT_LINE, _AT_NODE, _AT_BACKWARD, _NOWHERE = range(6)


class _Finder:
    """Finds addresses by anchors: which slice tells the address of a launch, and how.

    Args:
        lines: name id -> line.
        nodes: for every slice that is an autograd node its forward op, -1 for others.
        generated: (file, line of generated code) -> what stands behind it.
    """

    def __init__(
        self,
        source: Frame,
        lines: dict[int, Line],
        nodes: NDArray[np.int32],
        generated: _Calls,
    ) -> None:
        self._source, self._lines, self._nodes, self._generated = source, lines, nodes, generated
        ids = np.arange(len(source))
        self._is_line = source.has_name(ids, list(lines)) & source.kinds("range")[source.kind]
        self._is_line &= ~np.append(source.on_gpu, False)[source.track]
        self._line_of = source.chase(self._is_line)
        self._module_of = source.chase(source.named(ids, lambda text: MODULE.match(text) is not None))
        engine = source.named(ids, is_engine)
        self._engine_of = source.chase(engine)
        self._engine_tracks = np.unique(source.track[engine])

    def anchors(self, calls: Index) -> NDArray[np.int64]:
        """How the address of each launch is told, and by which names.

        Returns:
            int64, shape (4, n): the way, the name id of the line, that of the module, and whether it is work
            of the backward; -1 where there is none.
        """
        source = self._source
        known = calls >= 0
        at = np.where(known, calls, 0)
        nearest = source.chase(self._is_line | (self._nodes >= 0))[at]
        node = (nearest >= 0) & (self._nodes[nearest] >= 0) & ~self._is_line[nearest]
        forward = np.where(node, self._nodes[nearest], -1)
        anchor = np.where(node, forward, nearest)
        line = np.where(node, self._line_of[forward], nearest)
        engine = (self._engine_of[at] >= 0) | np.isin(source.track[at], self._engine_tracks)
        engine &= known
        waits = np.where((line < 0) & engine, self._waiting_line(calls), -1)
        graph = source.named(at, lambda text: GRAPH_LAUNCH.match(text) is not None)
        way = np.select(
            [~known, graph, (line >= 0) & node, line >= 0, waits >= 0],
            [_NO_LAUNCH, _GRAPH_REPLAY, _AT_NODE, _AT_LINE, _AT_BACKWARD],
            _NOWHERE,
        )
        line = np.where(line >= 0, line, waits)
        anchor = np.where(anchor >= 0, anchor, line)
        module = np.where(anchor >= 0, self._module_of[anchor], -1)
        names = np.append(source.name, np.int32(-1))
        return np.stack([way, names[line], names[module], (node | engine | (waits >= 0))]).astype(np.int64)

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

    def address(self, way: int, line: int, mark: int, backward: int, replayed: int) -> Address | Unresolved:
        """The address of launches with these anchors, or why they have none.

        Args:
            mark: name id of the range round the module, -1 for none.
        """
        if way == _NO_LAUNCH:
            return "no-launch"
        if way == _GRAPH_REPLAY:
            return "graph"
        if way == _NOWHERE:
            return "no-line"
        found = self._lines[line]
        name = MODULE.match(self._source.names[mark]) if mark >= 0 else None
        path = name["path"] if name else None
        behind = self._generated.get((found.file, found.line))
        if behind is not None:
            module = _below(path, behind.module)
            return Address(behind.lines, module, bool(backward), "compiled", behind.kernel, bool(replayed))
        if (found.file, found.line) in self._generated or _UNTOLD.search(found.file):
            return "generated"
        via: Via = {_AT_NODE: "autograd", _AT_LINE: "line"}.get(way, "backward")  # type: ignore[assignment]
        return Address((found,), path, bool(backward), via, replayed=bool(replayed))


@dataclass(frozen=True)
class _Generated:
    """What stands behind a line of generated code.

    Attributes:
        kernel: name and handle of the kernel that is called there.
        lines: of the program, each once.
        module: the innermost module that all its operations lie in, below the one that was compiled and empty
            for that one; None where the compiler does not tell it.
    """

    kernel: str
    lines: tuple[Line, ...]
    module: str | None


_Calls = dict[tuple[str, int], "_Generated | None"]
"""(file, line of generated code that calls a kernel) -> what stands behind it; None where it is not known."""


@dataclass
class _Operation:
    module: str | None
    view: bool
    stack: list[Line] = field(default_factory=list)


def _generated(trace: Trace) -> _Calls:
    """(file, line of generated code that calls a kernel) -> what stands behind it."""
    rows = trace.sql(
        "SELECT file, line, kernel, operation, module, is_view, source_file, source_line, source_function "
        "FROM generated ORDER BY file, line, kernel, operation, frame"
    ).rows
    calls: dict[tuple[str, int], dict[tuple[str, int], _Operation]] = {}
    for file, line, kernel, number, module, view, *source in rows:
        one = calls.setdefault((file, line), {}).setdefault((kernel, number), _Operation(module, view))
        if source[0] is not None:
            one.stack.append(Line(*source))
    found = {}
    for place, operations in calls.items():
        kernels = {kernel for kernel, _ in operations}
        told = [one for one in operations.values() if one.stack]
        # A line that calls two kernels tells neither's.
        found[place] = _behind(kernels.pop(), told) if len(kernels) == 1 and told else None
    return found


def _behind(kernel: str, operations: list[_Operation]) -> _Generated:
    """Views add no work: they count only where a kernel does nothing else, as in a copy of what they see."""
    working = [one for one in operations if not one.view] or operations
    lines = dict.fromkeys(_innermost(one.stack) for one in working)
    modules = [one.module for one in working]
    known = [_parts(module) for module in modules if module is not None]
    alike = itertools.takewhile(lambda parts: len(set(parts)) == 1, zip(*known, strict=False))
    common = ".".join(parts[0] for parts in alike) if len(known) == len(modules) else None
    return _Generated(kernel, tuple(lines), common)


def _parts(module: str | None) -> list[str]:
    return module.split(".") if module and module != ROOT else []


def _below(outer: str | None, inner: str | None) -> str | None:
    """The qualified name of a module of compiled code.

    Args:
        outer: the module that was compiled, as the ranges name it. inner: the module below it.
    """
    return ".".join([*_parts(outer), *_parts(inner)]) or outer


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


def _innermost(stack: list[Line]) -> Line:
    """The innermost line of the program itself, or where all are of installed packages the innermost."""
    own = [line for line in stack if not _INSTALLED.search(line.file)]
    return (own or stack)[-1]
