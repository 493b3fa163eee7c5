"""Tables of the HTML report: units and denominators in the header, exact values behind every number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from profrun.contract.units import (
    BYTE_UNITS,
    TIME_UNITS,
    amount_text,
    column_text,
    column_unit,
    count_text,
    percent_text,
)
from profrun.reports.html import Html, el

Kind = Literal["text", "name", "ns", "bytes", "count", "share", "amount", "number"]


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        title: header; the unit is added.
        value: the cell's value of a row: a number for number kinds, text else, None for 'not known'.
        kind: ns and bytes get one unit a column; share is a fraction, shown in per cent with a bar.
        note: what the number is, of what, from where: the header's tooltip.
        full: for ``name``: the whole name where ``value`` is a short one.
        mark: what to put beside the title, see ``trace_page.Marks``.
        unit: of ``number`` and ``amount`` columns.
    """

    title: str
    value: Callable[[Any], Any]
    kind: Kind = "text"
    note: str = ""
    full: Callable[[Any], str] | None = None
    mark: Html | None = None
    unit: str = ""


def table(
    name: str,
    columns: Sequence[Column],
    rows: Sequence[Any],
    *,
    caption: str,
    total: int | None = None,
    limit: int = 100,
    filterable: bool = False,
) -> Html:
    """A sortable table, or a sentence when there are no rows.

    Args:
        name: key of the table in the page; ``data-table`` of the element.
        caption: what a row is.
        total: how many rows there were before ``rows`` was cut, when more.
        limit: rows to show; the caption says how many of how many.
        filterable: add a filter box over the rows' text.
    """
    everything = max(total or 0, len(rows))
    shown = rows[:limit]
    units = [_unit(column, rows) for column in columns]
    said = f"{caption}, {len(shown)} shown of {everything}" if len(shown) < everything else caption
    body = [
        el("tr", *(_cell(column, unit, row) for column, unit in zip(columns, units, strict=True)))
        for row in shown
    ]
    box = None
    if filterable and len(shown) > 5:
        box = el(
            "label",
            "filter ",
            el("input", type="search", class_="filter", placeholder="part of a name"),
            el("output", class_="matches", aria_live="polite"),
            class_="filterbox",
        )
    head = el("tr", *(_header(column, unit[1]) for column, unit in zip(columns, units, strict=True)))
    return el(
        "div",
        box,
        el(
            "div",
            el("table", el("caption", said), el("thead", head), el("tbody", *body), data_table=name),
            class_="scroll", tabindex="0", role="region", aria_label=caption,
        ),
        class_="tablebox",
    )  # fmt: skip


def _unit(column: Column, rows: Sequence[Any]) -> tuple[float, str]:
    if column.kind in ("ns", "bytes"):
        units = TIME_UNITS if column.kind == "ns" else BYTE_UNITS
        return column_unit([column.value(row) for row in rows], units)
    return 1.0, "%" if column.kind == "share" else column.unit


def _header(column: Column, unit: str) -> Html:
    label = el("button", column.title, el("span", f" {unit}", class_="unit") if unit else None, type="button")
    numeric = column.kind not in ("text", "name")
    return el(
        "th", label, column.mark, scope="col", aria_sort="none", class_="n" if numeric else None,
        title=column.note or None,
    )  # fmt: skip


def _cell(column: Column, unit: tuple[float, str], row: Any) -> Html:
    value = column.value(row)
    if column.kind == "text":
        return el("td", "-" if value is None else value)
    if column.kind == "name":
        full = column.full(row) if column.full else str(value)
        return el("td", el("span", value, class_="name", title=full), class_="namecell")
    if value is None:
        return el("td", "-", class_="n none", data_v="")
    style = None
    if column.kind == "share":
        style = f"--w:{100 * min(max(value, 0), 1):.1f}%"
    text = _number(column.kind, value, unit[0])
    return el("td", text, class_="n share" if style else "n", data_v=value, style=style)


def _number(kind: Kind, value: float, factor: float) -> str:
    if kind in ("ns", "bytes"):
        return column_text(value, factor)
    if kind == "share":
        return percent_text(value)
    if kind == "amount":
        return amount_text(value)
    if kind == "count":
        return count_text(int(value))
    return f"{value:.3g}"
