"""Launch-blocking twins: the same kernels or not, counted by launch inside the steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.runner.twins import Kernels, Twins, compare_twins, kernels_of, twins_line
from profrun.store.state import TrialRecord
from tests.tracekit import make_trace

STEP = [
    ("step", "profrun.step#1", 0, 100, "main"),
    ("api", "cudaLaunchKernel", 10, 5, "main", {"parent": 0, "depth": 1}),
    ("api", "cudaLaunchKernel", 20, 5, "main", {"parent": 0, "depth": 1}),
    ("api", "cudaLaunchKernel", 200, 5, "main"),
    ("kernel", "gemm", 50, 10, "stream 7", {"launch": 1}),
    ("kernel", "gelu", 300, 10, "stream 7", {"launch": 2}),  # runs after the step, launched inside it
    ("kernel", "straggler", 60, 10, "stream 8", {"launch": 3}),  # launched outside
]


def _record(trace: Path, blocking: bool, repeat: int = 1, collector: str = "torch") -> TrialRecord:
    return TrialRecord("x", 0, "a", collector, blocking, repeat, "finished", trace, trace=trace)


def test_kernels_count_by_launch(tmp_path: Path) -> None:
    make_trace(tmp_path / "t", STEP).close()
    assert kernels_of(tmp_path / "t") == Kernels(1, {"gemm": 1, "gelu": 1})  # type: ignore[arg-type]


def test_equal_twins_and_different_ones(tmp_path: Path) -> None:
    make_trace(tmp_path / "a", STEP).close()
    make_trace(tmp_path / "b", STEP).close()
    make_trace(tmp_path / "c", [*STEP[:5], STEP[6]]).close()
    same = [_record(tmp_path / "a", False), _record(tmp_path / "b", True)]
    assert compare_twins(same) == [Twins("a", "torch", 1, True, 2, 1)]
    (found,) = compare_twins([*same, _record(tmp_path / "a", False, 2), _record(tmp_path / "c", True, 2)])
    assert (found.equal, found.pairs) == (False, 2)
    assert found.difference == "gelu: 1 times without blocking, 0 with"


def test_what_has_no_twin_is_not_compared(tmp_path: Path) -> None:
    trace = tmp_path / "a"
    alone = [_record(trace, False), _record(trace, True, 2), _record(trace, True, 1, "none")]
    assert compare_twins(alone) == []


@pytest.mark.parametrize(
    ("twins", "line"),
    [
        (Twins("a", "torch", 2, True, 15, 3), "a, torch: the same kernels, 15 in 3 steps (2 pairs)"),
        (
            Twins("a", "torch", 1, None, 0, 3),
            "a, torch: no kernels were recorded, so there are none to compare (1 pair)",
        ),
        (Twins("a", "nsys", 1, False, 5, 1, "x"), "a, nsys: NOT the same kernels: x (1 pair)"),
    ],
)
def test_lines(twins: Twins, line: str) -> None:
    assert twins_line(twins) == line
