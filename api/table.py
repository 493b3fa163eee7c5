"""A table: the answer to a query, or the rows of a result. It goes to Arrow, pandas and polars."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import threading
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar, Union, get_args, get_origin, get_type_hints

import duckdb

from profrun.errors import UnavailableError, UsageError
from profrun.reports.html import el
from profrun.traces.statements import one_select

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

SHOWN = 20
"""Rows that a notebook shows."""
T = TypeVar("T")
_NUMBERS = itertools.count()
"""Of the tables of this process."""
_LOCK = threading.Lock()
"""Two connections must not make the same schema at once."""
_COLUMN_TYPES = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE"}
"""Type of a field -> type of its column; all other fields become text."""
_INTEGERS = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"})


class Table:
    """Columns and rows. Times are int64 ns; a value that is missing is None, and NULL in Arrow.

    A table is a copy: it does not change, and it stays when its trace is closed. It offers the Arrow C stream
    interface, so every library that takes Arrow tables takes it: ``polars.DataFrame(table)``,
    ``pyarrow.table(table)``.
    """

    def __init__(self, database: str, sql: str, values: Sequence[object] = ()) -> None:
        """Keep the answer to a query.

        Args:
            database: an in-memory database by name. The table lies in it, so it exists as long as the table.
            sql: the query. values: of its parameters.

        Raises:
            duckdb.Error: it cannot be answered.
        """
        self._database = database
        self._name = f"answers.t{next(_NUMBERS)}"
        connection = duckdb.connect(database)
        with _LOCK:
            connection.execute("CREATE SCHEMA IF NOT EXISTS answers")
        connection.execute(f"CREATE TABLE {self._name} AS\n{sql}", list(values))
        weakref.finalize(self, _drop, connection, self._name).atexit = False

    @classmethod
    def of_query(cls, database: str, sql: str) -> Table:
        """The answer to one SELECT.

        Sums of integers, which DuckDB makes 128 bits wide, become int64 where they fit.

        Raises:
            UsageError: it is not one SELECT that changes nothing.
            duckdb.Error: it cannot be answered.
        """
        with duckdb.connect(database) as connection:
            one_select(connection, sql)
            connection.sql(sql)  # runs nothing, and a mistake is reported in the query as it was given
            table = cls(database, sql)
            columns = table._ask(lambda answer: zip(answer.columns, answer.types, strict=True))
            for column in [name for name, kind in columns if str(kind) == "HUGEINT"]:
                quoted = column.replace('"', '""')
                with contextlib.suppress(duckdb.ConversionException):
                    connection.execute(f'ALTER TABLE {table._name} ALTER "{quoted}" TYPE BIGINT')
        return table

    @classmethod
    def of(cls, rows: Sequence[object], kind: type | None = None) -> Table:
        """A table of dataclasses of one kind: one row per object and one column per field.

        Fields that are neither text nor a number nor a truth value become JSON text.

        Args:
            rows: the objects.
            kind: their class; None for the class of the first, which an empty list has not.

        Raises:
            UsageError: the class is no dataclass, or not known.
        """
        kind = kind or (type(rows[0]) if rows else None)
        if kind is None or not dataclasses.is_dataclass(kind):
            raise UsageError(
                "a table is made of dataclasses", fix="give the rows of one result, and their class if none"
            )
        hints = get_type_hints(kind)
        columns = {field.name: _column_type(hints[field.name]) for field in dataclasses.fields(kind)}
        cells = [[_cell(getattr(row, name), columns[name]) for row in rows] for name in columns]
        chosen = ", ".join(
            f'unnest(${place}::{column}[]) AS "{name}"'
            for place, (name, column) in enumerate(columns.items(), 1)
        )
        return cls(":memory:profrun", f"SELECT {chosen}", cells)

    def _ask(self, question: Callable[[duckdb.DuckDBPyRelation], T]) -> T:
        """Ask on a connection of its own: a stream that is not read to its end blocks its connection."""
        with duckdb.connect(self._database) as connection:
            return question(connection.table(self._name))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self._ask(lambda answer: tuple(answer.columns))

    def rows(self) -> list[tuple[object, ...]]:
        """All rows as tuples, in order."""
        return self._ask(lambda answer: list(answer.fetchall()))

    def dicts(self) -> list[dict[str, object]]:
        """All rows as dicts by column."""
        columns = self.columns
        return [dict(zip(columns, row, strict=True)) for row in self.rows()]

    def __len__(self) -> int:
        return self._ask(lambda answer: int(answer.shape[0]))

    def __iter__(self) -> Iterator[tuple[object, ...]]:
        return iter(self.rows())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table as an Arrow stream (the Arrow PyCapsule interface)."""
        return self._ask(lambda answer: answer.__arrow_c_stream__(requested_schema))

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
        """As ``pandas.DataFrame``. Columns of integers with missing values are ``Int64``, so they stay exact.

        Raises:
            UnavailableError: pandas is not installed.
        """
        try:
            import pandas
        except ModuleNotFoundError:
            raise _missing("pandas") from None

        def exact(answer: duckdb.DuckDBPyRelation) -> pandas.DataFrame:
            frame = answer.df()
            for name, kind in zip(answer.columns, answer.types, strict=True):
                if str(kind) in _INTEGERS and frame[name].dtype.kind == "f":  # DuckDB before 2.0
                    values = answer.fetchnumpy()[name]
                    frame[name] = pandas.arrays.IntegerArray(values.data, values.mask)
            return frame

        return self._ask(exact)

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
        text, total = self._ask(lambda answer: str(answer.limit(SHOWN)).rstrip()), len(self)
        return f"{text}\n{SHOWN} of {total} rows" if total > SHOWN else text

    def _repr_html_(self) -> str:
        """The first rows, for notebooks."""
        rows, total = self._ask(lambda answer: answer.limit(SHOWN).fetchall()), len(self)
        head = el("tr", (el("th", name) for name in self.columns))
        body = (el("tr", (el("td", "" if cell is None else str(cell)) for cell in row)) for row in rows)
        more = el("p", f"{SHOWN} of {total} rows") if total > SHOWN else None
        return str(el("div", el("table", el("thead", head), el("tbody", body)), more))


