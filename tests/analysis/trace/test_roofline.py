"""Achieved rates of ops against the peaks of their GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from profrun.analysis.trace.roofline import roofline
from profrun.traces.trace import Trace
from tests.analysis.kit import Row, memory_trace, sm_clocks


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


MATMUL: Row = (
    "op", "aten::mm", 0, 20, "main",
    {"ops.shapes": "[[4096, 4096], [4096, 4096]]", "ops.dtypes": '["c10::BFloat16", "c10::BFloat16"]'},
)  # fmt: skip
GEMM = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT"


def clocked(*kernels: tuple[int, int], clocks: Mapping[int, float], device: str = "NVIDIA H200") -> Trace:
    """Matrix multiplies of 4096 in bf16 on an H200, and readings of its clock.

    Args:
        kernels: start and duration of each kernel, ns. clocks: time -> MHz that is read then.
    """
    rows: list[Row] = []
    for number, (ts, dur) in enumerate(kernels):
        op, at = MATMUL, 40 * number
        rows += [
            (*op[:2], at, *op[3:]),
            ("api", "cuLaunchKernelEx", at + 5, 5, "main"),
            ("kernel", GEMM, ts, dur, "stream 7", {"launch": 3 * number + 1}),
        ]
    return memory_trace(rows, side=sm_clocks(clocks), device={"name": device})


def test_the_peak_is_that_of_the_clock_that_ran() -> None:
    """A kernel of 200 us at 1400 MHz, another half at 1400, half at 1800: the mean is 1500 MHz.

    The peak of 989.4 TFLOP/s holds at 1830 MHz: at 1500 it is 811.0.
    """
    trace = clocked(
        (1_000_000, 200_000), (2_000_000, 200_000), clocks={0: 1400, 2_100_000: 1800, 9_000_000: 900}
    )
    (row,) = roofline(trace).rows
    assert row.tflops == pytest.approx(687.19, abs=0.01)
    assert (row.clock_mhz, row.clock_readings) == (1500.0, 2)
    assert row.peak_tflops == 989.4
    assert row.compute_share == pytest.approx(687.19 / 989.4, abs=1e-4)
    assert row.peak_tflops_at_clock == pytest.approx(989.4 * 1500 / 1830)
    assert row.compute_share_at_clock == pytest.approx(687.19 / 810.98, abs=1e-4)
    assert (row.limit_share, row.limit_at) == (row.compute_share_at_clock, "clock that ran")


def test_above_the_boost_clock_the_peak_is_above_the_datasheets() -> None:
    """An H200 runs at 1980 MHz; at the clock of its peak, 1830, nothing differs from the datasheet."""
    (fast,) = roofline(clocked((1_000_000, 200_000), clocks={0: 1980})).rows
    assert fast.peak_tflops_at_clock == pytest.approx(1070.5, abs=0.1)
    assert fast.compute_share is not None
    assert fast.compute_share_at_clock == pytest.approx(fast.compute_share * 1830 / 1980)
    (same,) = roofline(clocked((1_000_000, 200_000), clocks={0: 1830})).rows
    assert same.compute_share_at_clock == pytest.approx(same.compute_share)


@pytest.mark.parametrize(
    ("clocks", "device", "mhz"),
    [
        ({}, "NVIDIA H200", None),
        ({1_300_000: 1500.0}, "NVIDIA H200", None),  # the first reading comes after the kernel
        ({0: 1900.0}, "NVIDIA B200", 1900.0),  # at which clock its peak holds is not known
        ({0: 345.0}, "NVIDIA H200", 345.0),  # of an idle GPU, read late: the share would be 368 %
    ],
)
def test_without_the_clock_that_ran_shares_are_of_the_datasheet(
    clocks: dict[int, float], device: str, mhz: float | None
) -> None:
    (row,) = roofline(clocked((1_000_000, 200_000), clocks=clocks, device=device)).rows
    assert (row.clock_mhz, row.peak_tflops_at_clock, row.compute_share_at_clock) == (mhz, None, None)
    assert (row.limit_share, row.limit_at) == (row.compute_share, "datasheet")


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
