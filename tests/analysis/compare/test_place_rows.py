"""What changed by line of the program: moved and deleted lines, shared kernels, work without an address."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from profrun.analysis.compare import ComparedTrial, compare, read_trial
from profrun.analysis.trace.addresses import addresses
from profrun.contract.line_names import Line, line_name
from tests.analysis.kit import memory_trace

FILE = "/me/model.py"


def side(lines: Sequence[tuple[str, int]], lost: int = 0, text: Sequence[str] = "abc") -> ComparedTrial:
    """A trial of two steps in which each of these lines launches a kernel.

    Args:
        lines: (text of the line, us). lost: us of a kernel that no line launched.
        text: the lines of the file.
    """
    rows: list[tuple[Any, ...]] = []
    for number in (0, 1):
        start = number * 10_000_000
        rows.append(("step", f"ProfilerStep#{number}", start, 9_000_000, "main"))
        for place, (line, us) in enumerate(lines):
            at = start + 100 + 1_000_000 * place
            rows.append(
                ("range", line_name(Line(FILE, list(text).index(line) + 1, "forward")), at, 500, "main")
            )
            rows.append(("api", "cudaLaunchKernel", at + 10, 5, "main"))
            rows.append(("kernel", f"k_{line}", at + 50, us * 1000, "stream 7", {"launch": len(rows) - 1}))
        if lost:
            rows.append(("api", "cudaLaunchKernel", start + 8_000_000, 5, "main"))
            rows.append(
                ("kernel", "lost", start + 8_000_100, lost * 1000, "stream 7", {"launch": len(rows) - 1})
            )
    known = [{"file": FILE, "line": at, "digest": word} for at, word in enumerate(text, 1)]
    trace = memory_trace(rows, meta={"job": {"work": {"batch": 8}}}, side={"source_lines": known})
    return read_trial(trace, mapped=addresses(trace))


def told(a: ComparedTrial, b: ComparedTrial, by: Any = "line") -> dict[str, tuple[float, float]]:
    """Label of each row -> us per step of both sides."""
    found = compare([a], [b], by=by, allow=["work"])
    whole = found.sides[1].gpu_ns - found.sides[0].gpu_ns
    assert sum(row.delta_ns for row in found.rows) == pytest.approx(whole)
    return {row.label: (row.a_ns / 1000, row.b_ns / 1000) for row in found.rows}


def test_rows_are_lines_and_add_up() -> None:
    assert told(side([("a", 300), ("b", 100)], lost=7), side([("a", 200), ("b", 100)], lost=9)) == {
        "model.py:1 forward": (300, 200),
        "(no address: no line of the program is round their launch, or in its stack)": (7, 9),
        "model.py:2 forward": (100, 100),
    }


def test_lines_that_moved_are_the_same_and_a_deleted_one_is_removed() -> None:
    before = side([("a", 300), ("b", 100), ("c", 50)])
    after = side([("b", 100), ("c", 50)], text="bc")
    assert told(before, after) == {
        "model.py:1 forward": (300, 0),
        "model.py:2 -> 1 forward": (100, 100),
        "model.py:3 -> 2 forward": (50, 50),
    }


def test_a_new_line_is_no_line_of_the_base() -> None:
    before, after = side([("a", 300)], text="a"), side([("n", 40)], text="n")
    found = compare([before], [after], by="line", allow=["work"])
    assert [(row.name, row.status) for row in found.rows] == [
        ("/me/model.py:1 forward", "removed"),
        ("/me/model.py:1 forward (only in b)", "added"),
    ]


def test_intervals_come_from_the_steps_of_each_trial() -> None:
    a = [side([("a", ns), ("b", 100)]) for ns in (300, 303)]
    b = [side([("a", ns), ("b", 100)]) for ns in (200, 202)]
    row = compare(a, b, by="line").rows[0]
    assert row.ci95 is not None
    assert row.ci95[0] < 200 / 300 < row.ci95[1]
    assert row.status == "faster"


def test_the_time_of_a_deleted_line_has_an_interval() -> None:
    """Student's t with one degree of freedom for two trials: of the mean of 300 and 303 us, and its log."""
    a = [side([("a", us), ("b", 100)], text="ab") for us in (300, 303)]
    b = [side([("b", us)], text="b") for us in (100, 101)]
    row = compare(a, b, by="line", allow=["work"]).rows[0]
    assert (row.label, row.status, row.b_ns) == ("model.py:1 forward", "removed", 0)
    assert row.only_ci95 is not None
    middle, half = math.sqrt(300 * 303), 12.706 * math.log(303 / 300) / 2
    expected = [1000 * middle * math.exp(sign * half) for sign in (-1, 1)]
    assert row.only_ci95 == pytest.approx(expected, rel=1e-4)
    one = compare(a[:1], b[:1], by="line", allow=["work"]).rows[0]
    assert one.only_ci95 is None


def test_modules_are_those_of_the_addresses() -> None:
    assert told(side([("a", 300)], lost=7), side([("a", 200)], lost=7), by="module") == {
        "(no module)": (300, 200),
        "(no address: no line of the program is round their launch, or in its stack)": (7, 7),
    }
