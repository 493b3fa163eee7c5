"""docs/support-matrix.md says what normalize answers, file by file."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, need_tool, shared_data
from tests.support.matrix import Entry, entries, row

PAGE = ROOT / "docs" / "support-matrix.md"
FRESH = "run: python -m tests.support.matrix --write docs/support-matrix.md"


@cache
def _written() -> dict[str, str]:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return {line.split(" | ")[0].removeprefix("| "): line for line in lines}


def _format(label: str) -> str:
    """A format's name as the page has it; refusals by how they begin."""
    answer = _written().get(label, f"{label} | ").split(" | ")[1]
    return " ".join(answer.split()[:1] + answer.split()[2:5]) if answer.startswith("refused") else answer


@cache
def _smallest() -> set[str]:
    """The smallest files of six formats: normalised in every run of the tests, all others when thorough."""
    smallest: dict[str, Entry] = {}
    for entry in entries():
        kind = _format(entry.label)
        if not entry.needs_nsys and (kind not in smallest or entry.size < smallest[kind].size):
            smallest[kind] = entry
    few = sorted(smallest.values(), key=lambda entry: entry.size)[:6]
    return {entry.label for entry in few}


def _marked(entry: Entry) -> Any:
    marks = []
    if entry.needs_nsys:
        marks.append(pytest.mark.nsys)
    elif entry.label not in _smallest():
        marks.append(pytest.mark.thorough)
    return pytest.param(entry, id=entry.label, marks=marks)


def test_the_page_lists_every_file() -> None:
    shared_data("MANIFEST.nvidia.md")
    listed = set(_written()) - {"file"}
    assert listed == {entry.label for entry in entries()}, FRESH


@pytest.mark.parametrize("entry", [_marked(entry) for entry in entries()])
def test_the_page_is_what_normalize_answers(entry: Entry, tmp_path: Path) -> None:
    if entry.needs_nsys:
        need_tool("nsys")
    assert _written()[entry.label] == row(entry, tmp_path), FRESH
