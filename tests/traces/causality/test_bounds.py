"""Bounds of a clock: which calls give one, and which are left out because nobody knows what they wait for."""

from __future__ import annotations

import pytest

from profrun.traces.causality import bounds
from profrun.traces.causality.recording import Recording
from tests.traces.causality.kit import Row, launches, recording, wait


def upper(rec: Recording) -> list[int]:
    """All upper bounds of device 0, in us."""
    found = bounds.upper(rec, rec.devices[0], alone=rec.alone(rec.devices[0]))
    return sorted(round(value / 1000) for value in found.value)


def test_a_kernel_starts_after_its_launch_began() -> None:
    rec = recording(launches((10, 18, 30), (12, 30, 40)))
    found = bounds.lower(rec, rec.devices[0])
    assert sorted(round(value / 1000) for value in found.value) == [-18, -8]


def test_a_wait_for_the_device_bounds_what_was_enqueued_before_it() -> None:
    rows = [*launches((10, 18, 30), (12, 30, 40)), wait(20, 45), *launches((50, 60, 90))]
    rows[-1] = (*rows[-1][:5], 5)  # the row of its launch
    assert upper(recording(rows)) == [5]


def test_a_wait_of_a_process_with_two_devices_is_left_out() -> None:
    rows = [*launches((10, 18, 30)), ("api", "cudaLaunchKernel", 12_000, 2000, "main", -1)]
    rows += [("kernel", "k", 20_000, 10_000, "gpu1 stream 7", 2), wait(20, 45)]
    assert upper(recording(rows)) == []


@pytest.mark.parametrize(
    ("name", "direction", "pageable", "bound"),
    [
        ("cudaMemcpyAsync", "DtoH", True, [4]),
        ("cudaMemcpyAsync", "DtoH", False, []),
        ("cudaMemcpyAsync", "HtoD", False, []),
        ("cudaMemcpy", "DtoH", False, [4]),
        ("cudaMemcpy", "DtoD", False, []),
        ("hipMemcpyWithStream", "DtoH", False, [4]),
        ("hipMemcpyWithStream", "HtoD", False, []),
        ("cuMemcpyDtoHAsync_v2", "DtoH", False, []),
    ],
)
def test_a_copy_that_its_call_waits_for(name: str, direction: str, pageable: bool, bound: list[int]) -> None:
    rows: list[Row] = [
        ("api", name, 10_000, 20_000, "main", -1),
        ("memcpy", f"Memcpy {direction}", 18_000, 8000, "stream 7", 0),
    ]
    assert upper(recording(rows, pageable=[1] if pageable else [])) == bound


def test_a_wait_for_a_stream_counts_where_a_record_names_the_stream() -> None:
    rows = [*launches((10, 18, 30)), *launches((12, 30, 60), stream="stream 9")]
    rows[3] = (*rows[3][:5], 2)
    rows += [
        wait(20, 33, "cudaStreamSynchronize"),
        ("sync", "Stream Sync (stream 7)", 20_500, 12_000, "sync", 4),
    ]
    assert upper(recording(rows)) == [3]
    assert upper(recording(rows[:5])) == []


def test_a_long_wait_of_a_program_with_one_stream_is_for_that_stream() -> None:
    rows = [*launches((10, 18, 80)), wait(12, 84, "cudaStreamSynchronize")]
    assert upper(recording(rows)) == [4]
    short = [*launches((10, 18, 30)), wait(12, 34, "cudaStreamSynchronize")]
    assert upper(recording(short)) == []  # perhaps of an empty stream
    second = ("kernel", "other", 1000, 500, "stream 9", 0)
    assert upper(recording([*rows, second])) == []


def test_a_wait_behind_a_copy_of_the_same_op_is_for_its_stream() -> None:
    rows: list[Row] = [
        ("op", "aten::_local_scalar_dense", 9000, 40_000, "main", -1),
        ("api", "cudaMemcpyAsync", 10_000, 5000, "main", -1),
        ("memcpy", "Memcpy DtoH", 18_000, 8000, "stream 7", 1),
        ("api", "cudaStreamSynchronize", 16_000, 14_000, "main", -1),
    ]
    assert upper(recording(rows, parents={1: 0, 3: 0})) == [4]
    assert upper(recording(rows)) == []


def test_a_blocking_launch_waits_for_its_kernel() -> None:
    rows: list[Row] = [
        ("api", "cudaLaunchKernel", 10_000, 20_000, "main", -1),
        ("kernel", "k", 18_000, 8000, "stream 7", 0),
        ("api", "cudaGraphLaunch", 40_000, 5000, "main", -1),
        ("kernel", "a", 50_000, 8000, "stream 7", 2),
        ("kernel", "b", 58_000, 8000, "stream 7", 2),
    ]
    assert upper(recording(rows, blocking=True)) == [4]
    assert upper(recording(rows)) == []
