"""GPU work by line and by module: what each row holds, and that all of it adds up."""

from __future__ import annotations

from typing import Any

import pytest

from profrun.analysis.trace.addresses import addresses
from profrun.analysis.trace.frame import frame
from profrun.analysis.trace.line_table import OUTSIDE, PlaceTable, place_table
from profrun.contract.line_names import Line, line_name
from profrun.reports.place_text import row_name
from tests.analysis.kit import memory_trace
from tests.analysis.trace.test_addresses import GENERATED, A, B, behind

ROWS: list[tuple[Any, ...]] = [
    ("step", "ProfilerStep#0", 0, 1000, "main"),
    ("range", line_name(B), 10, 900, "main"),
    ("range", "nn.Module: mlp (MLP)", 20, 400, "main"),
    ("range", line_name(A), 30, 100, "main"),
    ("api", "cudaLaunchKernel", 50, 5, "main"),
    ("range", line_name(GENERATED), 150, 100, "main"),
    ("api", "cuLaunchKernel", 160, 5, "main"),
    ("api", "cudaLaunchKernel", 800, 5, "main"),
    ("kernel", "gemm", 100, 500, "stream 7", {"launch": 4}),
    ("kernel", "triton_poi_fused_gelu_0", 600, 200, "stream 7", {"launch": 6}),
    ("kernel", "adam", 850, 100, "stream 7", {"launch": 7}),
    ("kernel", "lost", 950, 50, "stream 7"),
]
"""850 ns of 3 kernels in the step: 500 of A, 200 that A and B share, 100 of B; one kernel is of no step."""


def table(by: Any) -> PlaceTable:
    trace = memory_trace(ROWS, side={"generated": behind("triton_poi_fused_gelu_0:4", [A], [B])})
    found = addresses(trace)
    assert found is not None
    return place_table(frame(trace), found, by)


def test_time_that_lines_share_counts_once() -> None:
    found = table("line")
    rows = [(row.place, row.gpu_ns, row.shared_ns, row.launches, row.kernels) for row in found.rows]
    assert rows == [
        (A, 600.0, 100.0, 2, ("gemm", "triton_poi_fused_gelu_0")),
        (B, 200.0, 100.0, 2, ("adam", "triton_poi_fused_gelu_0")),
    ]
    assert (found.gpu_ns, found.steps, found.unresolved, found.resolved) == (800, 1, {}, 1.0)
    assert sum(row.share for row in found.rows) == pytest.approx(1)


def test_modules_have_the_work_that_was_launched_inside() -> None:
    assert [(row.place, row.gpu_ns) for row in table("module").rows] == [("mlp", 700.0), (OUTSIDE, 100.0)]


def test_modules_that_differ_in_a_number_are_one_row() -> None:
    """``layers.0.mlp`` and ``layers.1.mlp``; a name that stands alone keeps its number."""
    names = ("layers.0.mlp", "layers.1.mlp", "layers.0.mlp", "head.0")
    rows: list[tuple[Any, ...]] = [("step", "ProfilerStep#0", 0, 1000, "main")]
    for at, name in enumerate(names):
        start = 100 * (at + 1)
        rows.append(("range", f"nn.Module: {name} (MLP)", start, 90, "main"))
        rows.append(("range", line_name(A), start + 10, 50, "main"))
        rows.append(("api", "cudaLaunchKernel", start + 20, 5, "main"))
    rows += [
        ("kernel", "gemm", 100 * at + 130, 10 * (at + 1), "stream 7", {"launch": 3 * at + 3})
        for at in range(len(names))
    ]
    trace = memory_trace(rows)
    found = addresses(trace)
    assert found is not None
    made = place_table(frame(trace), found, "module")
    assert [(row.place, row.modules, row.launches, row.gpu_ns) for row in made.rows] == [
        ("layers.*.mlp", 2, 3, 60),
        ("head.0", 1, 1, 40),
    ]
    assert row_name(made.rows[0]) == "layers.*.mlp, 2 modules"


def test_work_without_an_address_is_told_by_its_reason() -> None:
    trace = memory_trace(ROWS)
    found = addresses(trace)
    assert found is not None
    made = place_table(frame(trace), found, "line")
    assert made.unresolved == {"generated": 200}
    assert made.resolved == pytest.approx(0.75)
    assert sum(row.gpu_ns for row in made.rows) + sum(made.unresolved.values()) == made.gpu_ns


def test_no_line_is_another_lines() -> None:
    """Two lines of one file are two rows."""
    assert Line("/a.py", 1, "f") != Line("/a.py", 2, "f")
