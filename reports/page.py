"""The whole HTML report: one document that asks the network for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from profrun.reports.aligned_section import aligned_html
from profrun.reports.content import RunContent, TraceContent
from profrun.reports.html import Html, el
from profrun.reports.run_page import run_html
from profrun.reports.trace_page import trace_html

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""With this content security policy the browser fetches nothing from anywhere."""
STYLES = ("report.css",)
SCRIPTS = ("units.js", "report.js")
"""Style sheets and scripts of every page, in the order in which they run."""
TIMELINE_STYLES = ("timeline.css",)
TIMELINE_SCRIPTS = (
    "timeline_data.js",
    "timeline_draw.js",
    "timeline_panel.js",
    "timeline_view.js",
    "timeline_aligned.js",
    "timeline.js",
)
"""Those of the timeline, only where there is one: a small report stays small."""


def report_html(
    title: str, traces: Sequence[TraceContent], *, run: RunContent | None = None, made_by: str
) -> str:
    """One self-contained HTML document.

    Args:
        title: of the page.
        traces: one tab each.
        run: the run they belong to; its tab comes first.
        made_by: the program and when, for the foot of the page.
    """
    tabs = [] if run is None else [("run", "Run", run_html(run))]
    for number, content in enumerate(traces):
        key, titled = f"t{number}", len(traces) == 1 and run is None
        tabs.append((key, content.name, trace_html(content, key, titled=titled)))
    aligned = aligned_html([(f"t{number}", content) for number, content in enumerate(traces)])
    if aligned is not None:
        tabs.append(("aligned", "Step on step", aligned))
    timeline = any(content.timeline is not None for content in traces)
    styles = (*STYLES, *(TIMELINE_STYLES if timeline else ()))
    scripts = (*SCRIPTS, *(TIMELINE_SCRIPTS if timeline else ()))
    foot = (
        f"Made by {made_by}. Times are measured in whole ns; hover a number for its exact value, a column's "
        "title for what it is. This file asks the network for nothing."
    )
    body = el(
        "body",
        el("div", el("h1", title), _tab_bar(tabs), class_="top"),
        el("main", (_panel(key, markup, len(tabs)) for key, _, markup in tabs)),
        el("footer", foot),
        (el("script", Html(_static(name))) for name in scripts),
    )
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("title", title),
        el("link", rel="icon", href="data:,"),
        (el("style", Html(_static(name))) for name in styles),
    )
    return "<!doctype html>\n" + el("html", head, body, lang="en") + "\n"


def _tab_bar(tabs: Sequence[tuple[str, str, Html]]) -> Html | None:
    if len(tabs) < 2:
        return None
    buttons = []
    for place, (key, name, _) in enumerate(tabs):
        state = {"aria_controls": key, "aria_selected": "false" if place else "true"}
        buttons.append(el("button", name, type="button", role="tab", id=f"tab-{key}", **state))
    return el("div", buttons, class_="tabs", role="tablist", hidden=True)


def _panel(key: str, markup: Html, count: int) -> Html:
    if count < 2:
        return el("div", markup, id=key)
    return el("div", markup, id=key, role="tabpanel", aria_labelledby=f"tab-{key}")


def _static(name: str) -> str:
    return (files("profrun.reports") / "static" / name).read_text(encoding="utf-8")
