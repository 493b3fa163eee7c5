"""Guesses about kernels: how many, of which type."""

from __future__ import annotations

import pytest

from tests.analysis.compare.expect.steps import HALF, MS, TWO, ask, gpu_step
from tests.analysis.kit import memory_trace

SINGLE = "ampere_sgemm_128x64_tn"


@pytest.mark.parametrize(("known", "passed"), [(96, True), (80, None), (4, None)])
def test_a_type_that_most_names_do_not_tell_is_not_held(known: int, passed: bool | None) -> None:
    rows = [
        ("step", "profrun.step#0", 0, 1000, "main"),
        ("api", "cudaLaunchKernel", 1, 1, "main"),
        ("kernel", HALF, 10, known, "stream 7", {"launch": 1}),
        ("api", "cudaLaunchKernel", 3, 1, "main"),
        ("kernel", "gemm_of_any_type", 200, 100 - known, "stream 7", {"launch": 3}),
    ]
    (check,) = ask(memory_trace(rows), {"dtype": "fp16"})
    assert check.answer.passed is passed
    assert f"{100 - known}.0 %" in check.answer.found
    assert ask(memory_trace(rows), {"dtype": "bf16"})[0].answer.passed is False  # what is known differs


def test_the_wrong_type_is_named() -> None:
    (check,) = ask(memory_trace(gpu_step(1, 0, 0, gemm=SINGLE)), {"dtype": "fp16"})
    assert (check.answer.passed, check.answer.found) == (False, "fp32 100.0 % of matrix kernel time")


def test_a_step_cut_off_by_the_window_is_not_asked() -> None:
    """The last step launched nothing: its work is not in the window, and its kernels are not counted."""
    rows = [*TWO, ("step", "profrun.step#3", 40 * MS, 10 * MS, "main")]
    (check,) = ask(memory_trace(rows), {"kernels_per_step": (2, 2)})
    assert (check.answer.passed, check.answer.found) == (True, "2 in each of 2 steps")
