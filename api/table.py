"""A table: the answer to a query, or the rows of a result. Goes to Arrow, pandas and polars."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import duckdb

from profrun.errors import UnavailableError, UsageError
from profrun.reports.html import el

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

SHOWN = 20
"""Rows that a notebook shows."""


class Table:
    """Columns and rows. Times are int64 ns; what is missing is None (NULL in Arrow).

    It offers the Arrow C stream interface, so every library that takes Arrow tables takes it:
    ``polars.DataFrame(table)``, ``pyarrow.table(table)``, ``duckdb.sql("SELECT ... FROM table")``.

    Args:
        relation: what DuckDB is asked; it is executed anew by each of the methods.
    """

    def __init__(self, relation: duckdb.DuckDBPyRelation) -> None:
        self._relation = relation

    @classmethod
    def of(cls, rows: Sequence[object]) -> Table:
        """A table of dataclasses of one kind, one row per object and one column per field.

        Fields that are neither text nor a number become JSON text.

        Raises:
            UsageError: a row is no dataclass.
        """
        if not all(dataclasses.is_dataclass(row) for row in rows):
            raise UsageError("a table is made of dataclasses", fix="give the rows of one result")
        names = [field.name for field in dataclasses.fields(rows[0])] if rows else []  # type: ignore[arg-type]
        cells = [[_cell(getattr(row, name)) for name in names] for row in rows]
        connection = duckdb.connect(":memory:")
        types = [_type([row[place] for row in cells]) for place in range(len(names))]
        columns = ", ".join(f'"{name}" {kind}' for name, kind in zip(names, types, strict=True))
        connection.execute(f"CREATE TABLE rows ({columns or 'nothing INTEGER'})")
        if cells:
            connection.executemany(f"INSERT INTO rows VALUES ({', '.join('?' * len(names))})", cells)
        return cls(connection.table("rows"))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self._relation.columns)

    def rows(self) -> list[tuple[object, ...]]:
        """All rows as tuples, in order."""
        return list(self._relation.fetchall())

    def dicts(self) -> list[dict[str, object]]:
        """All rows as dicts by column."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows()]

    def __len__(self) -> int:
        return int(self._relation.shape[0])

    def __iter__(self) -> Iterator[tuple[object, ...]]:
        return iter(self.rows())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table as an Arrow stream (the Arrow PyCapsule interface)."""
        return self._relation.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pyarrow.Table:
        """As ``pyarrow.Table``.

        Raises:
            UnavailableError: pyarrow is not installed.
        """
        try:
            import pyarrow
        except ModuleNotFoundError:
            raise _missing("pyarrow") from None
        return pyarrow.table(self)

    def to_pandas(self) -> pandas.DataFrame:
        """As ``pandas.DataFrame``.

        Raises:
            UnavailableError: pandas is not installed.
        """
        try:
            import pandas  # noqa: F401 - DuckDB needs it and says less when it is not there
        except ModuleNotFoundError:
            raise _missing("pandas") from None
        frame: pandas.DataFrame = self._relation.df()
        return frame

    def to_polars(self) -> polars.DataFrame:
        """As ``polars.DataFrame``.

        Raises:
            UnavailableError: polars is not installed.
        """
        try:
            import polars
        except ModuleNotFoundError:
            raise _missing("polars") from None
        return polars.DataFrame(self)

    def __repr__(self) -> str:
        return str(self._relation.limit(SHOWN))

    def _repr_html_(self) -> str:
        """The first rows, for notebooks."""
        rows, total = self._relation.limit(SHOWN).fetchall(), len(self)
        head = el("tr", (el("th", name) for name in self.columns))
        body = (el("tr", (el("td", "" if cell is None else str(cell)) for cell in row)) for row in rows)
        more = el("p", f"{SHOWN} of {total} rows") if total > SHOWN else None
        return str(el("div", el("table", el("thead", head), el("tbody", body)), more))


def _cell(value: object) -> object:
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    from profrun.analysis.json import to_json

    return json.dumps(to_json(value))


def _type(values: Sequence[object]) -> str:
    """The DuckDB type of a column."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return "BOOLEAN"
    if kinds == {int}:
        return "BIGINT"
    if kinds and kinds <= {int, float}:
        return "DOUBLE"
    return "VARCHAR"


def _missing(package: str) -> UnavailableError:
    return UnavailableError(
        f"this needs {package}, which is not installed",
        fix=f"pip install {package}, or use rows() or dicts()",
    )
