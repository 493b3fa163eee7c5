"""Memory over time: peaks, and what ops allocated."""

from __future__ import annotations

from profrun.analysis.trace.memory import memory
from profrun.analysis.trace.ops import operators
from tests.analysis.kit import H200, memory_trace


def test_memory_peak_and_net_allocation_by_op() -> None:
    counters = [(5, 100.0), (15, 300.0), (25, 1100.0), (35, 200.0)]
    side = {
        "tracks": [{"track": 9, "kind": "counter", "process": 0, "device": 0, "name": "memory"}],
        "counters": [
            {"track": 9, "ts_ns": ts, "name": "allocated", "value": value, "unit": "byte"}
            for ts, value in counters
        ],
    }
    trace = memory_trace(
        [("op", "aten::empty", 10, 10, "main"), ("op", "aten::mm", 20, 20, "main"),
         ("op", "aten::empty", 22, 6, "main")],
        side=side,
    )  # fmt: skip
    (peak,) = memory(trace)
    assert (peak.peak_bytes, peak.at_ns, peak.ops, peak.records) == (1100, 25, ("aten::empty",), 4)
    assert peak.capacity_bytes == H200["memory_bytes"]
    assert {row.name: row.device_memory_bytes for row in operators(trace)} == {
        "aten::empty": 1000,
        "aten::mm": -100,
    }


def test_without_memory_records_the_columns_are_none() -> None:
    trace = memory_trace([("op", "aten::mm", 0, 5, "main")])
    assert operators(trace)[0].device_memory_bytes is None
    assert memory(trace) == []
