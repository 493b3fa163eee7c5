"""A synthetic trace survives the way to disk and back."""

from pathlib import Path

from tests.tracekit import make_trace


def test_a_trace_is_written_opened_and_checked(tmp_path: Path) -> None:
    trace = make_trace(
        tmp_path / "t",
        [("api", "cudaLaunchKernel", 0, 2, "main"), ("kernel", "gemm", 10, 5, "stream 7", {"launch": 0})],
    )
    trace.check()
    assert trace.sql("SELECT name, device, stream, dur_ns FROM gpu_slices").rows == [("gemm", 0, 7, 5)]
