"""An independent count of a kineto file: the standard library's JSON with Decimal, no code of ours."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

KINDS = {
    "kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "memcpy": "memcpy",
    "gpu_memset": "memset",
    "memset": "memset",
    "cuda_runtime": "api",
    "cuda_driver": "api",
    "runtime": "api",
    "cpu_op": "op",
    "operator": "op",
    "python_function": "python",
    "cuda_sync": "sync",
    "overhead": "overhead",
}


@dataclass
class RawCount:
    """Events and summed durations in ns by slice kind; steps are told from ops and annotations by name."""

    count: Counter[str] = field(default_factory=Counter)
    dur_ns: Counter[str] = field(default_factory=Counter)
    events: list[dict[str, Any]] = field(default_factory=list)
    keys: dict[str, Any] = field(default_factory=dict)


def raw_count(path: Path) -> RawCount:
    """Count every complete event of a whole, valid file."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    document = json.loads(data, parse_float=Decimal)
    found = RawCount()
    found.events = document["traceEvents"] if isinstance(document, dict) else document
    if isinstance(document, dict):
        found.keys = {key: value for key, value in document.items() if key != "traceEvents"}
    for event in found.events:
        kind = kind_of(event)
        if kind:
            found.count[kind] += 1
            found.dur_ns[kind] += to_ns(event.get("dur", 0))
    return found


def kind_of(event: dict[str, Any]) -> str | None:
    """Slice kind of a raw event, None for what is no slice."""
    if event.get("ph") != "X":
        return None
    category = str(event.get("cat", "")).lower()
    if category in ("", "trace"):
        return None
    if category in ("cpu_op", "operator", "user_annotation"):
        head, _, tail = str(event["name"]).partition("#")
        if head in ("ProfilerStep", "profrun.step") and tail.isdigit():
            return "step"
    return KINDS.get(category, "range")


def to_ns(microseconds: Any) -> int:
    """Exact ns of a decimal number of microseconds."""
    return int((Decimal(microseconds) * 1000).to_integral_exact())
