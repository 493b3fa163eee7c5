"""Tables keep their values exact on the way to Arrow, pandas and polars, and stand for themselves."""

from __future__ import annotations

import builtins
import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import duckdb
import pytest

from profrun import Table
from profrun.api.table import table_of_field
from profrun.errors import UnavailableError, UsageError

BIG = 2**62 + 1
"""A time in ns that no float holds."""


@dataclass(frozen=True)
class Part:
    """A value in a row."""

    name: str


@dataclass(frozen=True)
class Row:
    """One field of every kind that rows of results have."""

    name: str | None
    ns: int | None
    share: float | None
    ok: bool | None
    kind: Literal["a", "b"] = "a"
    names: tuple[str, ...] = ()
    gaps: dict[str, int] | None = None
    part: Part | None = None


ROWS = [
    Row("a", BIG, 0.5, True, names=("x", 'y"')),
    Row(None, None, None, None, "b", (), {"g": 1}, Part("p")),
]
CELLS = [
    ("a", BIG, 0.5, True, "a", '["x", "y\\""]', None, None),
    (None, None, None, None, "b", "[]", '{"g": 1}', '{"name": "p"}'),
]
COLUMNS = ("name", "ns", "share", "ok", "kind", "names", "gaps", "part")


def test_rows_of_dataclasses() -> None:
    table = Table.of(ROWS)
    assert table.columns == COLUMNS
    assert table.rows() == list(table) == CELLS
    assert table.dicts() == [dict(zip(COLUMNS, row, strict=True)) for row in CELLS]
    assert len(table) == 2


def test_arrow_holds_every_value_exactly() -> None:
    import pyarrow

    found = Table.of(ROWS).to_arrow()
    assert [str(kind) for kind in found.schema.types[:4]] == ["string", "int64", "double", "bool"]
    assert found.to_pylist() == [dict(zip(COLUMNS, row, strict=True)) for row in CELLS]
    assert pyarrow.table(Table.of(ROWS)).equals(found)


def test_polars_holds_every_value_exactly() -> None:
    import polars

    found = Table.of(ROWS).to_polars()
    assert found.dtypes[:4] == [polars.String, polars.Int64, polars.Float64, polars.Boolean]
    assert found.rows() == CELLS
    assert polars.DataFrame(Table.of(ROWS)).equals(found)


def test_pandas_holds_every_value_exactly() -> None:
    import pandas

    found = Table.of(ROWS).to_pandas()
    assert found["ns"].tolist() == [BIG, pandas.NA]
    assert str(found["ns"].dtype) == "Int64"
    assert Table.of(ROWS[:1]).to_pandas()["ns"].dtype == "int64"
    assert found["name"].isna().tolist() == [False, True]
    assert found["share"].isna().tolist() == [False, True]


@pytest.mark.parametrize("rows", [[], [Row(None, None, None, None)]], ids=["no rows", "only NULL"])
def test_types_come_from_the_fields_not_from_the_values(rows: list[Row]) -> None:
    table = Table.of(rows, Row)
    assert table.to_polars().schema == Table.of(ROWS).to_polars().schema
    assert table.to_arrow().schema == Table.of(ROWS).to_arrow().schema
    assert list(table.to_pandas().columns) == list(COLUMNS)
    assert len(table) == len(table.rows()) == len(rows)


@pytest.mark.parametrize("rows", [[], [1], ["text"]])
def test_only_dataclasses_become_tables(rows: list[object]) -> None:
    with pytest.raises(UsageError, match="a table is made of dataclasses"):
        Table.of(rows)


@dataclass(frozen=True)
class Answer:
    """A result with rows in two of its fields."""

    total: int
    rows: list[Row]
    parts: tuple[Part, ...]
    names: tuple[str, ...] = ()


def test_fields_that_hold_rows_are_tables() -> None:
    answer = Answer(1, [], (Part("p"),))
    assert table_of_field(answer, "rows").columns == COLUMNS
    assert table_of_field(answer, "parts").rows() == [("p",)]
    with pytest.raises(UsageError, match="there is no table 'names' in it; one of rows, parts"):
        table_of_field(answer, "names")


DATABASE = ":memory:test-table"


@pytest.mark.parametrize(
    ("sql", "values", "kind"),
    [
        (f"SELECT sum(n) AS v FROM (VALUES ({BIG}), (1)) AS t(n)", [BIG + 1], "int64"),
        (f"SELECT n AS v FROM (VALUES ({BIG}), (NULL)) AS t(n)", [BIG, None], "int64"),
        ("SELECT sum(n) AS v FROM (VALUES (1)) AS t(n) WHERE n > 1", [None], "int64"),
        (f"SELECT {2**100}::HUGEINT AS v", [2**100], "decimal128(38, 0)"),
        ("SELECT 'a' AS v ORDER BY 1 -- a comment", ["a"], "string"),
        ("SELECT 1.5::DOUBLE AS v;", [1.5], "double"),
        ("SELECT 1::BIGINT AS v WHERE false", [], "int64"),
    ],
    ids=["sum", "NULL", "sum of nothing", "too wide", "comment", "semicolon", "empty"],
)
def test_answers_of_queries_are_exact(sql: str, values: list[object], kind: str) -> None:
    import pandas

    table = Table.of_query(DATABASE, sql)
    assert [row[0] for row in table.rows()] == values
    assert table.to_arrow()["v"].to_pylist() == values
    assert table.to_polars()["v"].to_list() == values
    assert str(table.to_arrow().schema.types[0]) == kind
    if kind == "int64":
        assert [None if value is pandas.NA else value for value in table.to_pandas()["v"]] == values


