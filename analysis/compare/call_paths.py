"""From where in the program GPU work was launched: the ops and ranges round each launch, as a call path.

``call_paths`` is given a frame and returns the path of every host op and range, each different path once
(``CallPaths``). ``launch_paths`` returns the paths of the launches of GPU slices.

Names are made comparable between runs: ids, addresses, sequence and graph numbers are removed, and wrappers
that a compiler or profiler puts round code (graph calls, guards, cache lookups) are not part of a path.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

import numpy as np

from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.frame import KIND, Frame, Index, Mask
from profrun.analysis.trace.ranges import LIBRARY, MODULE, TORCH_MODULE, adopting_range
from profrun.traces.memo import memoised

_WRAPPERS = re.compile(
    r"^(?:Torch-Compiled Region|## Call CompiledFxGraph|CompiledFxGraph|TorchDynamo Cache Lookup"
    r"|Pregraph bytecode|AOTDispatcher Runtime Wrapper|CompiledFunction$|Compiled Autograd"
    r"|autograd::engine::evaluate_function: CompiledFunctionBackward|CompiledFunctionBackward"
    r"|profrun\.step|profrun\.run$|ProfilerStep)"
)
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_HASH = re.compile(r"\b(?=[a-z]*[0-9])(?=[0-9]*[a-z])[0-9a-z]{20,}\b")
_NUMBER = re.compile(r"(?<![\w.:])\d+(?:/\d+)*(?![\w.])")
_TAIL = re.compile(r"(?<=[_#])\d+$")
_TRITON = re.compile(r"^triton_")


@functools.lru_cache(maxsize=65536)
def plain(name: str) -> str:
    """The name of an op or range without ids: equal text means the same place in the program.

    ``AllToAll4D, seq = 46286, op_id = 994184`` -> ``AllToAll4D, seq = N, op_id = N``. Names of modules
    (``layers.3``) and C++ names keep their numbers, because these tell one place from another.
    """
    if MODULE.match(name):
        return name
    if TORCH_MODULE.match(name) or _TRITON.match(name):
        return re.sub(r"_\d+$", "", name)
    text = _HASH.sub("#", _ADDRESS.sub("0x", name))
    if "::" in text and " " not in text:
        return text
    return _TAIL.sub("N", _NUMBER.sub("N", text))


def is_wrapper(name: str) -> bool:
    """Is this range or op only there because something was compiled or recorded?"""
    return _WRAPPERS.match(name) is not None


@dataclass(frozen=True)
class CallPaths:
    """The call paths of a frame, by path id, dense from 0.

    Attributes:
        of: path id by slice id, int64, shape (slices,): of host ops and ranges, -1 for all other slices.
        parent, name, kind: by path id: parent path (-1 for none), text of the innermost op or range, and 'o'
            or 'r'.
        module: by path id: the qualified name of the innermost nn.Module, None for none.
    """

    of: Ints
    parent: list[int]
    name: list[str]
    kind: list[str]
    module: list[str | None]

    def spell(self, path: int) -> tuple[tuple[str, ...], str]:
        """(names outermost first, their kinds) of a path id; both empty for -1."""
        names: list[str] = []
        kinds: list[str] = []
        while path >= 0:
            names.append(self.name[path])
            kinds.append(self.kind[path])
            path = self.parent[path]
        return tuple(reversed(names)), "".join(reversed(kinds))


def module_of(name: str) -> str | None:
    """Qualified name of an nn.Module's range, its class for torch's own module ranges, None for others."""
    hit = MODULE.match(name)
    if hit:
        return str(hit["path"]) or "(root)"
    other = TORCH_MODULE.match(name)
    return str(other["cls"]) if other else None


@memoised
def call_paths(source: Frame) -> CallPaths:
    """The call path of every host op and range; worked out once per frame.

    One pass per level of nesting: a slice is ready when the path of its parent is known.
    """
    codes = (KIND["op"], KIND["range"])
    wrapper = np.array([is_wrapper(text) for text in source.names] or [False])
    nodes = np.isin(source.kind, codes) & ~np.append(source.on_gpu, False)[source.track]
    nodes &= ~wrapper[source.name]
    parent = source.chase(nodes)
    ids = np.flatnonzero(nodes)
    texts, plain_of = _plain_names(source, ids)
    library = np.array([LIBRARY.match(text) is not None for text in source.names] or [False])
    is_range = (source.kind[ids] == codes[1]) & ~library[source.name[ids]]
    key_of = plain_of[source.name[ids]] * 2 + is_range
    of = np.full(len(source) + 1, -1, dtype=np.int64)
    table = CallPaths(of[:-1], [], [], [], [])
    waiting = np.ones(len(source) + 1, dtype=bool)
    waiting[:-1] = nodes
    waiting[-1] = False
    left = np.arange(len(ids))
    while len(left):
        ready = ~waiting[parent[ids[left]]]
        now = left[ready]
        if not len(now):  # only if a parent were its own ancestor, and the trace format forbids that
            break
        pairs = np.stack([of[parent[ids[now]]], key_of[now]])
        unique, inverse = np.unique(pairs, axis=1, return_inverse=True)
        first = len(table.name)
        for above, key in unique.T:
            _add(table, int(above), texts[int(key) // 2], "r" if key % 2 else "o")
        of[ids[now]] = first + np.ravel(inverse)
        waiting[ids[now]] = False
        left = left[~ready]
    return table


def _plain_names(source: Frame, ids: Index) -> tuple[list[str], Ints]:
    """(distinct plain texts, place in them by name id: int64, shape (names + 1,), -1 where not used)."""
    place: dict[str, int] = {}
    plain_of = np.full(len(source.names) + 1, -1, dtype=np.int64)
    for number in np.unique(source.name[ids]):
        plain_of[number] = place.setdefault(plain(source.names[number]), len(place))
    return list(place), plain_of


def _add(table: CallPaths, above: int, text: str, kind: str) -> None:
    table.parent.append(above)
    table.name.append(text)
    table.kind.append(kind)
    own = module_of(text) if kind == "r" else None
    table.module.append(own or (table.module[above] if above >= 0 else None))


def launch_paths(source: Frame, gpu: Index) -> tuple[Ints, Ints]:
    """Call paths of the launches of GPU slices.

    Work launched from a thread without ranges (autograd's) belongs to the range that the main thread was in
    at that time.

    Args:
        gpu: ids of GPU slices, shape (n,).

    Returns:
        Two arrays of path ids, int64, shape (n,), -1 for none: the path of the launch itself, and for
        launches on a thread without ranges the path of the main thread's range.
    """
    table = call_paths(source)
    calls = source.launch[gpu]
    nodes = source.chase(has_path(table))
    node = np.where(calls >= 0, nodes[calls], -1)
    own = np.where((calls >= 0) & (table.of[calls] >= 0), table.of[calls], -1)
    found = np.where(own >= 0, own, np.where(node >= 0, table.of[node], -1))
    return np.asarray(found, dtype=np.int64), _adopted(source, table, calls)


def has_path(table: CallPaths) -> Mask:
    """True for slices that have a path of their own, by slice id."""
    return np.asarray(table.of >= 0)


def _adopted(source: Frame, table: CallPaths, calls: Index) -> Ints:
    """Path of the main thread's range at each launch call, for calls on threads that have no ranges."""
    at = adopting_range(source, calls)
    above = source.chase(has_path(table))
    node = np.where((at >= 0) & (table.of[at] >= 0), at, np.where(at >= 0, above[at], -1))
    return np.asarray(np.where(node >= 0, table.of[node], -1), dtype=np.int64)
