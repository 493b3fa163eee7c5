"""Guesses about time."""

from __future__ import annotations

from typing import Any

from tests.analysis.compare.expect.steps import MS, TWO, ask, gpu_step
from tests.analysis.kit import memory_trace


def test_a_call_that_waits_is_named_with_its_cost() -> None:
    (check,) = ask(memory_trace(gpu_step(1, 0, 0, sync=True)), {"no_sync_in_step": True})
    assert check.answer.passed is False
    assert check.answer.found == "cudaStreamSynchronize 1 times per step (10 ns)"
    assert ask(memory_trace(TWO), {"no_sync_in_step": False}) == []  # false asks for nothing


def test_what_bounds_a_step_is_what_the_diagnosis_says() -> None:
    slices: list[Any] = [("step", "profrun.step#1", 0, 10 * MS, "main")]
    for number in range(4):  # launches 2 ms apart, kernels of 10 us: the GPU waits for the host
        at = number * 2 * MS
        slices.append(("api", "cudaLaunchKernel", at, 1000, "main"))
        slices.append(("kernel", "k", at + 2000, 10_000, "stream 7", {"launch": len(slices) - 1}))
    trace = memory_trace(slices)
    held, failed = (ask(trace, {"bound": word})[0] for word in ("overhead", "compute"))
    assert held.answer.passed is True
    assert failed.answer.passed is False
    assert failed.answer.found.startswith("overhead: ")
