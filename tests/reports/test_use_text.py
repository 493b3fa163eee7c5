"""FLOPs, MFU and HFU of a step in words."""

from __future__ import annotations

from dataclasses import replace

from profrun.analysis.rules.step_cost import StepCost
from profrun.analysis.rules.step_use import StepUse, TypeWork
from profrun.contract.denominator import STEP
from profrun.reports.use_text import use_lines

COST = StepCost(recorded_ns=1e6, work_ns=8e5, busy_ns=8e5, denominator=STEP)
USE = StepUse(
    flops=4e11, model_flops=3e11, types=(TypeWork("bf16", 4e11, 3e11, 989.4, None),), step_ns=1e6,
    basis="unprofiled", gpus=1, ranks=1, covered_ns=1e6, matrix_ns=1e6, unknown={}, mfu=0.303, hfu=0.404,
)  # fmt: skip


def test_work_and_shares_with_what_they_are_of() -> None:
    assert use_lines(USE, COST) == [
        "matrix work per step 300 GFLOP, and 100 GFLOP that are computed again",
        "MFU 30.3 %, HFU 40.4 % of the dense bf16 peak (989 TFLOP/s) in 1 ms, without a profiler",
    ]
    clocked = replace(USE, mfu_at_clock=0.36, hfu_at_clock=0.48, clock_mhz=1525.2, clock_readings=3)
    assert use_lines(clocked, COST)[2] == (
        "  at the clock that ran (1525 MHz, 3 readings, up to 200 ms late): MFU 36.0 %, HFU 48.0 %"
    )


def test_what_is_missing_is_said() -> None:
    partly = replace(USE, model_flops=4e11, unknown={"aten::_grouped_mm": 2.0}, basis="profiled")
    first, second = use_lines(partly, COST)
    assert first == (
        "matrix work per step 400 GFLOP; this is a lower bound: the work of 2 ops is not known "
        "(aten::_grouped_mm)"
    )
    assert second.startswith("at least MFU 30.3 %")
    assert second.endswith("in 1 ms, as recorded, under the profiler")
    refused = replace(USE, flops=None, model_flops=None, types=(), mfu=None, hfu=None, missing="no peak")
    assert use_lines(refused, COST) == ["no MFU: no peak"]
    only = replace(USE, model_flops=None, mfu=None, missing="no sequence")
    assert use_lines(only, COST) == [
        "matrix work per step 400 GFLOP",
        "HFU 40.4 % of the dense bf16 peak (989 TFLOP/s) in 1 ms, without a profiler",
        "HFU only: no sequence",
    ]


def test_several_dtypes_and_gpus_are_said() -> None:
    types = (TypeWork("bf16", 3e11, 3e11, 1978.8, None), TypeWork("fp32", 1e11, 1e11, 133.8, None))
    assert use_lines(replace(USE, types=types, gpus=2), COST)[1] == (
        "MFU 30.3 %, HFU 40.4 % of the dense peaks of each dtype (bf16: 75.0 % of the FLOPs, 1979 TFLOP/s, "
        "2 GPUs) in 1 ms, without a profiler"
    )
