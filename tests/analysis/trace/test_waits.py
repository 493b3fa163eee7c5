"""Idle classes, launch latency, queues and the critical path on hand-drawn traces; every ns is accounted
for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from profrun.analysis.trace.critical_path import CriticalPath, critical_path
from profrun.analysis.trace.idle import idle
from profrun.analysis.trace.queue import launch_stats, queues
from profrun.traces.trace import Trace
from tests.analysis.kit import Row, memory_trace, step

LAUNCH = "cudaLaunchKernel"


def test_idle_classes_of_a_stream_to_the_ns() -> None:
    trace = memory_trace(
        [
            ("api", LAUNCH, 0, 5, "main"), ("api", LAUNCH, 10, 5, "main"), ("api", LAUNCH, 20, 5, "main"),
            ("api", LAUNCH, 400, 5, "main"),
            ("kernel", "a", 100, 50, "stream 7", {"launch": 0}),
            ("kernel", "b", 155, 45, "stream 7", {"launch": 1}),  # 5 ns after: the hardware's own gap
            # queued, 100 ns late: held back by something
            ("kernel", "c", 300, 20, "stream 7", {"launch": 2}),
            ("kernel", "d", 420, 10, "stream 7", {"launch": 3}),  # enqueued only after c had ended
            ("kernel", "e", 500, 10, "stream 7"),  # nobody knows who enqueued it
            ("kernel", "f", 310, 40, "stream 8"),  # another stream covers a part
        ]
    )  # fmt: skip
    device, stream, _ = idle(trace)
    assert (stream.stream, stream.span_ns, stream.busy_ns, stream.idle_ns) == (7, 410, 135, 275)
    waits = (stream.host_wait_ns, stream.kernel_wait_ns, stream.other_ns, stream.unknown_ns)
    assert waits == (100, 5, 100, 70)
    assert sum(waits) == stream.idle_ns
    assert stream.gaps == {"host_wait": 1, "kernel_wait": 1, "other": 1, "unknown": 1}
    # of the whole device the gap before d is 70 ns: stream 8 runs until 350
    assert (device.track, device.idle_ns, device.host_wait_ns) == (None, 245, 70)


def test_a_gap_of_exactly_the_usual_delay_is_other() -> None:
    rows = [
        ("api", LAUNCH, 0, 1, "main"), ("api", LAUNCH, 1, 1, "main"), ("api", LAUNCH, 2, 1, "main"),
        ("kernel", "a", 10, 10, "stream 7", {"launch": 0}),
        ("kernel", "b", 49, 10, "stream 7", {"launch": 1}),
        ("kernel", "c", 89, 10, "stream 7", {"launch": 2}),
    ]  # fmt: skip
    _, stream = idle(memory_trace(rows))
    assert (stream.kernel_wait_ns, stream.other_ns) == (29, 30)


def test_nested_kernels_leave_no_gap() -> None:
    rows = [
        ("kernel", "a", 0, 100, "stream 7"),
        ("kernel", "b", 10, 10, "stream 7"),
        ("kernel", "c", 50, 80, "stream 7"),
    ]
    device, _ = idle(memory_trace(rows))
    assert (device.busy_ns, device.idle_ns) == (130, 0)


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


def path(trace: Trace) -> tuple[list[tuple[int, int, str, str]], CriticalPath]:
    found = critical_path(trace)
    assert found is not None
    for left, right in zip(found.segments, found.segments[1:], strict=False):
        assert left.end_ns == right.start_ns
    assert found.total_ns == sum(found.by_kind.values()) == found.end_ns - found.start_ns
    return [(one.start_ns, one.end_ns, one.kind, one.name) for one in found.segments], found


def test_the_path_of_a_step_that_waits_for_its_kernel() -> None:
    trace = memory_trace(
        [
            step(0, 0, 200),
            ("op", "aten::mm", 10, 40, "main"), ("api", LAUNCH, 20, 20, "main"),
            ("op", "aten::item", 60, 120, "main"), ("api", "cudaStreamSynchronize", 70, 100, "main"),
            ("kernel", "gemm", 45, 115, "stream 7", {"launch": 2}),
        ]
    )  # fmt: skip
    assert path(trace)[0] == [
        (0, 10, "host", "profrun.step#0"), (10, 20, "host", "aten::mm"),
        (20, 45, "launch", LAUNCH),  # the call, and the way to the GPU
        (45, 160, "kernel", "gemm"),
        (160, 170, "sync", "cudaStreamSynchronize"), (170, 180, "host", "aten::item"),
        (180, 200, "host", "profrun.step#0"),
    ]  # fmt: skip


@pytest.mark.timeout(20)
def test_the_path_ends_where_an_instant_stands_between_two_ops() -> None:
    rows = [("op", "a", 0, 10, "main"), ("op", "instant", 20, 0, "main"), ("op", "b", 20, 10, "main")]
    assert path(memory_trace(rows))[0] == [
        (0, 10, "host", "a"),
        (10, 20, "unexplained", "-"),
        (20, 30, "host", "b"),
    ]


def test_the_path_runs_along_the_gpu_when_the_host_is_ahead() -> None:
    trace = memory_trace(
        [
            step(0, 0, 40), ("api", LAUNCH, 5, 5, "main"), ("api", LAUNCH, 10, 5, "main"),
            ("kernel", "a", 20, 100, "stream 7", {"launch": 1}),
            ("kernel", "b", 123, 77, "stream 7", {"launch": 2}),
        ]
    )  # fmt: skip
    assert path(trace)[0] == [
        (0, 5, "host", "profrun.step#0"), (5, 20, "launch", LAUNCH), (20, 120, "kernel", "a"),
        (120, 123, "gpu_gap", "b"), (123, 200, "kernel", "b"),
    ]  # fmt: skip


def test_a_collective_on_another_stream_holds_the_next_kernel_back() -> None:
    nccl = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    trace = memory_trace(
        [
            step(0, 0, 60),
            ("api", LAUNCH, 0, 5, "main"), ("api", LAUNCH, 10, 5, "main"), ("api", LAUNCH, 20, 5, "main"),
            ("kernel", "a", 10, 30, "stream 7", {"launch": 1}),
            ("kernel", nccl, 40, 100, "stream 9", {"launch": 2}),
            ("kernel", "b", 142, 58, "stream 7", {"launch": 3}),
        ]
    )  # fmt: skip
    segments, found = path(trace)
    assert segments[-3:] == [(40, 140, "comm", nccl), (140, 142, "gpu_gap", "b"), (142, 200, "kernel", "b")]
    assert found.by_kind["comm"] == 100


def test_backward_on_another_thread_is_on_the_path() -> None:
    trace = memory_trace(
        [
            step(0, 0, 100), ("range", "backward", 20, 70, "main"),
            ("op", "MmBackward0", 30, 50, "autograd"),
        ]
    )  # fmt: skip
    segments, _ = path(trace)
    assert (30, 80, "host", "MmBackward0") in segments


@pytest.mark.parametrize("name", ["h200/torch/train.json.gz", "h200/torch/transformer_optim.json.gz"])
def test_the_path_of_a_real_recording_covers_it(name: str, real: Callable[..., Trace]) -> None:
    _, found = path(real(name))
    if "optim" in name:  # GPU-bound: the path is the GPU's
        gpu = found.by_kind["kernel"] + found.by_kind["memset"] + found.by_kind["gpu_gap"]
        assert gpu / found.total_ns > 0.99
    else:  # host-bound: under 1 % of it is kernels
        assert found.by_kind["host"] + found.by_kind["launch"] > 0.9 * found.total_ns
    one = critical_path(real(name), step=3)
    assert one is not None
    assert one.total_ns < found.total_ns
    assert critical_path(real(name), step=99) is None


def test_nothing_recorded_has_no_path() -> None:
    assert critical_path(memory_trace([])) is None
