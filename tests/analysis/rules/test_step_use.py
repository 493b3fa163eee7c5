"""MFU and HFU of a step: FLOPs against the GPUs' peak, at the datasheet's clock and at the one that ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.step_cost import UnprofiledStep
from profrun.analysis.rules.step_use import StepUse, step_use
from profrun.traces.trace import Trace
from tests.analysis.kit import Row, memory_trace, sm_clocks, step

GEMM = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT"
BF16 = '["c10::BFloat16","c10::BFloat16"]'
N = 4096
FLOPS = 2 * N**3
"""Of one multiply, 137.4 GFLOP: 138.9 us at the 989.4 TFLOP/s of an H200."""
AT_PEAK = FLOPS / 989.4e12 * 1e9


def multiply(
    at: int,
    first: int,
    *,
    op: str = "aten::mm",
    kernel: str = GEMM,
    types: str = BF16,
    sequence: int | None = 1,
    host: str = "main",
    stream: str = "stream 7",
    shapes: str | None = f"[[{N},{N}],[{N},{N}]]",
) -> list[Row]:
    """An op of 10 us, its launch, and its kernel of 200 us; ``first``: rows before it."""
    columns: dict[str, Any] = {"ops.shapes": shapes, "ops.dtypes": types, "ops.sequence": sequence}
    return [
        ("op", op, at, 10_000, host, columns),
        ("api", "cuLaunchKernelEx", at + 2_000, 5_000, host),
        ("kernel", kernel, at + 20_000, 200_000, stream, {"launch": first + 1}),
    ]  # fmt: skip


def steps_of(*ops: Mapping[str, Any], count: int = 2) -> list[Row]:
    """Steps of 1 ms, each with these ops, 250 us apart."""
    rows: list[Row] = []
    for number in range(count):
        start = number * 1_000_000
        rows.append(step(number + 1, start, 1_000_000))
        for place, one in enumerate(ops):
            rows += multiply(start + 1_000 + 250_000 * place, len(rows), **one)
    return rows


def use(rows: Sequence[Row], *, peaks: Mapping[str, float] | None = None, **more: Any) -> StepUse:
    found = step_use(Context(memory_trace(rows, **more)), peaks)
    assert found is not None
    return found


def test_a_step_of_two_multiplies_by_hand() -> None:
    """2 x 138.9 us at the peak in a step of 1 ms: 27.8 %."""
    found = use(steps_of({}, {}))
    assert (found.flops, found.model_flops) == (2 * FLOPS, 2 * FLOPS)
    assert (found.step_ns, found.basis, found.gpus, found.ranks) == (1_000_000, "profiled", 1, 1)
    assert found.mfu == found.hfu == pytest.approx(2 * AT_PEAK / 1e6)
    assert found.mfu == pytest.approx(0.278, abs=0.0005)
    assert (found.mfu_at_clock, found.clock_mhz, found.missing, dict(found.unknown)) == (None, None, "", {})
    (one,) = found.types
    assert (one.dtype, one.peak_tflops) == ("bf16", 989.4)


def test_shares_are_of_the_step_without_a_profiler_where_it_is_known() -> None:
    trace = memory_trace(steps_of({}, {}))
    found = step_use(Context(trace, unprofiled=UnprofiledStep.of([[500_000, 500_000]], "wall")))
    assert found is not None
    assert (found.step_ns, found.basis) == (500_000, "unprofiled")
    assert found.mfu == pytest.approx(2 * AT_PEAK / 5e5)


def test_at_the_clock_that_ran() -> None:
    """1464 MHz is 80 % of the clock at which the peak holds, so the share is 1.25 times as large."""
    found = use(steps_of({}, {}), side=sm_clocks({0: 1464.0, 1_000_000: 1464.0}))
    assert (found.clock_mhz, found.clock_readings) == (1464, 2)
    assert found.mfu is not None
    assert found.mfu_at_clock == pytest.approx(1.25 * found.mfu)
    assert found.hfu_at_clock == found.mfu_at_clock
    idle = use(steps_of({}, {}), side=sm_clocks({0: 345.0}))  # it would be 147 %: read at another moment
    assert (idle.mfu, idle.mfu_at_clock) == (found.mfu, None)


def test_what_is_computed_again_is_in_hfu_only() -> None:
    """A forward, its recomputation in the node of its backward, and the backward's own multiply."""
    rows: list[Row] = []
    for start in (0, 1_000_000):
        rows.append(step(start // 1_000_000 + 1, start, 1_000_000))
        rows += multiply(start + 1_000, len(rows))
        rows.append(("op", "MmBackward0", start + 240_000, 500_000, "main", {"ops.sequence": 1}))
        rows += multiply(start + 250_000, len(rows), sequence=5)
        rows += multiply(start + 500_000, len(rows), sequence=None)
    found = use(rows)
    assert (found.flops, found.model_flops) == (3 * FLOPS, 2 * FLOPS)
    assert found.hfu == pytest.approx(3 * AT_PEAK / 1e6)
    assert found.mfu == pytest.approx(2 * AT_PEAK / 1e6)


def test_each_dtype_has_its_own_peak() -> None:
    """The times at the peaks are added: bf16 at 989.4 and fp32 at 66.9 TFLOP/s."""
    sgemm = {"kernel": "sgemm_64x64_nn", "types": '["float","float"]', "shapes": "[[1024,1024],[1024,1024]]"}
    found = use(steps_of({}, sgemm))
    assert [one.dtype for one in found.types] == ["bf16", "fp32"]
    assert found.mfu == pytest.approx((AT_PEAK + 2 * 1024**3 / 66.9e12 * 1e9) / 1e6)


def test_two_ranks_have_two_gpus() -> None:
    """Each does one multiply per step: FLOPs of both, and the peak of both."""
    rows: list[Row] = []
    for rank in ("", "r1:"):
        rows.append(step(1, 0, 1_000_000, f"{rank}main"))
        rows += multiply(1_000, len(rows), host=f"{rank}main", stream=f"{rank}stream 7")
    found = use(rows, ranks=2)
    assert (found.flops, found.gpus, found.ranks) == (2 * FLOPS, 2, 2)
    assert found.types[0].peak_tflops == 2 * 989.4
    assert found.mfu == pytest.approx(AT_PEAK / 1e6)


@pytest.mark.parametrize("other", [
    {"op": "flash_attn::_flash_attn_forward", "kernel": "flash_fwd_kernel"},
    {"op": "aten::mm", "shapes": None},  # its shapes were not recorded
    {"op": "CompiledFunction", "kernel": "my_triton_kernel_0d1"},  # a kernel whose name tells nothing
])  # fmt: skip
def test_too_much_unknown_work_is_refused(other: dict[str, Any]) -> None:
    """Half of the matrix kernels' time is of unknown work: a share would be too small."""
    found = use(steps_of({}, other))
    assert (found.flops, found.model_flops, found.mfu, found.hfu, found.types) == (None, None, None, None, ())
    assert found.missing == "FLOPs are known of 50.0 % of the GPU time of matrix kernels; 90.0 % are needed"


def test_a_little_unknown_work_makes_it_a_lower_bound() -> None:
    other = {"op": "aten::_grouped_mm", "kernel": "vectorized_elementwise_kernel"}
    found = use(steps_of({}, {}, other))
    assert dict(found.unknown) == {"aten::_grouped_mm": 1}
    assert found.mfu == pytest.approx(2 * AT_PEAK / 1e6)


def test_work_that_launches_nothing_is_not_the_gpus() -> None:
    """A multiply on the CPU beside one on the GPU."""
    rows = steps_of({}, count=1)
    rows.append(("op", "aten::mm", 500_000, 9_000, "main", {"ops.shapes": f"[[{N},{N}],[{N},{N}]]"}))
    assert use(rows).flops == FLOPS


def test_without_a_gpu_or_its_peak_there_are_flops_and_no_share() -> None:
    shapes = {"ops.shapes": "[[64,32],[32,16]]", "ops.dtypes": '["float","float"]'}
    rows: list[Row] = [step(1, 0, 1_000_000), ("op", "aten::mm", 10, 90, "main", shapes)]
    found = use(rows)
    assert (found.flops, found.mfu, found.hfu) == (2 * 64 * 32 * 16, None, None)
    assert found.missing == "the peak for fp32 is not known (--peak gives it)"
    given = use(rows, peaks={"fp32": 0.001, "memory_gb_s": 10})  # 1 GFLOP/s: 65.5 us at the peak
    assert given.mfu == pytest.approx(0.0655, abs=0.0001)
    other = use(steps_of({}), device={"name": "Frobnicator 9"})
    assert (other.flops, other.mfu) == (FLOPS, None)
    assert other.missing == "the peak for bf16 is not known (--peak gives it)"


def test_a_trace_that_cannot_tell_recomputed_work_has_hfu_only() -> None:
    rows = steps_of({"sequence": None}, count=1)
    rows.append(("op", "MmBackward0", 500_000, 9_000, "main"))
    found = use(rows)
    assert (found.mfu, found.model_flops) == (None, None)
    assert found.hfu == pytest.approx(AT_PEAK / 1e6)
    assert "no MFU" in found.missing


@pytest.mark.parametrize("rows", [
    [("op", "aten::relu", 0, 100, "main", {"ops.shapes": "[[4,4]]"}), step(1, 0, 1000)],
    [("op", "aten::mm", 0, 100, "main", {"ops.shapes": "[[4,4],[4,4]]"})],  # no steps
])  # fmt: skip
def test_nothing_is_told_without_matrix_ops_or_steps(rows: list[Row]) -> None:
    trace: Trace = memory_trace(rows)
    assert step_use(Context(trace)) is None
