"""The timeline of a trace as HTML: a canvas that the script of the page draws, with its buttons and data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profrun.contract.units import count_text, time_text
from profrun.reports.html import Html, data_script, el

if TYPE_CHECKING:
    from profrun.analysis.trace.timeline_slices import Timeline

BUTTONS = (
    ("in", "+", "zoom in"),
    ("out", "−", "zoom out"),
    ("left", "←", "earlier"),
    ("right", "→", "later"),
    ("reset", "all", "whole window"),
)
"""(action of the script, text, tooltip) of each button."""


def timeline_html(timeline: Timeline, key: str) -> Html:
    """The timeline, and in words what was left out.

    Args:
        timeline: its slices.
        key: prefix of ids, unique in the page.
    """
    id_ = f"{key}-timeline-data"
    buttons = (el("button", text, type="button", data_do=do, title=tip) for do, text, tip in BUTTONS)
    label = f"timeline of {timeline.label}; arrow keys move, plus and minus zoom, 0 shows all"
    without = "a timeline needs a browser with JavaScript; the tables hold the same numbers"
    help_ = "click a slice for its name, start and duration; dragging moves, then the wheel zooms"
    data = {
        "span": timeline.span_ns,
        "tracks": timeline.tracks,
        "names": timeline.names,
        "kinds": timeline.kinds,
        "slices": timeline.slices,
    }
    return el(
        "div",
        el("p", _shown(timeline), class_="note"),
        el("div", *buttons, el("span", class_="range"), class_="tools"),
        el("canvas", without, tabindex="0", role="img", aria_label=label),
        el("output", help_, class_="picked", aria_live="polite"),
        data_script(id_, data),
        class_="timeline",
        data_timeline=id_,
    )


def _shown(timeline: Timeline) -> str:
    shown, total = count_text(len(timeline.slices)), count_text(timeline.total)
    text = f"{timeline.label}, {time_text(timeline.span_ns)}: {shown} slices shown of {total}"
    if timeline.total == len(timeline.slices):
        return text
    python = f", {count_text(timeline.python)} of them Python frames" if timeline.python else ""
    return (
        f"{text} (left out{python}: the shortest host slices, and copies of annotations on the GPU; "
        "`profrun open` has all)"
    )
