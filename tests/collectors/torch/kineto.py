"""Small kineto files for tests: events on one screen."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from profrun.collectors.normalize import normalize
from profrun.traces.trace import Trace

Event = dict[str, Any]
NVIDIA = {"id": 0, "name": "NVIDIA H200", "warpSize": 32, "numSms": 132, "computeMajor": 9, "computeMinor": 0}
AMD = {"id": 0, "name": "AMD Instinct MI300X", "warpSize": 64, "numSms": 304, "computeMajor": 9}


def op(name: str, ts: float, dur: float, xid: int, tid: int = 10, **args: Any) -> Event:
    """A host op of process 100."""
    return _event("cpu_op", name, 100, tid, ts, dur, {"External id": xid} | args)


def api(name: str, ts: float, dur: float, corr: int, tid: int = 10, **args: Any) -> Event:
    """A runtime call of process 100."""
    return _event("cuda_runtime", name, 100, tid, ts, dur, {"correlation": corr} | args)


def kernel(
    name: str, ts: float, dur: float, corr: int, device: int = 0, stream: int = 7, **args: Any
) -> Event:
    """A kernel; on the device as process and stream as thread, as kineto writes it."""
    own = {"device": device, "stream": stream, "correlation": corr}
    return _event("kernel", name, device, stream, ts, dur, own | args)


def gpu(cat: str, name: str, ts: float, dur: float, corr: int, **args: Any) -> Event:
    """A copy, memset or sync on device 0, stream 7."""
    return _event(cat, name, 0, 7, ts, dur, {"device": 0, "stream": 7, "correlation": corr} | args)


def _event(cat: str, name: str, pid: int, tid: int, ts: float, dur: float, args: Event) -> Event:
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def document(events: Sequence[Event], **keys: Any) -> Event:
    """A whole file of one H200 with a base time."""
    base = {
        "schemaVersion": 1,
        "deviceProperties": [NVIDIA],
        "cupti_version": 130001,
        "baseTimeNanoseconds": 10**18,
    }
    return base | keys | {"traceEvents": list(events)}


def trace_of(folder: Path, events: Sequence[Event], **keys: Any) -> Trace:
    """Normalize the events and open the checked trace."""
    return trace_of_files(folder, [document(events, **keys)])


def trace_of_files(folder: Path, documents: Sequence[Mapping[str, Any]]) -> Trace:
    """Normalize several files, one a rank, and open the checked trace."""
    paths = []
    for number, content in enumerate(documents):
        paths.append(folder / f"{number}.json")
        paths[-1].write_text(json.dumps(content))
    normalize(paths, folder / "trace")
    return Trace(folder / "trace")


def issues(trace: Trace) -> dict[str, int]:
    """code -> count."""
    return dict(trace.sql("SELECT code, count FROM issues").rows)
