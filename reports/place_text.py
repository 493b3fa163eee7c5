"""GPU work by line or by module as a table for a terminal: ``place_text``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profrun.analysis.trace.addresses import UNRESOLVED
from profrun.contract.line_names import Line, below, common_folder
from profrun.contract.units import percent_text, rate_text, time_text
from profrun.reports.kernel_labels import labels_of
from profrun.reports.terminal_layout import PLAIN, Part, Prose, Style, Table, lay_out, titled

if TYPE_CHECKING:
    from profrun.analysis.trace.line_table import PlaceRow, PlaceTable
    from profrun.contract.denominator import Denominator

LEAST = 0.001
"""Share of the GPU time of shared work from which a row is marked."""


def place_text(table: PlaceTable, of: Denominator, style: Style = PLAIN, *, top: int | None = None) -> str:
    """The table, what is shared, and what has no address.

    Args:
        of: what times are of.
        top: rows that are shown; None for all.
    """
    if not table.gpu_ns:
        return lay_out([Prose("the trace has no GPU work")], style)
    shown = table.rows if top is None else table.rows[:top]
    folder = folder_of(table)
    labels = labels_of(name for row in shown for name in row.kernels)
    rows = [_cells(row, table, folder, labels) for row in shown]
    left = len(table.rows) - len(shown)
    header = (table.by, "launches", "GPU time", "share", "backward", "kernels")
    title = f"GPU time by {table.by} {of.per}"
    parts: list[Part] = list(titled(title, Table(header, rows, range(1, 5))))
    if left:
        parts.append(Prose(f"... and {left} more (--top 0 shows all)"))
    if any(row.shared_ns > LEAST * table.gpu_ns for row in shown):
        parts.append(Prose("*: part of it is of kernels made of several lines, each with an equal part"))
    parts.append(Prose(resolved_text(table)))
    if folder:
        parts.append(Prose(f"files are in {folder}"))
    return lay_out(parts, style)


def resolved_text(table: PlaceTable) -> str:
    """How much of the GPU time has an address, and why the rest has none."""
    share = percent_text(table.resolved)
    if not table.unresolved:
        return f"{share} of the GPU time has an address"
    why = "; ".join(
        f"{percent_text(ns / table.gpu_ns)}: {UNRESOLVED[code]}" for code, ns in table.unresolved.items()
    )
    return f"{share} of the GPU time has an address. The rest has none: {why}"


def _cells(row: PlaceRow, table: PlaceTable, folder: str, labels: dict[str, str]) -> tuple[str, ...]:
    steps = table.steps or 1
    shared = " *" if row.shared_ns > LEAST * table.gpu_ns else ""
    return (
        row_name(row, folder) + shared,
        rate_text(row.launches / steps),
        time_text(row.gpu_ns / steps),
        percent_text(row.share),
        percent_text(row.backward_ns / row.gpu_ns) if row.gpu_ns else "",
        ", ".join(labels[name] for name in row.kernels),
    )


def row_name(row: PlaceRow, folder: str = "") -> str:
    """The name of its place, with the number of modules where the row stands for several."""
    several = f", {row.modules} modules" if row.modules > 1 else ""
    return place_name(row.place, folder) + several


def place_name(place: Line | str, folder: str = "") -> str:
    """``model.py:212 forward``, with the path below ``folder``; a module as it is."""
    if not isinstance(place, Line):
        return place
    return f"{below(place.file, folder)}:{place.line} {place.function}"


def folder_of(table: PlaceTable) -> str:
    """The folder that all files of a table have in common; empty for none."""
    return common_folder(row.place.file for row in table.rows if isinstance(row.place, Line))
