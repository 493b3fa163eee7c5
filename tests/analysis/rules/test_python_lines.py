"""The user's lines round a slice."""

from __future__ import annotations

import numpy as np

from profrun.analysis.rules.python_lines import mapped_lines, python_line, python_lines
from profrun.analysis.trace.addresses import Address, Addresses
from profrun.analysis.trace.frame import frame
from profrun.contract.line_names import Line
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


def test_the_lines_of_a_mapping_are_those_with_most_time() -> None:
    """Kernel 2 is made of lines 3 and 9, kernel 3 of line 9; what is no GPU work tells none."""
    rows = [
        ("step", "ProfilerStep#0", 0, 1000, "main"),
        ("api", "cudaLaunchKernel", 10, 5, "main"),
        ("kernel", "fused", 100, 60, "stream 7", {"launch": 1}),
        ("kernel", "gemm", 200, 50, "stream 7", {"launch": 1}),
        ("kernel", "lost", 300, 50, "stream 7"),
    ]
    source = frame(memory_trace(rows))
    three, nine = Line("/me/m.py", 3, "forward"), Line("/me/m.py", 9, "forward")
    table = (
        Address((three, nine), None, backward=False, via="compiled"),
        Address((nine,), None, backward=False, via="line"),
    )
    of, why = np.array([0, 1, -1]), np.array([-1, -1, 0], dtype=np.int8)
    mapped = Addresses(source.gpu, of, table, why)
    assert mapped_lines(source, mapped, [2, 3, 4, 1]) == ["/me/m.py:9 forward", "/me/m.py:3 forward"]
    assert mapped_lines(source, mapped, [2, 3], most=1) == ["/me/m.py:9 forward"]
    assert mapped_lines(source, mapped, [4, 1]) == []


def test_a_call_that_waits_has_its_line() -> None:
    source = frame(memory_trace([("api", "cudaStreamSynchronize", 0, 5, "main")]))
    nothing = np.zeros(0, dtype=np.int64)
    item = Line("/me/train.py", 9, "train")
    mapped = Addresses(source.gpu, nothing, (), nothing.astype(np.int8), waits={0: item})
    assert mapped_lines(source, mapped, [0]) == ["/me/train.py:9 train"]
