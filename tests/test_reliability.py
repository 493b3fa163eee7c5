"""docs/reliability.md: every promise names a test, and every named test exists."""

from __future__ import annotations

import ast
import re

import pytest

from tests.conftest import ROOT

PAGE = ROOT / "docs" / "reliability.md"
ROW = re.compile(r"^\| (?P<promise>[^|]+) \| (?P<tests>[^|]+) \|$")
NODE = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def rows() -> list[tuple[str, str]]:
    """Promise and its tests, of each row of the page, without heads of tables."""
    found = [match for line in PAGE.read_text(encoding="utf-8").splitlines() if (match := ROW.match(line))]
    return [(row["promise"], row["tests"]) for row in found if row["promise"] != "promise"]


def functions(file: str) -> set[str]:
    """Names of the functions that a test file defines, also in classes."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize(("promise", "tests"), rows())
def test_the_tests_of_a_promise_exist(promise: str, tests: str) -> None:
    named = NODE.findall(tests)
    assert named, f"no test is named for: {promise}"
    assert [f"{file}::{name}" for file, name in named if name not in functions(file)] == []


def test_every_row_of_the_page_is_read() -> None:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert len(lines) - len([line for line in lines if line.startswith("| promise ")]) == len(rows())
