"""The section on lines of the program as HTML: GPU time by line and by module, and their source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profrun.contract.line_names import Line
from profrun.reports.html import Html, el
from profrun.reports.html_table import Column, table
from profrun.reports.kernel_labels import labels_of
from profrun.reports.place_text import folder_of, resolved_text, row_name
from profrun.reports.source_listing import SourceIds, source_html

if TYPE_CHECKING:
    from profrun.analysis.trace.line_table import PlaceRow, PlaceTable
    from profrun.contract.denominator import Denominator
    from profrun.reports.content import Places

ROWS = 100
"""Most rows of a table."""


def places_html(places: Places, key: str, of: Denominator) -> Html | None:
    """The tables and the source; None for a trace without GPU work.

    Args:
        places: where the GPU work comes from.
        key: prefix of ids, unique in the page.
        of: what times are of.
    """
    if not places.lines.gpu_ns:
        return None
    ids = SourceIds(places.source, key)
    return el(
        "div",
        el("p", f"{resolved_text(places.lines)}. {_told_by(places)}", class_="note"),
        _table("by-line", places.lines, of, ids),
        _table("by-module", places.modules, of, ids),
        source_html(places.source, places.lines, ids) if places.source else None,
    )


def _told_by(places: Places) -> str:
    if places.mapping is None:
        return "This recording has ranges round the lines of the program, which make its host time longer."
    return (
        f"The lines are those of trial {places.mapping}, which ran the same program with ranges round its "
        "lines; the kernels of both are matched in the order of their launches."
    )


def _table(name: str, places: PlaceTable, of: Denominator, ids: SourceIds) -> Html:
    """The GPU time by line, or by module."""
    steps = max(places.steps, 1)
    labels = labels_of(name for row in places.rows for name in row.kernels)
    folder = folder_of(places)
    per, shared = of.per, any(row.shared_ns for row in places.rows)

    def place(row: PlaceRow) -> str | Html:
        text = row_name(row, folder)
        id_ = ids.of(row.place) if isinstance(row.place, Line) else None
        return text if id_ is None else el("a", text, href=f"#{id_}")

    columns: list[Column[PlaceRow]] = [
        Column(places.by, place, "name", full=row_name),
        Column("launches", lambda row: row.launches / steps, "number", f"kernels, copies and memsets, {per}"),
        Column("GPU", lambda row: row.gpu_ns / steps, "ns", f"time of the GPU work launched there, {per}"),
        Column("share", lambda row: row.share, "share", f"of the time of all GPU work of {of.every}"),
        Column("backward", _backward, "share", "work of the backward, of the GPU time of the row"),
        Column(
            "kernels",
            lambda row: ", ".join(labels[name] for name in row.kernels),
            "name",
            "the largest, most time first",
        ),
    ]
    if shared:
        note = "of the GPU time of the row: kernels made of several lines, each with an equal part of them"
        columns.insert(5, Column("shared", _shared, "share", note))
    caption = f"GPU time by {places.by}, {per}" + (f"; files are in {folder}" if folder else "")
    return table(name, columns, places.rows, caption=caption, limit=ROWS, filterable=True)


def _backward(row: PlaceRow) -> float | None:
    return row.backward_ns / row.gpu_ns if row.gpu_ns else None


def _shared(row: PlaceRow) -> float | None:
    return row.shared_ns / row.gpu_ns if row.gpu_ns else None
