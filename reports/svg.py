"""Elements of the charts as SVG. Colours come from classes of the style sheet, for light and dark."""

from __future__ import annotations

from collections.abc import Sequence

from profrun.reports.html import Html, el

WIDTH = 760
"""Width of the charts in their own units."""


def svg(
    parts: Sequence[Html],
    width: int,
    height: int,
    label: str,
    *,
    class_: str = "chart",
    role: str = "img",
    **more: str,
) -> Html:
    """A drawing; a chart stands in a box that scrolls sideways.

    Args:
        parts: what is drawn.
        width, height: of the drawing in its own units.
        label: what it shows, for those who do not see it.
        class_: of the style sheet.
        role: of the element for screen readers.
        more: further attributes.
    """
    box = f"0 0 {width} {height}"
    found = el("svg", parts, viewBox=box, class_=class_, role=role, aria_label=label, **more)
    if class_ != "chart":
        return found
    return el("div", found, class_="chartbox", tabindex="0", role="group", aria_label="chart")


def line(x1: float, x2: float, y1: float, y2: float, class_: str = "grid") -> Html:
    """A line between two points."""
    ends = {"x1": f"{x1:.1f}", "x2": f"{x2:.1f}", "y1": f"{y1:.1f}", "y2": f"{y2:.1f}"}
    return el("line", **ends, class_=class_)


def dot(x: float, y: float, radius: float, *, title: str | None = None) -> Html:
    """A filled circle, with a tooltip where there is a title."""
    place = {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": f"{radius:.1f}"}
    return el("circle", el("title", title) if title else None, **place, class_="dot")


def text(x: float, y: float, words: str, anchor: str = "start") -> Html:
    """A text that starts, ends or has its middle (``anchor``) at a point."""
    return el("text", words, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor)
