"""What is no finding: set-up work outside the steps, waiting collectives, blocking launches, near ties."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from profrun.analysis.diagnose import Finding, diagnose
from profrun.traces.trace import Trace
from tests.analysis.kit import Row, memory_trace
from tests.analysis.rule_cases import ADD, BLOCKED, NCCL, NVJET, SOFTMAX, US, gpu, grid

# Before the first step: a copy longer than all steps, and a chain of point-wise kernels.
SETUP: list[Row] = [
    ("memcpy", "Memcpy HtoD", -5000 * US, 4000 * US, "stream 7", {"copies.direction": "HtoD"}),
    ("kernel", ADD, -900 * US, 300 * US, "stream 7"),
    ("kernel", ADD, -500 * US, 300 * US, "stream 7"),
]


def ask(rows: Sequence[Row], rule: str, name: str = "") -> list[Finding]:
    return [one for one in diagnose(memory_trace(rows)) if one.rule == rule and name in one.message]


@pytest.mark.parametrize("rule", ["copies-not-overlapped", "pointwise-chains", "memory-bound"])
def test_set_up_outside_the_steps_is_no_finding_of_the_steps(rule: str) -> None:
    assert ask([*gpu([(NVJET, 10 * US, 85 * US)]), *SETUP], rule) == []


def test_what_bounds_the_steps_is_told_from_their_own_work() -> None:
    (found,) = ask([*gpu([(NVJET, 10 * US, 85 * US)]), *SETUP], "compute-bound")
    assert found.evidence["compute_share"] == 1.0


def test_a_recording_without_steps_has_no_rate_a_step() -> None:
    rows = [("kernel", ADD, at * 10 * US, 9 * US, "stream 7") for at in range(4)]
    (found,) = ask(rows, "pointwise-chains")
    assert "(1 in all, the longest of 4)" in found.message


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
    assert "beside GEMMs (no ops are recorded)" in found.message
    assert found.evidence["bmm_calls"] is None
    waits: list[Row] = [*rows, ("api", "cudaStreamSynchronize", 50 * US, 20 * US, "main")]
    (sync,) = ask(waits, "explicit-sync")
    assert "the program or an op of it (none is recorded)" in sync.message


def test_the_h200_recordings_by_nsys(real: Callable[..., Trace]) -> None:
    """Their set-up (weights copied, five warm-up steps) lies outside the step ranges."""
    found = {one.rule: one.message for one in diagnose(real("h200/nsys/mlp.sqlite"))}
    assert "copies-not-overlapped" not in found
    assert "10 chains of point-wise kernels (1 a step, the longest of 2)" in found["pointwise-chains"]
