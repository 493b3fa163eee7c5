"""Guesses about names."""

from __future__ import annotations

from tests.analysis.compare.expect.steps import MS, TWO, ask
from tests.analysis.kit import memory_trace


def test_present_must_hold_in_every_step() -> None:
    bare = [
        ("step", "profrun.step#0", -20 * MS, 10 * MS, "main"),
        ("op", "aten::mm", -20 * MS + 5, 10, "main"),
    ]
    rows = [*TWO, *bare]
    (check,) = ask(memory_trace(rows), {"present": ("aten::gelu",)})
    assert (check.answer.passed, check.answer.found) == (False, "aten::gelu only in 2 of 3 steps")
    assert ask(memory_trace(rows), {"present": ("aten::mm",)})[0].answer.passed is True
