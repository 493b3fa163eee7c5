"""Achieved rates of ops against the peaks of their GPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from profrun.analysis.trace.roofline import roofline
from profrun.traces.trace import Trace
from tests.analysis.kit import memory_trace


def test_what_comes_from_caches_has_no_share_of_the_memory() -> None:
    """1 MiB in and out in 100 ns: 21 TB/s, over the 4.8 of an H200."""
    columns = {"ops.shapes": "[[512,512],[]]", "ops.dtypes": '["float","Scalar"]'}
    trace = memory_trace([
        ("op", "aten::relu", 0, 50, "main", columns),
        ("api", "cudaLaunchKernel", 10, 10, "main"),
        ("kernel", "vectorized_elementwise_kernel", 100, 100, "stream 7", {"launch": 1}),
    ])  # fmt: skip
    (row,) = roofline(trace).rows
    assert row.tb_s == pytest.approx(2 * 512 * 512 * 4 / 100 / 1e3)
    assert (row.cached, row.memory_share, row.bound, row.limit_share) == (True, None, None, None)


@pytest.mark.parametrize("name", ["h200/torch/train.json.gz", "h200/torch/transformer.json.gz"])
def test_no_share_of_a_peak_is_over_one(name: str, real: Callable[..., Trace]) -> None:
    for row in roofline(real(name)).rows:
        for share in (row.compute_share, row.memory_share, row.limit_share):
            assert share is None or share <= 1


def test_the_roofline_of_one_matrix_multiply_by_hand() -> None:
    trace = memory_trace(
        [
            ("op", "aten::mm", 0, 20, "main",
             {"ops.shapes": "[[4096, 4096], [4096, 4096]]",
              "ops.dtypes": '["c10::BFloat16", "c10::BFloat16"]'}),
            ("api", "cuLaunchKernelEx", 5, 5, "main"),
            ("kernel", "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT", 50, 200_000, "stream 7",
             {"launch": 1}),
        ]
    )  # fmt: skip
    found = roofline(trace)
    (row,) = found.rows
    assert row.flops == 2 * 4096**3
    assert row.tflops == pytest.approx(687.19, abs=0.01)  # 137 438 953 472 FLOP in 200 us
    assert row.intensity == pytest.approx(4096 / 3)
    assert (row.peak_tflops, row.peak_tb_s, row.bound) == (989.4, 4.8, "compute")
    assert row.compute_share == pytest.approx(687.19 / 989.4, abs=1e-4)
    assert row.limit_share == row.compute_share
    assert found.covered_ns == found.total_ns == 200_000
    half = roofline(trace, peaks={"bf16": 494.7}).rows[0]
    assert half.compute_share == pytest.approx(2 * 687.19 / 989.4, abs=1e-4)


def test_an_unknown_gpu_keeps_everything_but_the_peaks() -> None:
    trace = memory_trace(
        [
            ("op", "aten::mm", 0, 20, "main",
             {"ops.shapes": "[[64, 64], [64, 64]]", "ops.dtypes": '["float", "float"]'}),
            ("api", "cudaLaunchKernel", 5, 5, "main"), ("kernel", "k", 50, 1000, "stream 7", {"launch": 1}),
        ],
        device={"name": "Frobnicator 9"},
    )  # fmt: skip
    found = roofline(trace)
    assert found.peaks == {0: None}
    assert (found.rows[0].peak_tflops, found.rows[0].bound) == (None, None)
    assert found.rows[0].tflops is not None


def test_achieved_rates_on_the_h200_stay_under_the_peaks(real: Callable[..., Trace]) -> None:
    for name in ("matmul_add_4096", "mlp", "transformer_optim"):
        found = roofline(real(f"h200/torch/{name}.json.gz"))
        for row in found.rows:
            assert row.compute_share is None or row.compute_share < 1.0
        best = max(row.compute_share or 0 for row in found.rows)
        assert best > 0.4
