"""Launch latency and queue length on hand-drawn traces."""

from __future__ import annotations

import pytest

from profrun.analysis.trace.queue import launch_stats, queues
from tests.analysis.kit import Row, memory_trace

LAUNCH = "cudaLaunchKernel"


def test_latency_delay_and_queue_length() -> None:
    trace = memory_trace(
        [
            ("api", LAUNCH, 0, 10, "main"), ("api", LAUNCH, 10, 10, "main"), ("api", LAUNCH, 20, 10, "main"),
            ("kernel", "a", 30, 20, "stream 7", {"launch": 0}),
            ("kernel", "b", 50, 20, "stream 7", {"launch": 1}),
            ("kernel", "c", 70, 20, "stream 7", {"launch": 2}), ("kernel", "d", 5, 3, "stream 7"),
        ]
    )  # fmt: skip
    stats = launch_stats(trace)
    assert stats.latency is not None
    assert stats.delay is not None
    assert (stats.latency.count, stats.latency.mean, stats.latency.p50, stats.latency.max) == (3, 40, 40, 50)
    assert (stats.delay.min, stats.delay.max, stats.unplaced) == (20, 40, 1)
    (row,) = queues(trace, limit=3)
    # length 1 in 0..10, 2 in 10..20, 3 in 20..30, 2 in 30..50, 1 in 50..70
    assert (row.max_length, row.span_ns, row.blocked_ns) == (3, 70, 10)
    assert row.mean_length == pytest.approx((10 + 20 + 30 + 40 + 20) / 70)


def test_a_kernel_that_starts_inside_its_call_has_a_negative_delay() -> None:
    stats = launch_stats(
        memory_trace([("api", LAUNCH, 0, 50, "main"), ("kernel", "a", 30, 5, "stream 7", {"launch": 0})])
    )
    assert stats.delay is not None
    assert stats.delay.min == -20


def test_a_graph_launch_enqueues_many_and_counts_once_as_a_call() -> None:
    rows: list[Row] = [("api", "cudaGraphLaunch", 0, 10, "main")]
    rows += [("kernel", "k", 20 + 10 * place, 5, "stream 7", {"launch": 0}) for place in range(4)]
    trace = memory_trace(rows)
    stats = launch_stats(trace)
    assert stats.call is not None
    assert stats.call.count == 1
    assert queues(trace)[0].max_length == 4
