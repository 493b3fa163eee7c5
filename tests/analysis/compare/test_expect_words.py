"""What a failed guess says: only kernels are counted as kernels, and nothing alike is said so."""

from __future__ import annotations

from typing import Any

import pytest

from profrun.analysis.compare.expect import check_trace
from profrun.jobs.model import Expectation
from tests.analysis.kit import memory_trace, step

ROWS: list[tuple[Any, ...]] = [
    step(0, 0, 1000),
    ("api", "cudaMemsetAsync", 10, 5, "main"),
    ("api", "cudaMemsetAsync", 20, 5, "main"),
    ("api", "cudaLaunchKernel", 30, 5, "main"),
    ("memset", "Memset (Device)", 50, 5, "stream 7", {"launch": 1}),
    ("memset", "Memset (Device)", 60, 5, "stream 7", {"launch": 2}),
    ("kernel", "my_kernel", 70, 50, "stream 7", {"launch": 3}),
]


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        ("kernels_per_step", (9, 9), "1 a step, most often 1 x my_kernel"),
        ("present", ("triton_*",), "no triton_*, and no name like it"),
        ("present", ("my_kernal",), "no my_kernal; the nearest names are my_kernel"),
    ],
)
def test_a_failed_guess_names_what_was_found(key: str, value: Any, found: str) -> None:
    (check,) = check_trace(memory_trace(ROWS), [Expectation(**{key: value})])
    assert check.passed is False
    assert check.found == found
