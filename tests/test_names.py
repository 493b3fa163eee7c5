"""Product code outside ``collectors`` and ``contract`` names no profiler: it asks the table of profilers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import ROOT
from tests.test_layout import ROOMS

NAMES = re.compile(r"\b(nsys|ncu|rocprof|rocprofv3|proton)\b")
NEUTRAL = ("timeline", "counters")
"""Only a text that is nothing but one of these is a name: both are words of their own, too."""

OTHER_MEANING = {
    "analysis/trace/timeline_counters.py": "counters is a table of a trace",
    "analysis/trace/readings.py": "counters is a table of a trace",
    "in_job/changes/backends.py": "counters are those of torch._dynamo",
    "cli/export.py": "counters is a table of a trace",
    "reports/timeline_packing.py": "counters are tracks of the timeline",
    "reports/timeline_section.py": "timeline is a place on the page",
    "reports/trace_page.py": "timeline is a place on the page",
    "traces/schema.py": "counters is a table of a trace",
    "traces/writer.py": "counters is a table of a trace",
}

FILES = sorted(
    path.relative_to(ROOT).as_posix()
    for room in ROOMS
    if room not in ("collectors", "contract")
    for path in (ROOT / room).rglob("*.py")
)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of every string in the code that is no docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)
    }  # a string that stands alone says what is above it
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


def named(file: str) -> list[str]:
    """Where a file names a profiler."""
    neutral = () if file in OTHER_MEANING else NEUTRAL
    found = texts(ROOT / file)
    return [f"{file}:{line}: {text!r:.60}" for line, text in found if NAMES.search(text) or text in neutral]


def test_a_profiler_is_named_by_its_own_folder_and_the_contract_only() -> None:
    assert [place for file in FILES for place in named(file)] == []


def test_the_list_holds_files_that_are_there() -> None:
    assert set(FILES) >= OTHER_MEANING.keys()
