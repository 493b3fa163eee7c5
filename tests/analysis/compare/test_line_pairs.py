"""Which line of an edited file is which line of another run."""

from __future__ import annotations

import pytest

from profrun.analysis.compare.line_pairs import Place, line_pairs
from profrun.contract.source_digests import digests_of

BEFORE = "a\nb\n\nc\nd\n"
"""Lines 1, 2, 4 and 5 do work."""


def pairs(before: str, after: str, file: str = "/me/m.py") -> dict[int, int]:
    """Line of the text after -> line of the text before."""
    a = [Place("/me/m.py", number) for number in (1, 2, 4, 5)]
    b = [Place(file, number) for number, line in enumerate(after.splitlines(), 1) if line]
    digests = {"/me/m.py": digests_of(before)}, {file: digests_of(after)}
    return {new.line: old.line for new, old in line_pairs(a, b, digests).items()}


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (BEFORE, {1: 1, 2: 2, 4: 4, 5: 5}),
        ("a\n\nc\nd\n", {1: 1, 3: 4, 4: 5}),
        ("new\na\nb\n\nc\nd\n", {2: 1, 3: 2, 5: 4, 6: 5}),
        ("a\nchanged\n\nc\n  d\n", {1: 1, 4: 4, 5: 5}),
        ("x\ny\n", {}),
    ],
    ids=["the same", "a line deleted", "a line added", "a line changed, one indented", "another file"],
)
def test_lines_are_found_by_their_text(after: str, expected: dict[int, int]) -> None:
    assert pairs(BEFORE, after) == expected


def test_a_file_elsewhere_is_found_by_the_end_of_its_path() -> None:
    assert pairs(BEFORE, BEFORE, "/you/copy/m.py") == {1: 1, 2: 2, 4: 4, 5: 5}
    assert pairs(BEFORE, BEFORE, "/me/other.py") == {}


def test_two_files_that_fit_equally_are_none() -> None:
    a = [Place("/a/m.py", 1), Place("/b/m.py", 1)]
    assert line_pairs(a, [Place("/c/m.py", 1)], ({}, {})) == {}


def test_without_digests_equal_numbers_are_the_same_line() -> None:
    a, b = [Place("/me/m.py", 1), Place("/me/m.py", 2)], [Place("/me/m.py", 2), Place("/me/m.py", 3)]
    assert line_pairs(a, b, ({}, {})) == {b[0]: a[1]}
    assert line_pairs(a, b, ({"/me/m.py": ("x", "y")}, {})) == {b[0]: a[1]}
