"""The timeline of a trace as HTML: its legend and its packed slices. The script of the page draws it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.trace.timeline_slices import CATEGORIES
from profrun.contract.units import count_text, time_text
from profrun.reports.charts import legend
from profrun.reports.html import Html, el
from profrun.reports.timeline_packing import packed

if TYPE_CHECKING:
    from profrun.analysis.trace.timeline_slices import Timeline

WORDS = {
    "kernel": "kernels",
    "memcpy": "copies",
    "memset": "fills",
    "comm": "communication",
    "runtime": "runtime calls",
    "dataloader": "data loading",
    "cpu_op": "ops",
    "range": "ranges",
    "step": "steps",
    "sync": "synchronisation",
    "python": "Python frames",
    "overhead": "profiler overhead",
}
"""Categories in words. The colours are those of the bars of the steps."""
WITHOUT = "The timeline needs a browser with JavaScript. The tables hold the same numbers."


def timeline_html(timeline: Timeline, key: str) -> Html:
    """The timeline, and in words what was left out.

    Args:
        timeline: its slices.
        key: prefix of ids, unique in the page. A link to a slice is ``#<key>-slice-<id of the slice>``.
    """
    return el(
        "div",
        el("noscript", el("p", WITHOUT)),
        el("p", _shown(timeline), class_="note"),
        colours([timeline]),
        el("script", Html(packed(timeline)), type="text/plain", id=f"{key}-timeline-data"),
        class_="timeline",
        data_timeline=key,
        data_label=f"{count_text(len(timeline))} slices in {time_text(timeline.span_ns)}",
    )


def colours(timelines: Sequence[Timeline]) -> Html:
    """What the colours of these timelines mean: the categories that they have."""
    count = sum(np.bincount(one.category, minlength=len(CATEGORIES)) for one in timelines)
    words = dict(WORDS)
    if all(one.denominator.of == "run" for one in timelines):
        words["step"] = "the run"
    return legend((CATEGORIES[at], words[CATEGORIES[at]]) for at in np.flatnonzero(count))


def _shown(timeline: Timeline) -> str:
    shown, total = count_text(len(timeline)), count_text(timeline.total)
    opens = f"The view opens on {timeline.window[2]}."
    if timeline.total == len(timeline):
        return f"All {total} slices of the trace, {time_text(timeline.span_ns)}. {opens}"
    python = f", {count_text(timeline.python)} of them Python frames" if timeline.python else ""
    return (
        f"{shown} of {total} slices of the trace, {time_text(timeline.span_ns)}. The shortest host slices "
        f"are left out{python}; `profrun open` shows all. {opens}"
    )
