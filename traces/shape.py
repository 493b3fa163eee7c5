"""The shape of a trace: its columns and the keys of meta.json, looked at whenever a trace is opened.

A trace may come from anybody, or from a disk that lost some of it. The code that reads it relies on every
column of ``schema`` and on the types of ``TraceMeta``. What the rows hold is checked by ``checks.problems``,
which costs much more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from profrun.traces.meta import TraceMeta
from profrun.traces.schema import TABLES

if TYPE_CHECKING:
    import duckdb


def column_problems(con: duckdb.DuckDBPyConnection) -> list[str]:
    """Every column that is missing or has another type, as one sentence.

    Args:
        con: offers the tables of the trace under the names of the schema.
    """
    query = "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal"
    found = {(table, column): type_ for table, column, type_ in con.execute(query).fetchall()}
    return [
        f"{table.name}.{column.name} is {found.get((table.name, column.name), 'missing')} "
        f"instead of {column.type}"
        for table in TABLES.values()
        for column in table.columns
        if found.get((table.name, column.name)) != column.type
    ]


def meta_problem(meta: object) -> str | None:
    """The first value of meta.json that has another type than ``TraceMeta`` says; None where all fit."""
    import msgspec

    try:
        msgspec.convert(meta, TraceMeta)
        return _too_large(meta)
    except msgspec.ValidationError as error:
        return str(error)
    except UnicodeEncodeError:
        return "a text in it is no valid Unicode"
    except RecursionError:
        return "its values are nested too deeply"


def _too_large(value: object, where: str = "$") -> str | None:
    """The first whole number of a document that does not fit 64 bits; None where all do."""
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        return f"a number does not fit 64 bits - at `{where}`"
    inner: list[tuple[object, object]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    found = (_too_large(item, f"{where}.{key}") for key, item in inner)
    return next(filter(None, found), None)
