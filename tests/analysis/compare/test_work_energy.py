"""Energy per token and per gflop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from profrun.analysis.compare.compared_trial import StepWork
from profrun.analysis.compare.work_energy import energy_per_work, per_work
from tests.analysis.sampled_runs import piecewise, read_counter, sampled_run


def test_energy_is_divided_by_the_work_that_is_known() -> None:
    assert per_work(2.0, StepWork()) == {}
    assert per_work(2.0, StepWork(tokens=4)) == {"token": 0.5}
    found = per_work(2.0, StepWork(tokens=4, matrix_flops=8e9))
    assert found == {"token": 0.5, "gflop": pytest.approx(0.25)}


def test_a_trace_that_tells_its_products_tells_energy_per_token(tmp_path: Path) -> None:
    """Steps 5 to 9 are recorded, each with a product of 32 x 64 and 64 x 16; the others are steady."""
    ms = 1_000_000
    rows: list[tuple[object, ...]] = []
    for number in range(5):
        begin, first = (500 + number * 100) * ms, len(rows)
        shapes = {"parent": first, "depth": 1, "ops.shapes": "[[32,64],[64,16]]"}
        rows += [
            ("step", f"profrun.step#{number + 5}", begin, 100 * ms, "main"),
            ("op", "aten::mm", begin + 10, 50_000, "main", shapes),
            ("api", "cudaLaunchKernel", begin + 20, 5_000, "main", {"parent": first + 1, "depth": 2}),
            ("kernel", "sgemm", begin + 100_000, 300_000, "stream 7", {"launch": first + 2}),
        ]
    counter = read_counter(piecewise((-2000, 120), (0, 700), (10_000, 120)), np.arange(-1000, 12_000, 100.0))
    trace = sampled_run(tmp_path / "t", {0: {"energy": counter}}, slices=rows, collector="torch")
    found = energy_per_work(trace)
    assert found["token"] == pytest.approx(70 / 32)
    assert found["gflop"] == pytest.approx(70 / (2 * 32 * 64 * 16 / 1e9))
    assert energy_per_work(sampled_run(tmp_path / "u", {})) == {}
