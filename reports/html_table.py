"""Tables of the HTML report: one unit per column in its header, and the exact value behind every number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from profrun.contract.units import (
    BYTE_UNITS,
    TIME_UNITS,
    amount_text,
    column_text,
    column_unit,
    count_text,
    percent_text,
    rate_text,
)
from profrun.reports.html import Child, Html, el

Kind = Literal["text", "name", "ns", "bytes", "count", "share", "amount", "number"]
Row = TypeVar("Row")
Cell = TypeVar("Cell", contravariant=True)
UNITS = {"ns": TIME_UNITS, "bytes": BYTE_UNITS}


@dataclass(frozen=True)
class Column(Generic[Cell]):
    """One column of a table.

    Attributes:
        title: its header; the unit is added.
        value: row -> the value of its cell: a number for kinds of numbers, else text; None for "not known".
        kind: ns and bytes have one unit for the whole column; share is a fraction, shown in per cent with
            a bar.
        note: what the number is, of what and from where: the tooltip of the header.
        full: of a ``name``: row -> the whole name, where ``value`` gives a short one.
        mark: what stands beside the title, see ``quality_marks``.
        unit: of ``number`` and ``amount``.
    """

    title: str
    value: Callable[[Cell], Child]
    kind: Kind = "text"
    note: str = ""
    full: Callable[[Cell], str] | None = None
    mark: Html | None = None
    unit: str = ""

    @property
    def numeric(self) -> bool:
        """The column is aligned to the right."""
        return self.kind not in ("text", "name")

    def number(self, row: Cell) -> float | None:
        """The value of a cell of a numeric column; None for "not known"."""
        value = self.value(row)
        if value is not None and not isinstance(value, (int, float)):
            raise TypeError(f"{self.title}: {value!r} is no number")
        return value


def table(
    name: str,
    columns: Sequence[Column[Row]],
    rows: Sequence[Row],
    *,
    caption: str,
    total: int | None = None,
    limit: int = 100,
    filterable: bool = False,
    whole: bool = False,
) -> Html:
    """A sortable table.

    Args:
        name: key of the table in the page: ``data-table`` of the element.
        columns: its columns.
        rows: its rows.
        caption: what a row is.
        total: how many rows there were before ``rows`` was cut, where there were more.
        limit: rows to show; the caption says how many of how many.
        filterable: add a box that filters the rows by their text.
        whole: all rows are in view; else a long table scrolls inside of its frame.
    """
    everything = max(total or 0, len(rows))
    shown = rows[:limit]
    units = [_unit(column, rows) for column in columns]
    text = f"{caption}, {len(shown)} shown of {everything}" if len(shown) < everything else caption
    head = el("tr", *(_header(column, unit) for column, (_, unit) in zip(columns, units, strict=True)))
    body = [
        el("tr", *(_cell(column, size, row) for column, (size, _) in zip(columns, units, strict=True)))
        for row in shown
    ]
    box = _filter() if filterable and len(shown) > 5 else None
    return table_box(name, text, head, body, label=caption, box=box, class_="whole" if whole else "")


def table_box(
    name: str, caption: str, head: Html, body: Child, *, label: str = "", box: Child = None, class_: str = ""
) -> Html:
    """A table of finished rows in a region of its own that scrolls sideways.

    Args:
        name: key of the table in the page.
        caption: above the table.
        head, body: its rows.
        label: of the region; the caption unless given.
        box: what stands above the table.
        class_: further classes.
    """
    found = el("table", el("caption", caption), el("thead", head), el("tbody", body), data_table=name)
    region = el("div", found, class_="scroll", tabindex="0", role="region", aria_label=label or caption)
    return el("div", box, region, class_=f"tablebox {class_}".rstrip())


def _filter() -> Html:
    field = el("input", type="search", class_="filter", placeholder="part of a name")
    return el(
        "label", "filter ", field, el("output", class_="matches", aria_live="polite"), class_="filterbox"
    )


def _unit(column: Column[Row], rows: Sequence[Row]) -> tuple[float, str]:
    """(size of the unit, unit) of a column."""
    if column.kind in UNITS:
        return column_unit([column.number(row) for row in rows], UNITS[column.kind])
    return 1.0, "%" if column.kind == "share" else column.unit


def _header(column: Column[Row], unit: str) -> Html:
    label = el("button", column.title, el("span", f" {unit}", class_="unit") if unit else None, type="button")
    class_ = "n" if column.numeric else None
    return el(
        "th", label, column.mark, scope="col", aria_sort="none", class_=class_, title=column.note or None
    )


def _cell(column: Column[Row], size: float, row: Row) -> Html:
    if column.numeric:
        return number_cell(column.number(row), column.kind, size)
    value = column.value(row)
    if column.kind == "text":
        return el("td", "-" if value is None else value)
    full = column.full(row) if column.full else str(value)
    return el("td", el("span", value, class_="name", title=full), class_="namecell")


def number_cell(value: float | None, kind: Kind, size: float = 1.0) -> Html:
    """A cell with a number in the unit of its column, and the exact value for sorting and for its tooltip."""
    if value is None:
        return el("td", "-", class_="n none", data_v="")
    if kind == "share":
        bar = f"--w:{100 * min(max(value, 0), 1):.1f}%"
        return el("td", percent_text(value), class_="n share", data_v=value, style=bar)
    return el("td", _number(kind, value, size), class_="n", data_v=value)


def _number(kind: Kind, value: float, size: float) -> str:
    if kind in UNITS:
        return column_text(value, size)
    if kind == "amount":
        return amount_text(value)
    return count_text(int(value)) if kind == "count" else rate_text(value)
