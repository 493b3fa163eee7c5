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


def test_what_the_sampler_read_is_shown_around_the_slices_only() -> None:
    """The last value before the slices holds; a mask is told in words; energy and zeros are left out."""
    times = (-100, -10, 20, 200)
    values = {
        "SM clock": (1.0, 1980.0, 1400.0, 2.0),
        "power": (1.0, 690.0, 700.0, 2.0),
        "power, average": (1.0, 690.0, 700.0, 2.0),
        "energy": (1.0, 2.0, 3.0, 4.0),
        "slowed by": (4.0, 0.0, 3.0, 4.0),
        "memory clock": (5.0, 3201.0, 3201.0, 2.0),
        "processes": (5.0, 1.0, 2.0, 2.0),
    }
    counters = [
        {"track": 2, "ts_ns": time, "name": name, "value": value, "unit": "u"}
        for name, row in values.items()
        for time, value in zip(times, row, strict=True)
    ]
    counters += [
        {"track": 3, "ts_ns": 20, "name": "CPU cores busy", "value": 1.5, "unit": "cores"},
        {"track": 3, "ts_ns": 20, "name": "CPU cores stolen", "value": 0.0, "unit": "cores"},
    ]
    shared = {"kind": "counter", "process": 0, "name": "samples"}
    tracks = [shared | {"track": 2, "device": 0}, shared | {"track": 3}]
    rows = [("op", "a", 0, 50, "main"), ("kernel", "k", 6, 5, "stream 7")]
    found = timeline_counters(memory_trace(rows, side={"counters": counters, "tracks": tracks}), 0)
    assert [(one.name, one.times.tolist(), one.values.tolist()) for one in found] == [
        ("GPU 0: SM clock", [-10, 20], [1980, 1400]),
        ("GPU 0: power", [-10, 20], [690, 700]),
        ("GPU 0: slowed by", [-10, 20], [0, 1]),
        ("GPU 0: processes", [-10, 20], [1, 2]),
        ("CPU cores busy", [20], [1.5]),
    ]
    assert found[2].words == ("", "power cap, thermal")
