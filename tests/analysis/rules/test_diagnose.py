"""What is no finding: set-up work outside the steps, waiting collectives, blocking launches, near ties."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from profrun.analysis.rules.diagnose import RuleFinding, diagnose
from profrun.traces.trace import Trace
from tests.analysis.kit import Row, memory_trace
from tests.analysis.rules.cases import ADD, BLOCKED, NCCL, NVJET, SOFTMAX, US, gpu, grid

# Before the first step: a copy longer than all steps, and a chain of point-wise kernels.
SETUP: list[Row] = [
    ("memcpy", "Memcpy HtoD", -5000 * US, 4000 * US, "stream 7", {"copies.direction": "HtoD"}),
    ("kernel", ADD, -900 * US, 300 * US, "stream 7"),
    ("kernel", ADD, -500 * US, 300 * US, "stream 7"),
]


def ask(rows: Sequence[Row], rule: str, name: str = "") -> list[RuleFinding]:
    return [one for one in diagnose(memory_trace(rows)) if one.code == rule and name in one.what]


@pytest.mark.parametrize("rule", ["copies-not-overlapped", "pointwise-chains", "memory-bound"])
def test_set_up_outside_the_steps_is_no_finding_of_the_steps(rule: str) -> None:
    assert ask([*gpu([(NVJET, 10 * US, 85 * US)]), *SETUP], rule) == []


def test_what_bounds_the_steps_is_told_from_their_own_work() -> None:
    (found,) = ask([*gpu([(NVJET, 10 * US, 85 * US)]), *SETUP], "compute-bound")
    assert found.evidence["compute_share"] == 1.0


def test_a_recording_without_steps_has_no_rate_a_step() -> None:
    rows = [("kernel", ADD, at * 10 * US, 9 * US, "stream 7") for at in range(4)]
    (found,) = ask(rows, "pointwise-chains")
    assert "(1 in all, the longest of 4)" in found.what


@pytest.mark.parametrize("rule", ["few-blocks", "dominant-kernel"])
def test_a_collective_uses_few_blocks_and_waits_by_design(rule: str) -> None:
    work = [(NCCL, 10 * US, 60 * US), (ADD, 75 * US, 5 * US)]
    assert ask(gpu(work, columns=grid(24)), rule, "AllReduce") == []
    assert ask(gpu([(NCCL, 10 * US, 80 * US)], columns=grid(24)), rule) == []


def test_a_near_tie_has_no_dominant_kernel() -> None:
    assert ask(gpu([(NVJET, 10 * US, 31 * US), (ADD, 45 * US, 30 * US)]), "dominant-kernel") == []
    assert ask(gpu([(NVJET, 10 * US, 46 * US), (ADD, 60 * US, 30 * US)]), "dominant-kernel")


def test_utilization_under_blocking_launches_is_not_the_programs() -> None:
    assert ask(BLOCKED, "low-utilization") == []
    assert ask(BLOCKED, "launch-blocking")


def test_without_op_records_nobody_is_blamed_by_name() -> None:
    rows = gpu([(NVJET, 10 * US, 20 * US), (SOFTMAX, 40 * US, 5 * US)])
    (found,) = ask(rows, "unfused-attention")
    assert "beside GEMMs (no ops are recorded)" in found.what
    assert found.evidence["bmm_calls"] is None
    waits: list[Row] = [*rows, ("api", "cudaStreamSynchronize", 50 * US, 20 * US, "main")]
    (sync,) = ask(waits, "explicit-sync")
    assert "the program or an op of it (none is recorded)" in sync.what


def test_a_recording_without_steps_is_not_judged_as_hard() -> None:
    idle = [("range", *row[1:]) if row[0] == "step" else row for row in gpu([(ADD, 10 * US, 4 * US)])]
    found = {one.code: one for one in diagnose(memory_trace(idle))}
    assert found["overhead-bound"].severity == found["low-utilization"].severity == "info"
    assert "of the recording" in found["overhead-bound"].what
    assert "set-up counts too" in found["overhead-bound"].what
    assert not {"launches_per_step", "step_ns"} & set(found["overhead-bound"].evidence)


def test_a_gpu_that_copies_all_the_time_is_not_idle() -> None:
    rows = gpu([(ADD, 10 * US, 4 * US)])
    assert ask(rows, "low-utilization")
    copy = ("memcpy", "Memcpy HtoD", 15 * US, 280 * US, "stream 8", {"copies.direction": "HtoD"})
    assert ask([*rows, copy], "low-utilization") == []


def test_a_cost_that_no_step_feels_is_for_information() -> None:
    small = gpu([(ADD, 10 * US, US), (ADD, 12 * US, US)], columns=grid(8))
    for rule in ("pointwise-chains", "few-blocks"):
        assert ask(small, rule)[0].severity == "info"
    large = gpu([(ADD, 10 * US, 30 * US), (ADD, 50 * US, 30 * US)], columns=grid(8))
    for rule in ("pointwise-chains", "few-blocks"):
        assert ask(large, rule)[0].severity == "warning"


def test_kernels_of_a_graph_have_paid_their_launch_already() -> None:
    tiny = [(ADD, 6 * US + at * 5 * US, 2 * US) for at in range(12)]
    assert ask(gpu(tiny), "tiny-kernels")
    graphed = [(kind, "cudaGraphLaunch" if kind == "api" else name, *rest) for kind, name, *rest in gpu(tiny)]
    assert ask(graphed, "tiny-kernels") == []


def test_grids_of_few_kernels_say_nothing_of_all() -> None:
    rows = gpu([(ADD, 10 * US, 5 * US)], columns=grid(8))
    rows.append(("kernel", NVJET, 400 * US, 100 * US, "stream 7"))
    assert ask(rows, "few-blocks") == []


def test_threads_that_wait_together_wait_once() -> None:
    """Two threads wait 60 us each for the same 60 us: 60 % of the step, not 120 %."""
    rows = gpu([(NVJET, 10 * US, 60 * US)], count=1)
    rows += [("api", "cudaDeviceSynchronize", 20 * US, 60 * US, lane) for lane in ("main", "loader")]
    (found,) = ask(rows, "explicit-sync")
    assert found.evidence["total_ns"] == 60 * US
    assert found.evidence["share"] == 0.6


def test_the_line_to_blame_is_the_programs_not_torchs() -> None:
    rows = gpu([(NVJET, 10 * US, 60 * US)], count=1)
    rows += [
        ("python", "train.py(12): step", 15 * US, 80 * US, "main"),
        ("python", "torch/cuda/__init__.py(975): synchronize", 18 * US, 70 * US, "main"),
        ("api", "cudaDeviceSynchronize", 20 * US, 60 * US, "main"),
    ]
    (found,) = ask(rows, "explicit-sync")
    assert "at train.py(12): step" in found.what


def test_steps_that_differ_show_the_fullest() -> None:
    rows = [*gpu([(NVJET, 10 * US, 60 * US)], count=2), ("step", "profrun.step#2", 200 * US, 9 * US, "main")]
    (found,) = ask(rows, "kernel-mix")
    assert found.what == "1 kernels in the fullest of 3 steps, 0 in the emptiest: 1 gemm"


def test_the_h200_recordings_by_nsys(real: Callable[..., Trace]) -> None:
    """Their set-up (weights copied, five warm-up steps) lies outside the step ranges."""
    found = {one.code: one.what for one in diagnose(real("h200/nsys/mlp.sqlite"))}
    assert "copies-not-overlapped" not in found
    assert "10 chains of point-wise kernels (1 per step, the longest of 2)" in found["pointwise-chains"]
