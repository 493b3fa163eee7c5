"""The critical path on hand-drawn traces; every ns is accounted for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from profrun.analysis.trace.critical_path import CriticalPath, critical_path
from profrun.traces.trace import Trace
from tests.analysis.kit import memory_trace, step

LAUNCH = "cudaLaunchKernel"


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
