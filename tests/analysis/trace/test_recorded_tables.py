"""Hardware counters and issues of a trace as rows."""

from __future__ import annotations

from profrun.analysis.trace.recorded_tables import (
    IssueRow,
    MetricRow,
    hardware_metrics,
    reader_issues,
)
from tests.analysis.kit import memory_trace

KERNELS = [("kernel", "short", 0, 10, "stream 7"), ("kernel", "long", 20, 90, "stream 7")]


def test_counters_of_the_longest_kernels_come_first() -> None:
    metrics = [
        {"slice": slice_id, "name": name, "value": value, "unit": "byte"}
        for slice_id, name, value in ((0, "read", 1.0), (1, "written", 3.0), (1, "read", 2.0))
    ]
    trace = memory_trace(KERNELS, side={"metrics": metrics})
    assert hardware_metrics(trace, most=2) == (
        [MetricRow("long", 1, "read", 2.0, "byte"), MetricRow("long", 1, "written", 3.0, "byte")],
        3,
    )


def test_issues_are_sorted_by_code() -> None:
    issues = [
        {"code": "z", "count": 1, "message": "last", "example": None},
        {"code": "a", "count": 2, "message": "first", "example": "here"},
    ]
    trace = memory_trace(KERNELS, side={"issues": issues})
    assert reader_issues(trace) == [IssueRow("a", 2, "first", "here"), IssueRow("z", 1, "last", None)]
