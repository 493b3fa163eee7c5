"""The section on the quantities beside the step time as HTML: how energy, GPU work and others changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from profrun.contract.units import quantity_text, signed_change_text
from profrun.reports.compare_text import interval_cell, not_compared, proven_word, shown_metrics
from profrun.reports.html import Html, el
from profrun.reports.html_table import Column, table
from profrun.reports.point_pairs_text import how_recorded

if TYPE_CHECKING:
    from profrun.analysis.compare.model import Metric
    from profrun.analysis.compare.point_pairs import PointPair

NOTE = "Energy is that of whole boards, in the steady steps of each trial; a host is not in it."


def quantities_html(pairs: Sequence[PointPair]) -> Html | None:
    """A table of the other quantities of each way of recording; None where there are none."""
    rows = [(pair, metric) for pair in pairs for metric in shown_metrics(pair.comparison)]
    notes = [el("li", note) for pair in pairs if (note := not_compared(pair.comparison))]
    if not rows and not notes:
        return None
    found = pairs[0].comparison
    a, b = (side.name for side in found.sides)
    columns: list[Column[tuple[PointPair, Metric]]] = [
        Column("quantity", lambda row: row[1].name),
        Column("recorded", lambda row: how_recorded(row[0])),
        Column(a, lambda row: quantity_text(row[1].a, row[1].unit)),
        Column(b, lambda row: quantity_text(row[1].b, row[1].unit)),
        Column("change", lambda row: signed_change_text(row[1].ratio)),
        Column("interval", lambda row: interval_cell(row[1].ci95), note="95 % interval of the change"),
        Column("proven", lambda row: proven_word(row[1]), note="proven among all quantities"),
    ]
    energy = any(metric.name == "energy" for _, metric in rows)
    caption = f"other quantities {found.rate}"
    return el(
        "div",
        el("p", NOTE, class_="note") if energy else None,
        el("div", table("quantities", columns, rows, caption=caption), class_="lines") if rows else None,
        el("ul", notes, class_="plain note") if notes else None,
    )
