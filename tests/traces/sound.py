"""A sound trace with a row in every table."""

from __future__ import annotations

from typing import Any

SLICES: list[tuple[Any, ...]] = [
    ("step", "profrun.step#0", 0, 200, "main", {"depth": 0}),
    ("op", "add", 0, 100, "main", {"parent": 0, "depth": 1, "ops.sequence": 1}),
    ("api", "launch", 10, 20, "main", {"parent": 1, "depth": 2, "correlation": 7}),
    ("kernel", "k", 50, 30, "stream 7", {"launch": 2, "kernels.grid_x": 1, "kernels.est_occupancy": 0.5}),
    ("memcpy", "copy", 90, 5, "stream 7", {"copies.direction": "HtoD", "copies.bytes": 4}),
    ("memset", "fill", 95, 5, "stream 7", {"copies.direction": "memset"}),
    ("kernel", "ncclDevKernel_AllReduce", 100, 5, "stream 7", {"collectives.op": "allreduce"}),
    ("op", "mul", 120, 0, "other", {"depth": 0, "ops.flops": 2}),
]


SIDE: dict[str, list[dict[str, Any]]] = {
    "tracks": [{"track": 3, "kind": "counter", "process": 0, "name": "memory"}],
    "counters": [{"track": 3, "ts_ns": 5, "name": "memory", "value": 1.0, "unit": "byte"}],
    "step_times": [
        {"process": 0, "step": 0, "ts_ns": 0, "dur_ns": 200, "clock": "wall", "part": "active"},
        {"process": 0, "step": 1, "ts_ns": 210, "host_ns": 9, "clock": "cuda_event", "part": "outside"},
    ],
    "stacks": [
        {"stack": 0, "frame": 0, "file": "/me/train.py", "line": 9, "function": "<module>"},
        {"stack": 0, "frame": 1, "file": "<string>", "function": "launcher"},
    ],
    "call_stacks": [{"slice": 2, "stack": 0}],
    "metrics": [{"slice": 3, "name": "cycles", "value": 10.0, "unit": "cycle"}],
    "issues": [{"code": "odd", "count": 1, "message": "something"}],
}