def table_of_field(result: object, name: str) -> Table:
    """The rows that a field of a result holds, as a table. Without rows, the table has its columns.

    Raises:
        UsageError: no field of that name holds rows; says which do.
    """
    rows = {field: kind for field, hint in get_type_hints(type(result)).items() if (kind := _row_class(hint))}
    if name not in rows:
        raise UsageError(f"there is no table {name!r} in it", fix=f"one of {', '.join(rows)}")
    return Table.of(getattr(result, name), rows[name])


def _row_class(hint: object) -> type | None:
    """The dataclass that a list or tuple of such a type holds."""
    held = get_args(hint)[:1] if get_origin(hint) in (list, tuple) else ()
    return next((kind for kind in held if isinstance(kind, type) and dataclasses.is_dataclass(kind)), None)


def _drop(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    connection.execute(f"DROP TABLE {name}")
    connection.close()


def _column_type(hint: object) -> str:
    """The DuckDB type for a field of this type, None or not."""
    if get_origin(hint) in (Union, types.UnionType):
        hint = next((kind for kind in get_args(hint) if kind is not type(None)), hint)
    return _COLUMN_TYPES.get(hint, "VARCHAR") if isinstance(hint, type) else "VARCHAR"


def _cell(value: object, column: str) -> object:
    from profrun.analysis.json import to_json

    plain = to_json(value)
    return json.dumps(plain) if column == "VARCHAR" and not isinstance(plain, (str, type(None))) else plain


def _missing(package: str) -> UnavailableError:
    return UnavailableError(
        f"this needs {package}, which is not installed",
        fix=f"pip install {package}, or use rows() or dicts()",
    )
