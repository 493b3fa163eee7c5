"""GPU records that were lost in a stretch, and overlaps on a stream by their cause."""

from __future__ import annotations

from profrun.analysis.trace.data_quality import data_quality
from profrun.analysis.trace.quality import QualityFinding
from profrun.traces.trace import Trace
from tests.analysis.kit import Row, memory_trace

LAUNCH = "cudaLaunchKernel"


def found(trace: Trace, code: str) -> list[QualityFinding]:
    return [one for one in data_quality(trace) if one.code == code]


def program(lost: set[int], count: int = 60) -> list[Row]:
    """Launches every 100 us, without the kernels of some."""
    rows: list[Row] = [("api", LAUNCH, 100_000 * number, 5000, "main") for number in range(count)]
    for number in sorted(set(range(count)) - lost):
        rows.append(("kernel", "k", 100_000 * number + 9001, 5000, "stream 7", {"launch": number}))
    return rows


def test_a_stretch_without_gpu_records() -> None:
    (one,) = found(memory_trace(program(set(range(20, 40)))), "lost_gpu_records")
    assert (one.count, one.severity, one.share) == (20, "critical", 20 / 60)
    assert "from 2 ms to 3.905 ms of the recording" in one.what


def test_records_that_are_missing_here_and_there_or_at_an_end_are_no_stretch() -> None:
    assert found(memory_trace(program(set(range(1, 59, 3)))), "lost_gpu_records") == []
    assert found(memory_trace(program(set(range(40, 60)))), "lost_gpu_records") == []
    assert len(found(memory_trace(program(set(range(40, 60)))), "launches_without_kernels")) == 1


def test_launches_that_are_recorded_into_a_graph_run_nothing() -> None:
    rows = program(set(range(20, 40)))
    rows += [("api", "cudaStreamBeginCapture", 1_950_000, 1000, "main")]
    rows += [("api", "cudaStreamEndCapture", 3_950_000, 1000, "main")]
    trace = memory_trace(rows)
    assert found(trace, "lost_gpu_records") == found(trace, "launches_without_kernels") == []


def test_an_overlap_is_weighed_by_its_time_and_has_its_cause() -> None:
    def overlap(ns: int, arch: str) -> Trace:
        rows: list[Row] = [
            ("kernel", "a", 1, 100_000, "stream 7"),
            ("kernel", "b", 100_001 - ns, 100_000, "stream 7"),
        ]
        return memory_trace(rows, device={"arch": arch})

    (short,) = found(overlap(500, "sm_80"), "stream_overlap")
    assert (short.why, short.severity, short.share) == ("the tool's rounding: 1", "info", 500 / 200_000)
    (early,) = found(overlap(5000, "sm_90"), "stream_overlap")
    assert (early.why, early.severity) == ("programmatic dependent launch: 1", "warning")
    assert found(overlap(5000, "sm_80"), "stream_overlap") == []
    assert len(found(overlap(5000, "sm_80"), "gpu_work_overlaps")) == 1
