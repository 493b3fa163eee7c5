"""Which two timelines stand above each other at first, and when there is such a view."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from profrun.reports.aligned_section import aligned_html
from profrun.reports.content import TraceContent
from profrun.runner.report import trace_content
from tests.reports.documents import parse
from tests.tracekit import make_trace


@pytest.fixture
def content(tmp_path: Path) -> TraceContent:
    with make_trace(tmp_path / "t", [("op", "aten::mm", 0, 5, "main")]) as trace:
        return trace_content(trace, name="<a>")


def by(content: TraceContent, name: str, collector: str) -> TraceContent:
    return replace(content, name=name, summary=replace(content.summary, collector=collector))


@pytest.mark.parametrize(
    ("collectors", "pair"),
    [
        (["torch", "nsys"], ("t0", "t1")),
        (["torch", "nsys", "nsys"], ("t1", "t2")),
        (["a", "b", "a"], ("t0", "t2")),
    ],
)
def test_two_of_one_profiler_come_first(
    content: TraceContent, collectors: list[str], pair: tuple[str, str]
) -> None:
    markup = aligned_html([(f"t{n}", by(content, f"<{n}>", one)) for n, one in enumerate(collectors)])
    assert markup is not None
    (view,) = parse(markup).every("div", class_="aligned")
    assert (view.attributes["data-above"], view.attributes["data-below"]) == pair
    named = json.loads(view.attributes["data-aligned"])
    assert named == [[f"t{n}", f"<{n}>"] for n in range(len(collectors))]


def test_equal_names_are_numbered(content: TraceContent) -> None:
    markup = aligned_html([("t0", content), ("t1", content)])
    assert markup is not None
    (view,) = parse(markup).every("div", class_="aligned")
    assert json.loads(view.attributes["data-aligned"]) == [["t0", "<a> (1)"], ["t1", "<a> (2)"]]


def test_one_timeline_is_not_enough(content: TraceContent) -> None:
    assert aligned_html([("t0", content), ("t1", replace(content, timeline=None))]) is None
