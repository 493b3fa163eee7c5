"""Counters as tracks of a timeline: which samples, by time, and what they are called."""

from __future__ import annotations

from profrun.analysis.trace.timeline_counters import timeline_counters
from tests.analysis.kit import memory_trace

SAMPLES = [
    {"track": 0, "ts_ns": 30, "name": "allocated", "value": 3e10 + 1, "unit": "byte"},
    {"track": 0, "ts_ns": 10, "name": "allocated", "value": 1.0, "unit": "byte"},
    {"track": 0, "ts_ns": 10, "name": "memory change", "value": 1.0, "unit": "byte"},
    {"track": 1, "ts_ns": 15, "name": "memory change", "value": -8.0, "unit": "byte"},
    {"track": 1, "ts_ns": 20, "name": "power", "value": 412.25, "unit": "W"},
]


def test_samples_are_by_counter_and_time() -> None:
    """Changes of memory are left out only where the total is recorded beside them."""
    rows = [("op", "a", 5, 50, "main"), ("kernel", "k", 6, 5, "stream 7")]
    found = timeline_counters(memory_trace(rows, side={"counters": SAMPLES}), 5)
    assert [(one.name, one.unit, one.process) for one in found] == [
        ("GPU 0: memory change", "byte", 0),
        ("GPU 0: power", "W", 0),
        ("allocated", "byte", 0),
    ]
    assert [one.times.tolist() for one in found] == [[10], [15], [5, 25]]
    assert [one.values.tolist() for one in found] == [[-8.0], [412.25], [1.0, 3e10 + 1]]


def test_a_trace_without_counters_has_none() -> None:
    assert timeline_counters(memory_trace([("op", "a", 5, 50, "main")]), 0) == []
