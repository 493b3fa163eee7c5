"""Tables of the HTML report."""

from __future__ import annotations

import pytest

from profrun.reports.html_table import Column, Kind, number_cell, table
from tests.reports.documents import parse


def test_cut_tables_say_how_much_is_shown() -> None:
    columns: list[Column[int]] = [
        Column("n", lambda row: row, "count"),
        Column("t", lambda row: row * 1000.0, "ns"),
    ]
    (found,) = parse(table("x", columns, list(range(1, 31)), caption="rows", limit=10)).every("table")
    assert found.every("caption")[0].text == "rows, 10 shown of 30"
    assert len(found.every("tbody")[0].every("tr")) == 10
    assert [button.text for button in found.every("button")] == ["n", "t us"]  # one unit per column
    assert found.every("tbody")[0].every("td")[1].text == "1.000"


@pytest.mark.parametrize(
    ("value", "kind", "size", "text", "exact"),
    [
        (None, "ns", 1e3, "-", ""),
        (1500, "ns", 1e3, "1.500", "1500"),
        (12345, "count", 1.0, "12 345", "12345"),
        (0.25, "share", 1.0, "25.0 %", "0.25"),
        (1.93e11, "amount", 1.0, "193 G", "193000000000.0"),
        (1980.0, "number", 1.0, "1980", "1980.0"),
    ],
)
def test_a_number_has_its_exact_value_behind_it(
    value: float | None, kind: Kind, size: float, text: str, exact: str
) -> None:
    (cell,) = parse(number_cell(value, kind, size)).every("td")
    assert (cell.text, cell.attributes["data-v"]) == (text, exact)


def test_text_in_a_column_of_numbers_is_an_error() -> None:
    column: Column[str] = Column("t", lambda row: row, "ns")
    with pytest.raises(TypeError, match="t: 'x' is no number"):
        table("x", [column], ["x"], caption="rows")


def test_a_short_name_has_the_whole_name_as_its_tooltip() -> None:
    column: Column[str] = Column("kernel", lambda row: row[:3], "name", full=lambda row: row)
    (name,) = parse(table("x", [column], ["gemm_kernel"], caption="rows")).every("span", class_="name")
    assert (name.text, name.attributes["title"]) == ("gem", "gemm_kernel")
