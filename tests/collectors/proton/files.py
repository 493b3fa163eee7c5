"""The recordings of this folder, and their raw content read by nothing of profrun's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from profrun.collectors.normalize import normalize
from profrun.traces.trace import Trace

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class RawKernel:
    """One kernel event as the file has it; times exact, in ns."""

    stream: int
    ts: int
    dur: int
    name: str
    path: tuple[str, ...]


def raw_kernels(name: str) -> list[RawKernel]:
    """All kernels of a Chrome trace, with times as decimal numbers."""
    found = []
    for line in (DATA / name).read_text(encoding="utf-8").splitlines():
        for event in json.loads(line, parse_float=Decimal)["traceEvents"]:
            assert (event["ph"], event["cat"]) == ("X", "kernel")
            stack = tuple(event["args"]["call_stack"])
            ts, dur = event["ts"] * 1000, event["dur"] * 1000
            assert (ts, dur) == (int(ts), int(dur))
            found.append(RawKernel(event["tid"], int(ts), int(dur), event["name"], stack[1:-1]))
    return found


@dataclass(frozen=True)
class RawNode:
    """One node of a tree: its names from the root on, and its metrics."""

    path: tuple[str, ...]
    metrics: dict[str, float]


def raw_nodes(name: str) -> list[RawNode]:
    """All nodes of a tree but the root, in the order of the file."""
    root = json.loads((DATA / name).read_text(encoding="utf-8"))[0]

    def walk(node: dict[str, object], path: tuple[str, ...]) -> Iterator[RawNode]:
        children = node["children"]
        assert isinstance(children, list)
        for child in children:
            here = (*path, child["frame"]["name"])
            yield RawNode(here, child["metrics"])
            yield from walk(child, here)

    return list(walk(root, ()))


def read(tmp_path: Path, *names: str) -> Trace:
    """The trace of recordings of this folder, made once for all tests of a process."""
    out = tmp_path.parent / "proton-traces" / "-".join(names)
    if not out.exists():
        normalize([DATA / name for name in names], out)
    return Trace(out)


def issues(trace: Trace) -> dict[str, int]:
    """Code -> count."""
    return {str(code): int(count) for code, count in trace.sql("SELECT code, count FROM issues").rows}
