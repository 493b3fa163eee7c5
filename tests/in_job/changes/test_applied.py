"""What is said of one change."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from profrun.contract.changes import parse
from profrun.in_job.changes.applied import Applied
from tests.in_job.changes.conftest import Programs


def test_a_change_that_does_not_exist_is_told_and_the_others_are_made(programs: Programs) -> None:
    answer = programs.run("faster", "set-to-none", code="torch.nn.Linear(1, 1).zero_grad(False)")
    assert answer.findings == [
        (
            "change-failed",
            "faster failed, and the program went on without it: ValueError: there is no change 'faster'",
        ),
        ("change-applied", "set-to-none: 1 call of zero_grad() removed the gradients"),
    ]


class Loaders(Applied):
    """A change that says how many things it counted."""

    nothing = "there was nothing"

    def told(self) -> str:
        return f"{self.count} things"


def made() -> tuple[Loaders, list[str]]:
    """A change, and what it has told already."""
    told: list[str] = []
    process: Any = SimpleNamespace(warn=lambda finding: told.append(finding.why))
    return Loaders(parse("loader-workers=2"), process), told


def test_the_first_three_reasons_are_told_each_once_and_not_too_long() -> None:
    change, _told = made()
    assert change.finding().why == "there was nothing"  # type: ignore[union-attr]
    for why in ("one", "one", "two\n  lines", "x" * 1000, "four"):
        change.skip(why)
    finding = change.finding()
    assert finding is not None
    assert finding.why == f"one; two lines; {'x' * 300}"


def test_an_error_is_told_once_and_says_more_than_that_nothing_was_changed() -> None:
    change, told = made()
    change.failed(ValueError("a\nb"))
    change.failed(ValueError("c"))
    assert told == ["ValueError: a b"]
    assert change.finding() is None
    change.count = 2
    assert str(change.finding()) == "loader-workers=2: 2 things"
