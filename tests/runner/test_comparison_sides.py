"""The two sides of a comparison: what their names mean, and which names are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.cli.compare_args import sides_of
from profrun.errors import UsageError
from profrun.runner.references import trace_paths


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "it is there 0 times"),
        (["last/a-none", "last/b-none"], "it is there 0 times"),
        (["x", "vs", "y", "vs", "z"], "it is there 2 times"),
        (["vs", "last/a-none"], "nothing before 'vs'"),
        (["last/a-none", "vs"], "nothing after 'vs'"),
        (["last/a-none", "vs", "last/0"], "is on both sides"),
        (["last/a-none", "last/0", "vs", "last/b-none"], "is named twice on one side"),
    ],
)
def test_wrong_sides_are_said(root: Path, words: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        sides_of(words, root)


def test_sides_are_points_trials_and_folders(root: Path) -> None:
    folder = str(trace_paths("last/6", root)[0])
    sides = sides_of(["last/a-none", "vs", "last/b-none", folder], root)
    assert [label for label, _ in sides.a] == ["000-a-none-r1", "004-a-none-r2"]
    assert [label for label, _ in sides.b] == ["001-b-none-r1", "006-a-none-blocking-r2"]
