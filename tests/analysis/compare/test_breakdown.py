"""Rows by something else than the kernel."""

from __future__ import annotations

from profrun.analysis.compare import ComparedTrial, compare, read_trial
from tests.analysis.kit import memory_trace, step


def test_rows_without_a_gpu_are_self_cpu_time_and_add_up_to_the_step() -> None:
    def side(inner: int) -> ComparedTrial:
        rows = [
            step(1, 0, 1000),
            ("range", "forward", 100, 800, "main"),
            ("op", "aten::linear", 200, 500, "main"),
            ("op", "aten::addmm", 250, inner, "main"),
        ]
        return read_trial(memory_trace(rows, meta={"vendor": "none", "job": {"work": {"batch": 8}}}))

    found = compare([side(300)], [side(350)])
    assert found.sides[0].work.kernels == 0
    rows = {row.name: (row.a_ns, row.b_ns, row.basis) for row in found.rows}
    assert rows == {
        "(step)": (200, 200, "cpu"),
        "forward": (300, 300, "cpu"),
        "aten::linear": (200, 150, "cpu"),
        "aten::addmm": (300, 350, "cpu"),
    }
    assert found.total_delta_ns == 0
    assert found.unexplained_ns == 0
