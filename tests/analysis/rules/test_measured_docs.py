"""The pages about what was measured: the worst promise first, and a row per rule."""

from __future__ import annotations

from profrun.analysis.rules.measured import MeasuredRow
from profrun.analysis.rules.measured_docs import measured_page, precision_section

ROWS = [
    MeasuredRow("a", ("H200",), "fp32-gemm", "tf32", 0.5, 0.5, 0.4, (0.38, 0.42), "proven"),
    MeasuredRow("b", (), "fp32-gemm", "tf32", 0.5, 0.5, 0.01, (-0.01, 0.03), "no gain"),
    MeasuredRow("c", (), "memory-bound", "compile=default", None, None, 0.2, (0.1, 0.3), "proven"),
    MeasuredRow("d", (), "fp32-gemm", "tf32", 0.1, 0.1, 0.4, (0.38, 0.42), "proven"),
]


def test_an_exceeded_promise_comes_first_then_those_of_which_most_was_missing() -> None:
    rows = [line for line in measured_page(ROWS).splitlines() if line.startswith("| ")][1:]
    assert [row.split(" | ")[0] for row in rows] == ["| d", "| b", "| a", "| c"]
    assert rows[0] == (
        "| d | none | [fp32-gemm](rules/fp32-gemm.md) | `tf32` | 10.0 % | -40.0 % "
        "| -42.0 % to -38.0 % | proven |"
    )


def test_a_rule_has_one_row() -> None:
    lines = precision_section(ROWS).splitlines()
    assert lines[-3:-1] == [
        "| [fp32-gemm](rules/fp32-gemm.md) | 2 of 3 | 2 of 3 | 0 | 40.0 % | 40.0 % to 40.0 % | 1 | a, b, d |",
        "| [memory-bound](rules/memory-bound.md) | 1 of 1 | 1 of 1 | 0 | 20.0 % | 20.0 % to 20.0 % | 0 | c |",
    ]
    assert precision_section([]) == ""
