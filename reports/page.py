"""The whole HTML report: one document that asks the network for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from profrun.reports.aligned_section import aligned_html, aligned_title
from profrun.reports.change_section import Change, change_html, change_title
from profrun.reports.content import RunContent, TraceContent
from profrun.reports.html import Html, el
from profrun.reports.point_pairs_text import variants_name
from profrun.reports.run_page import run_html
from profrun.reports.trace_page import trace_html

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""With this content security policy the browser fetches nothing from anywhere."""


@dataclass(frozen=True)
class Parts:
    """Style sheets and scripts in ``static/``, in the order in which they are read."""

    styles: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()


EVERY = Parts(("report.css",), ("units.js", "report.js"))
"""Of every page; the others are put only into pages that need them, so that a small report stays small."""
TIMELINE = Parts(
    ("timeline.css",),
    (
        "timeline_data.js",
        "timeline_draw.js",
        "timeline_panel.js",
        "timeline_view.js",
        "timeline_aligned.js",
        "timeline.js",
    ),
)
COMPARISON = Parts(("comparison.css",))
FLAME = Parts(("flame.css",), ("flame_panel.js", "flame.js"))
FOOT = (
    "Times are measured in whole ns; hover a number for its exact value, a column's title for what it is. "
    "This file asks the network for nothing."
)


def report_html(
    title: str,
    traces: Sequence[TraceContent],
    *,
    run: RunContent | None = None,
    changes: Sequence[Change] = (),
    made_by: str,
) -> str:
    """One self-contained HTML document.

    Args:
        title: of the page.
        traces: one tab each.
        run: the run they belong to; its tab comes first.
        changes: comparisons of the run's variants; one tab each after the run's.
        made_by: the program and when, for the foot of the page.
    """
    keys = {content.name: f"t{number}" for number, content in enumerate(traces)}
    tabs = [] if run is None else [("run", "Overview", run_html(run, keys))]
    tabs += _change_tabs(changes)
    for number, content in enumerate(traces):
        key, titled = f"t{number}", len(traces) == 1 and run is None
        tabs.append((key, content.tab or content.name, trace_html(content, key, titled=titled)))
    drawn = [(f"t{number}", content) for number, content in enumerate(traces)]
    aligned = aligned_html(drawn)
    if aligned is not None:
        tabs.append(("aligned", aligned_title(drawn), aligned))
    parts = [EVERY]
    if any(content.timeline is not None for content in traces):
        parts.append(TIMELINE)
    if any(content.calls or content.places for content in traces):
        parts.append(FLAME)
    if changes:
        parts.append(COMPARISON)
    return document(title, *_tabbed(tabs), foot=f"Made by {made_by}. {FOOT}", parts=parts)


def comparison_html(change: Change, *, made_by: str) -> str:
    """One self-contained HTML document of a comparison; of several variants a tab each.

    Args:
        change: both sides.
        made_by: the program and when, for the foot of the page.
    """
    found = change.found
    first = change_title(found, found.variants[0])
    title = first if len(found.variants) == 1 else f"{len(found.variants)} variants compared"
    tabs = _tabbed(_change_tabs([change]))
    return document(title, *tabs, foot=f"Made by {made_by}. {FOOT}", parts=(EVERY, COMPARISON))


def _change_tabs(changes: Sequence[Change]) -> list[tuple[str, str, Html]]:
    """(key, name, content) of a tab for each pair of variants."""
    pairs = [(change, variants) for change in changes for variants in change.found.variants]
    return [
        (f"c{number}", variants_name(variants), change_html(change, variants, f"c{number}"))
        for number, (change, variants) in enumerate(pairs)
    ]


def _tabbed(tabs: Sequence[tuple[str, str, Html]]) -> tuple[Html | None, Html]:
    """The bar of the tabs, and what is on them."""
    return _tab_bar(tabs), el("main", (_panel(key, markup, len(tabs)) for key, _, markup in tabs))


def document(title: str, *body: Html | None, foot: str, parts: Sequence[Parts] = (EVERY,)) -> str:
    """A page with its title, styles and scripts.

    Args:
        title: of the page.
        body: what stands below the title.
        foot: text at the end of the page.
        parts: what it needs of ``static/``.
    """
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("title", title),
        el("link", rel="icon", href="data:,"),
        (el("style", Html(_static(name))) for part in parts for name in part.styles),
    )
    top = el("header", el("h1", title), class_="top")
    scripts = (el("script", Html(_static(name))) for part in parts for name in part.scripts)
    page = el("body", top, body, el("footer", foot), scripts)
    return "<!doctype html>\n" + el("html", head, page, lang="en") + "\n"


def _tab_bar(tabs: Sequence[tuple[str, str, Html]]) -> Html | None:
    """Links to the tabs: they work without the script, too, which shows one tab at a time."""
    if len(tabs) < 2:
        return None
    links = []
    for place, (key, name, _) in enumerate(tabs):
        state = {"aria_controls": key, "aria_selected": "false" if place else "true"}
        links.append(el("a", name, href=f"#{key}", role="tab", id=f"tab-{key}", **state))
    return el("div", el("div", links, class_="tabs", role="tablist", aria_label="tabs"), class_="tabbar")


def _panel(key: str, markup: Html, count: int) -> Html:
    if count < 2:
        return el("div", markup, id=key)
    return el("div", markup, id=key, role="tabpanel", aria_labelledby=f"tab-{key}")


def _static(name: str) -> str:
    return (files("profrun.reports") / "static" / name).read_text(encoding="utf-8")
