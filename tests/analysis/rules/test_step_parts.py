"""What the work of a step is made of."""

from __future__ import annotations

import pytest

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.diagnose import diagnosis
from profrun.analysis.rules.step_parts import step_parts
from tests.analysis.kit import Row, memory_trace
from tests.analysis.rules.cases import US, comm

GEMM = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_cublas"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
STEP: list[Row] = [
    ("step", "profrun.step#0", 0, 100, "main"),
    ("api", "cudaLaunchKernel", 0, 1, "main"),
    ("kernel", GEMM, 10, 60, "stream 7", {"launch": 1}),
    ("kernel", ADD, 70, 10, "stream 7", {"launch": 1}),
    ("kernel", "what_is_this", 80, 5, "stream 7", {"launch": 1}),
    ("memcpy", "Memcpy HtoD", 85, 20, "stream 9", {"launch": 1}),
    ("memset", "Memset", 90, 5, "stream 9", {"launch": 1}),
]
HOST: list[Row] = [
    ("step", "profrun.step#0", 0, 100, "main"),
    ("op", "aten::linear", 0, 80, "main", {"parent": 0, "depth": 1}),
    ("op", "aten::addmm", 10, 60, "main", {"parent": 1, "depth": 2}),
]


def test_gpu_work_by_what_it_does_most_first() -> None:
    parts = step_parts(Context(memory_trace(STEP), None, None))
    assert [(one.name, one.side, one.share) for one in parts] == [
        ("fp32 gemm", "gpu", 0.60),
        ("copies", "gpu", 0.20),
        ("elementwise", "gpu", 0.10),
        ("fills", "gpu", 0.05),
        ("other kernels", "gpu", 0.05),
    ]


def test_without_a_gpu_the_operators_by_their_own_time() -> None:
    parts = step_parts(Context(memory_trace(HOST), None, None))
    assert [(one.name, one.side) for one in parts] == [("aten::addmm", "host"), ("aten::linear", "host")]
    assert [one.share for one in parts] == pytest.approx([0.75, 0.25])


def test_a_diagnosis_has_them_with_the_cost_of_the_step() -> None:
    found = diagnosis(memory_trace(STEP))
    assert (found.cost.step_ns, found.cost.work_ns) == (105, 95)  # its GPU work ends at 105
    assert found.parts[0].name == "fp32 gemm"
    assert sum(part.share for part in found.parts) == pytest.approx(1.0)
    assert len(found.gpus) == 1


def test_waiting_for_other_ranks_is_no_work() -> None:
    """The all-reduces of two ranks end together: rank 0's takes 60 us, of which it waits 50 for rank 1."""
    rows: list[Row] = comm(60 * US, 10 * US)
    for place in (3, 7):  # launched by the call of its rank
        rows[place] = (*rows[place][:5], {**rows[place][5], "launch": place - 2})
    found = diagnosis(memory_trace(rows, ranks=2))
    assert found.cost.rank_wait_ns == 25 * US
    assert {part.name: part.share for part in found.parts} == {"bf16 gemm": 115 / 125, "collective": 10 / 125}
