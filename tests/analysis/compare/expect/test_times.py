"""Guesses about time."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analysis.compare.expect.steps import MS, TWO, ask, gpu_step
from tests.analysis.kit import memory_trace


def test_a_call_that_waits_is_named_with_its_cost() -> None:
    (check,) = ask(memory_trace(gpu_step(1, 0, 0, sync=True)), {"no_sync_in_step": True})
    assert check.answer.passed is False
    assert check.answer.found == "cudaStreamSynchronize 1 times per step (10 ns)"
    assert ask(memory_trace(TWO), {"no_sync_in_step": False}) == []  # false asks for nothing


def host_bound() -> list[Any]:
    """A step with launches 2 ms apart of kernels of 10 us: the GPU waits for the host."""
    slices: list[Any] = [("step", "profrun.step#1", 0, 10 * MS, "main")]
    for number in range(4):
        at = number * 2 * MS
        slices.append(("api", "cudaLaunchKernel", at, 1000, "main"))
        slices.append(("kernel", "k", at + 2000, 10_000, "stream 7", {"launch": len(slices) - 1}))
    return slices


def test_what_bounds_a_step_is_what_the_diagnosis_says() -> None:
    trace = memory_trace(host_bound())
    held, failed = (ask(trace, {"bound": word})[0] for word in ("overhead", "compute"))
    assert held.answer.passed is True
    assert failed.answer.passed is False
    assert failed.answer.found.startswith("overhead: ")


COLD = [
    ("step", f"profrun.step#{number}", at, dur, "main")
    for number, at, dur in ((0, 0, 3), (1, 3, 1), (2, 4, 1))
]
"""Steps on a host alone of which the first takes three times as long: a finding of severity info."""


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (host_bound(), "nothing by dead-window; the findings are host-code"),
        (COLD, "nothing by dead-window; the findings are cold-start"),
        (COLD[1:], "nothing by dead-window, and no other finding"),
    ],
)
def test_what_the_diagnosis_finds_instead_of_a_rule(rows: list[Any], found: str) -> None:
    (check,) = ask(memory_trace(rows), {"finds": ("dead-window",)})
    assert (check.answer.passed, check.answer.found) == (False, found)
