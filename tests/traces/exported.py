"""A small trace to export, and the events of a file."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

from profrun.traces.trace import Trace
from tests.tracekit import make_trace

BIG = 1_758_927_066_581_847_261  # unix ns: not a whole number of microseconds, not exact as a double


def small(folder: Path, start: int = BIG) -> Trace:
    """A host thread with a nested call, two kernels that overlap by 5 ns on one stream, a counter."""
    return make_trace(
        folder,
        [
            ("op", "aten::mm", start, 100, "main"),
            ("api", "cudaLaunchKernel", start + 10, 20, "main"),
            ("api", "crosses", start + 90, 30, "main"),
            ("kernel", 'k "1"', start + 50, 25, "stream 7", {"launch": 1, "kernels.grid_x": 4}),
            ("kernel", "k2", start + 70, 10, "stream 7", {"launch": 1}),
            ("kernel", "k3", start + 80, 10, "stream 7"),
        ],
        side={
            "tracks": [{"track": 2, "kind": "counter", "process": 0, "name": "memory"}],
            "counters": [
                {"track": 2, "ts_ns": start + 3, "name": "allocated", "value": 1.5, "unit": "byte"},
                {"track": 2, "ts_ns": start + 9, "name": "allocated", "value": 2.5, "unit": "byte"},
            ],
        },
    )


def events_of(path: Path) -> list[dict[str, Any]]:
    """The events of a Chrome file, numbers exact."""
    data = path.read_bytes()
    whole = gzip.decompress(data) if path.suffix == ".gz" else data
    found: list[dict[str, Any]] = json.loads(whole, parse_float=Decimal)["traceEvents"]
    return found
