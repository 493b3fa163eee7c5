"""Two timelines above each other as HTML, step on step: what the script needs to draw any two of the page."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from profrun.reports.html import Html, el
from profrun.reports.timeline_section import colours

if TYPE_CHECKING:
    from profrun.reports.content import TraceContent

NOTE = (
    "{} of two recordings on one scale; both begin at 0. Zooming, moving and searching in one "
    "does the same in the other."
)


def aligned_html(traces: Sequence[tuple[str, TraceContent]]) -> Html | None:
    """The choice of two traces, and the place where their timelines are drawn.

    Args:
        traces: (key of its tab, trace) of every trace of the page.

    Returns:
        None where fewer than two traces have a timeline.
    """
    drawn = [(key, content) for key, content in traces if content.timeline is not None]
    if len(drawn) < 2:
        return None
    first, second = _pair(drawn)
    count = Counter(content.tab or content.name for _, content in drawn)
    names = [
        [key, name if count[name] == 1 else f"{name} ({number})"]
        for number, (key, content) in enumerate(drawn, 1)
        for name in [content.tab or content.name]
    ]
    return el(
        "div",
        el("h2", aligned_title(traces)),
        el("p", NOTE.format("A typical step" if _steps(traces) else "The run"), class_="note"),
        colours([content.timeline for _, content in drawn if content.timeline is not None]),
        el("noscript", el("p", "This view needs a browser with JavaScript.")),
        class_="aligned",
        data_aligned=json.dumps(names),
        data_above=drawn[first][0],
        data_below=drawn[second][0],
    )


def aligned_title(traces: Sequence[tuple[str, TraceContent]]) -> str:
    """The title of the view."""
    return "Step on step" if _steps(traces) else "Run on run"


def _steps(traces: Sequence[tuple[str, TraceContent]]) -> bool:
    """Is anything but whole runs drawn?"""
    return any(content.summary.denominator.of != "run" for _, content in traces if content.timeline)


def _pair(drawn: Sequence[tuple[str, TraceContent]]) -> tuple[int, int]:
    """The first two traces of one profiler, because another one costs another time; else the first two."""
    for first, second in itertools.combinations(range(len(drawn)), 2):
        if drawn[first][1].summary.collector == drawn[second][1].summary.collector:
            return first, second
    return 0, 1
