"""The user's lines round a slice."""

from __future__ import annotations

from profrun.analysis.rules.python_lines import python_line, python_lines
from profrun.analysis.trace.frame import frame
from tests.analysis.kit import memory_trace

ROWS = [
    ("python", "train.py(7): fit", 0, 900, "main"),
    ("python", "/lib/torch/nn/functional.py(99): linear", 10, 500, "main"),
    ("python", "<built-in function linear>", 20, 400, "main"),
    ("op", "aten::linear", 30, 100, "main"),  # 3
    ("kernel", "gemm", 1000, 50, "stream 7", {"launch": 3}),  # 4
    ("op", "aten::alone", 950, 10, "main"),  # 5
]


def test_the_line_is_the_users_own_and_not_torchs() -> None:
    source = frame(memory_trace(ROWS))
    assert python_line(source, 3) == "train.py(7): fit"
    assert python_line(source, 5) is None


def test_gpu_work_has_the_line_of_its_launch() -> None:
    source = frame(memory_trace(ROWS))
    assert python_lines(source, [4, 3, 5]) == ["train.py(7): fit"]


def test_without_stacks_there_is_no_line() -> None:
    assert python_lines(frame(memory_trace(ROWS[3:4])), [0]) == []
