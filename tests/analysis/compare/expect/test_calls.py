"""Claims about calls: how often per step, and what comes right before a kernel's launch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analysis.compare.expect.steps import MS, TWO, ask
from tests.analysis.kit import memory_trace, step

QUERY = "cudaOccupancyMaxActiveBlocksPerMultiprocessor"
LAUNCHES: list[tuple[Any, ...]] = [
    step(0, 0, 1000),
    ("api", QUERY, 10, 5, "main"),
    ("api", "cudaLaunchKernel", 20, 5, "main"),  # 2: the query came before it
    ("api", "cudaLaunchKernel", 30, 5, "main"),  # 3: no query since the launch before
    ("api", QUERY, 35, 2, "other"),  # of another thread
    ("api", "cudaLaunchKernel", 40, 5, "main"),  # 5
    ("kernel", "first", 100, 10, "stream 7", {"launch": 2}),
    ("kernel", "second", 120, 10, "stream 7", {"launch": 3}),
    ("kernel", "third", 140, 10, "stream 7", {"launch": 5}),
    ("api", QUERY, 50, 5, "main"),
    ("api", "cuLaunchKernelEx", 60, 5, "main"),  # 10
    ("kernel", "nvjet_sm90_tst_64x8_64x16_1x4_h_bz_NNT", 160, 10, "stream 7", {"launch": 10}),
]


@pytest.mark.parametrize(
    ("wanted", "passed", "found"),
    [
        ({"first": f"{QUERY}*"}, True, f"{QUERY}* before 1 of 1 launches of first"),
        ({"second": QUERY}, False, f"{QUERY} before 0 of 1 launches of second"),
        ({"third": QUERY}, False, f"{QUERY} before 0 of 1 launches of third"),
        ({"*": QUERY}, False, f"{QUERY} before 2 of 4 launches of *"),
        ({"gemm": QUERY}, True, f"{QUERY} before 1 of 1 launches of gemm"),
        ({"softmax": QUERY}, False, "no launch of softmax"),
    ],
)
def test_what_comes_before_a_launch(wanted: dict[str, str], *, passed: bool, found: str) -> None:
    (check,) = ask(memory_trace(LAUNCHES), {"after": wanted})
    assert (check.answer.passed, check.answer.found) == (passed, found)


def test_a_count_is_of_every_whole_step() -> None:
    """The second step has one more call: a claim about each step fails, and says the range."""
    rows = [*TWO, ("api", "cudaMemsetAsync", 25 * MS, 5, "main")]
    (check,) = ask(memory_trace(rows), {"counts": {"cudaMemset*": (1, 1)}})
    assert (check.answer.passed, check.answer.found) == (False, "cudaMemset* 0 to 1 per step")
    assert ask(memory_trace(rows), {"counts": {"cudaMemset*": (0, 1)}})[0].answer.passed is True


def test_a_recording_without_steps_tells_no_count() -> None:
    """A profiler that replays kernels keeps no steps: six of them would look like one."""
    rows = [("api", "cudaLaunchKernel", 20, 5, "main"), ("kernel", "k", 40, 5, "stream 7", {"launch": 0})]
    (check,) = ask(memory_trace(rows), {"counts": {"k": (1, 1)}})
    assert check.answer.passed is None
    assert (
        check.answer.why == "nothing in this trace is a step or a run, so that nothing can be counted in one"
    )


def test_a_category_says_nothing_without_a_gpu() -> None:
    rows = [step(0, 0, 1000), ("op", "aten::mm", 10, 5, "main")]
    trace = memory_trace(rows, meta={"vendor": "none"})
    assert ask(trace, {"counts": {"gemm": (1, 1)}})[0].answer.why == "no GPU"
    assert ask(trace, {"counts": {"aten::mm": (1, 1)}})[0].answer.passed is True
