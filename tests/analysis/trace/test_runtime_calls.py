"""Runtime calls and what they enqueued."""

from __future__ import annotations

from profrun.analysis.trace.runtime_calls import apis
from tests.analysis.kit import Row, memory_trace

LAUNCH = "cudaLaunchKernel"


def test_calls_and_what_they_enqueued() -> None:
    rows: list[Row] = [
        ("api", "cudaGraphLaunch", 0, 10, "main"),
        ("api", LAUNCH, 10, 4, "main"),
        ("api", LAUNCH, 20, 8, "main"),
    ]
    rows += [("kernel", "k", 50 + place, 1, "stream 7", {"launch": 0}) for place in range(3)]
    rows += [("sync", "Stream Wait Event", 60, 1, "stream 7", {"launch": 1})]  # a wait is no work
    found = {row.name: row for row in apis(memory_trace(rows))}
    launch = found[LAUNCH]
    assert (launch.calls, launch.total_ns, launch.mean_ns, launch.p50_ns, launch.max_ns) == (
        2,
        12,
        6.0,
        6.0,
        8,
    )
    assert {name: row.gpu_slices for name, row in found.items()} == {"cudaGraphLaunch": 3, LAUNCH: 0}
