"""``profrun summary``: what the trace holds, and a text that fits the terminal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.analysis.sampled_runs import piecewise, read_counter, sampled_run
from tests.cli.conftest import SLICES
from tests.cli.running import Capture, call
from tests.tracekit import make_trace


def test_json_has_every_row_and_the_text_says_what_it_leaves_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_trace(tmp_path / "t", [("kernel", f"k{n:02}", 10_000 * n, 5000, "stream 7") for n in range(20)])
    found = call(capsys, "summary", tmp_path / "t", "--json").json
    assert (len(found["kernels"]), found["omitted"]) == (20, {})
    assert (
        sum(row["total_ns"] for row in found["kernels"]) == found["devices"][0]["total_kernel_ns"] == 100_000
    )
    cut = call(capsys, "summary", tmp_path / "t", "--json", "--top", 3).json
    assert (len(cut["kernels"]), cut["omitted"]) == (3, {"kernels": 17})
    assert "5 more" in call(capsys, "summary", tmp_path / "t").out


def test_summary_says_what_the_trace_holds(trace: Path, capsys: Capture) -> None:
    found = call(capsys, "summary", trace, "--json").json
    assert found["devices"][0]["busy_ns"] == 500
    assert [(row["name"], row["total_ns"]) for row in found["kernels"]] == [("gemm", 300), ("relu", 200)]
    text = call(capsys, "summary", trace, "--top", 1).out
    assert "kernels run 50.0 % of 1 us (all steps)" in text
    assert "gemm" in text
    assert "... and 1 more (--top 0 shows all)" in text
    assert "relu" in call(capsys, "summary", trace, "--top", 0).out


def test_a_summary_fits_80_columns(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    long = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(...)>"
    make_trace(
        tmp_path / "t", [*SLICES[:2], ("kernel", long, 100, 12_345_678, "stream 7", {"launch": 1})]
    ).close()
    out = call(capsys, "summary", tmp_path / "t").out
    assert max(len(line) for line in out.splitlines() if line.startswith("  ")) <= 80  # tables
    assert "vectorized_e" in out


def test_mfu_of_a_cpu_is_of_the_peak_that_is_given(tmp_path: Path, capsys: Capture) -> None:
    """65.5 kFLOP in a step of 1 ms are 6.6 % of 1 GFLOP/s."""
    shapes = {"ops.shapes": "[[64,32],[32,16]]", "ops.dtypes": '["float","float"]', "parent": 0, "depth": 1}
    make_trace(
        tmp_path / "t",
        [("step", "profrun.step#1", 0, 1_000_000, "main"), ("op", "aten::mm", 10, 90, "main", shapes)],
    ).close()
    out = call(capsys, "summary", tmp_path / "t").out
    assert "matrix work per step 65.54 kFLOP" in out
    assert "no MFU: the peak for fp32 is not known" in out
    peaks = ("--peak", "fp32=0.001", "--peak", "memory_gb_s=10")
    found = call(capsys, "summary", tmp_path / "t", "--json", *peaks).json["step_use"]
    assert found["mfu"] == pytest.approx(0.0655, abs=0.0001)
    assert call(capsys, "summary", tmp_path / "t", "--json").json["step_use"]["mfu"] is None


@pytest.mark.parametrize("peak", ["bf15=3", "bf16", "bf16=many", "bf16=-1"])
def test_a_peak_that_is_none_is_refused(trace: Path, capsys: Capture, peak: str) -> None:
    found = call(capsys, "summary", trace, "--peak", peak)
    assert found.code == 64
    assert "peak" in found.err


def test_energy_and_power_of_a_run(tmp_path: Path, capsys: Capture) -> None:
    """100 steps of 100 ms at 700 W, without a profiler."""
    counter = read_counter(piecewise((-2000, 120), (0, 700), (10_000, 120)), np.arange(-1000, 12_000, 100.0))
    sampled_run(tmp_path / "t", {0: {"energy": counter}}).close()
    out = call(capsys, "summary", tmp_path / "t").out
    assert "energy 70 J per step: 700 W over 100 steady steps (10 s), uncertain by 2.0 %" in out
    assert "GPU 0: 700 W in the run\n" in out
    found = call(capsys, "summary", tmp_path / "t", "--json").json
    assert round(found["energy"]["joules"], 6) == 70
    assert [(one["part"], one["watts_by"]) for one in found["gpu_states"]] == [
        ("window", None),
        ("run", "counter"),
        ("steady", "counter"),
    ]
    assert found["energy_per_work"] == {}


def test_a_run_without_samples_says_nothing_of_energy(trace: Path, capsys: Capture) -> None:
    assert "energy" not in call(capsys, "summary", trace).out
    found = call(capsys, "summary", trace, "--json").json
    assert (found["energy"], found["gpu_states"]) == (None, [])
