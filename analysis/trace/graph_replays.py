"""Which call of its capture stands behind each kernel of a replayed CUDA graph: ``captured_calls``.

A graph that was captured on one stream replays its nodes in the order of the capture. So node k of a replay
is launch k of the capture, as long as both have as many, of the same kinds, and no two nodes ran at the same
time. Else the graph has branches, or is another one, and nothing is said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.trace.frame import KIND, Frame, Index
from profrun.contract.graph_names import CAPTURE_PATTERN, CAPTURED_PATTERN, REPLAY_PATTERN
from profrun.traces.memo import memoised

GRAPH_LAUNCH = re.compile(r"^(?:cuda|cu|hip)GraphLaunch")
_NODE: dict[Literal["kernel", "memcpy", "memset"], re.Pattern[str]] = {
    "kernel": re.compile(
        r"^(?:cuda|cu|hip)(?:Ext)?(?:Module)?Launch(?:Cooperative)?Kernel|^hipExtModuleLaunchKernel"
    ),
    "memcpy": re.compile(r"^(?:cuda|cu|hip)Memcpy\w*Async"),
    "memset": re.compile(r"^(?:cuda|cu|hip)Memset\w*Async"),
}
"""Calls that make a node of a graph, by the kind of the node."""


@dataclass(frozen=True)
class _Capture:
    """The calls of a capture that made nodes, in order, and the kinds of the nodes."""

    calls: Index
    kinds: NDArray[np.uint8]


@memoised
def captured_calls(source: Frame) -> NDArray[np.int64]:
    """The call of the capture behind each GPU slice of a replay.

    Returns:
        int64 slice ids by place in ``source.gpu``, shape (n,); -1 for what no graph replayed, and where it
        is not sure which call it was.
    """
    gpu = source.gpu
    found = np.full(len(gpu), -1, dtype=np.int64)
    calls = source.launch[gpu]
    replayed = np.flatnonzero((calls >= 0) & source.named(calls, lambda text: bool(GRAPH_LAUNCH.match(text))))
    if not len(replayed):
        return found
    graph_of = {
        number: int(hit[1])
        for number, text in enumerate(source.names)
        if (hit := REPLAY_PATTERN.match(text)) is not None
    }
    ids = np.arange(len(source))
    above = source.chase(source.has_name(ids, list(graph_of)) & source.kinds("range")[source.kind])
    captures = _captures(source)
    order = replayed[np.lexsort((source.ts[gpu[replayed]], calls[replayed]))]
    for places in np.split(order, np.flatnonzero(np.diff(calls[order])) + 1):
        call = int(calls[places[0]])
        mark = int(above[call])
        process = int(source.process_of(np.array([call]))[0])
        key = (process, graph_of[int(source.name[mark])]) if mark >= 0 else None
        capture = captures.get(key) if key is not None else None
        if capture is not None and _same(source, gpu[places], capture):
            found[places] = capture.calls
    return found


def _same(source: Frame, nodes: Index, capture: _Capture) -> bool:
    """Whether a replay is that of a capture, node by node."""
    if len(nodes) != len(capture.calls) or not np.array_equal(source.kind[nodes], capture.kinds):
        return False
    return bool((source.ts[nodes][1:] >= source.end[nodes][:-1]).all())


def _captures(source: Frame) -> dict[tuple[int, int], _Capture]:
    """(process, number of a graph) -> its capture. A graph that was captured twice is the later one's."""
    ids = source.of("range")
    marks = ids[source.named(ids, lambda text: CAPTURE_PATTERN.match(text) is not None)]
    marks = marks[~source.on_gpu[source.track[marks]]]
    if not len(marks):
        return {}
    launches = source.of("api")
    ran = np.zeros(len(source), dtype=bool)
    ran[source.launch[source.launched]] = True  # beside the capture, and no node
    launches = launches[~ran[launches]]
    kind = np.full(len(source.names) + 1, 255, dtype=np.uint8)
    for name, pattern in _NODE.items():
        for number, text in enumerate(source.names):
            if pattern.match(text):
                kind[number] = KIND[name]
    launches = launches[kind[source.name[launches]] != 255]
    launches = launches[np.argsort(source.ts[launches], kind="stable")]
    process = source.process_of(launches)
    ends = _ends(source, ids)
    found = {}
    for mark in marks[np.argsort(source.ts[marks], kind="stable")].tolist():
        hit = CAPTURE_PATTERN.match(source.text(mark))
        assert hit is not None
        owner = int(source.process_of(np.array([mark]))[0])
        end = ends.get((owner, int(hit[1])), int(source.end[mark]))
        inside = (process == owner) & (source.ts[launches] >= source.ts[mark])
        mine = launches[inside & (source.ts[launches] < end)]
        found[(owner, int(hit[1]))] = _Capture(mine, kind[source.name[mine]])
    return found


def _ends(source: Frame, ids: Index) -> dict[tuple[int, int], int]:
    """(process, number of a graph) -> when its capture ended, ns."""
    found = {}
    for mark in ids[source.named(ids, lambda text: CAPTURED_PATTERN.match(text) is not None)].tolist():
        hit = CAPTURED_PATTERN.match(source.text(mark))
        assert hit is not None
        found[(int(source.process_of(np.array([mark]))[0]), int(hit[1]))] = int(source.ts[mark])
    return found