def test_rows_stay_in_the_order_of_the_query() -> None:
    table = Table.of_query(DATABASE, "SELECT range AS n, -range AS m FROM range(200_000) ORDER BY n DESC")
    assert table.to_polars()["m"].to_list() == list(range(-199_999, 1))
    assert table.rows()[:2] == [(199_999, -199_999), (199_998, -199_998)]


def test_names_that_are_alike_are_told_apart() -> None:
    assert Table.of_query(DATABASE, 'SELECT 1 AS a, 2 AS a, 3 AS "x ""y"').columns == ("a", "a_1", 'x "y')


@pytest.mark.parametrize(
    "sql", ["", "SELECT 1; SELECT 2", "CREATE TABLE t (a INT)", "DROP VIEW v", "SET threads = 1"]
)
def test_a_query_is_one_select_and_nothing_else_runs(sql: str) -> None:
    with duckdb.connect(DATABASE) as connection:
        connection.execute("CREATE OR REPLACE VIEW v AS SELECT 1 AS a")
        with pytest.raises(UsageError, match="a query is one SELECT"):
            Table.of_query(DATABASE, sql)
        assert connection.sql("SELECT * FROM v").fetchall() == [(1,)]


def test_a_stream_that_is_not_read_to_its_end_blocks_nothing() -> None:
    import pyarrow

    table = Table.of_query(DATABASE, "SELECT range AS n FROM range(500_000)")
    reader = pyarrow.RecordBatchReader.from_stream(table)
    read = reader.read_next_batch().num_rows
    assert len(table) == len(table.to_polars()) == 500_000
    del table
    gc.collect()
    assert read + sum(batch.num_rows for batch in reader) == 500_000


def test_threads_may_share_a_table() -> None:
    table = Table.of_query(DATABASE, "SELECT range AS n FROM range(1000)")
    want = table.rows()
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda _: table.rows() == want and len(table.to_polars()) == 1000, range(16)))


def test_a_table_takes_its_rows_with_it() -> None:
    with duckdb.connect(DATABASE) as connection:
        count = "SELECT count(*) FROM duckdb_tables() WHERE schema_name = 'answers'"
        gc.collect()
        before = connection.sql(count).fetchall()
        table = Table.of_query(DATABASE, "SELECT 1 AS a")
        assert connection.sql(count).fetchall() != before
        del table
        gc.collect()
        assert connection.sql(count).fetchall() == before


@pytest.mark.parametrize("name", ["pyarrow", "pandas", "polars"])
def test_a_package_that_is_missing_is_said_in_one_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table, real = Table.of(ROWS), builtins.__import__

    def without(wanted: str, *args: object, **more: object) -> object:
        if wanted.split(".")[0] == name:
            raise ModuleNotFoundError(f"No module named {wanted!r}", name=wanted)
        return real(wanted, *args, **more)  # type: ignore[arg-type]  # as it was given

    convert: dict[str, Callable[[], object]] = {
        "pyarrow": table.to_arrow,
        "pandas": table.to_pandas,
        "polars": table.to_polars,
    }
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UnavailableError) as error:
        convert[name]()
    assert str(error.value) == (
        f"this needs {name}, which is not installed; pip install {name}, or use rows() or dicts()"
    )
    assert table.rows() == CELLS


def test_a_notebook_shows_the_first_rows_and_how_many_there_are() -> None:
    page = Table.of([Part("<&>"), *[Part(f"n{n}") for n in range(30)]])._repr_html_()
    assert "<th>name</th>" in page
    assert "&lt;&amp;&gt;" in page
    assert page.count("<tr>") == 21
    assert "20 of 31 rows" in page
    assert "of" not in Table.of([Part("a")])._repr_html_()
    assert repr(Table.of([Part(f"n{n}") for n in range(30)])).endswith("20 of 30 rows")


def test_another_library_reads_a_table(tmp_path: Path) -> None:
    import polars

    polars.DataFrame(Table.of(ROWS)).write_parquet(tmp_path / "t.parquet")
    with duckdb.connect() as connection:
        found = connection.sql(f"SELECT ns FROM '{tmp_path / 't.parquet'}'").fetchall()
    assert found == [(BIG,), (None,)]
