"""SQLite databases of AMD's tools: which relations and columns there are, typed rows into DuckDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import duckdb

from profrun.collectors.sqlite import SqliteFile, quoted, text_column
from profrun.errors import InputError


class Database:
    """A database, read only. Use as a context manager.

    Raises:
        InputError: (every method) the file is not a whole SQLite database, or holds values of other types.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = SqliteFile(path)
        self.relations = frozenset(self._file.columns)

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()

    def columns(self, relation: str) -> frozenset[str]:
        """Column names of a table or view, empty when there is none."""
        return frozenset(self._file.columns.get(relation, ()))

    def rows(self, query: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a small query."""
        return self._file.rows(query, params)

    def copy(
        self, query: str, con: duckdb.DuckDBPyConnection, table: str, columns: Mapping[str, str]
    ) -> None:
        """Create DuckDB ``table`` from the query's rows, streamed in Arrow batches. Any thread may call it.

        ``columns``: DuckDB type of each column of the query; SQLite itself has no types. A text column that
        is NULL at first would come as integers. Some tools write '' for a missing number, which does not
        become a number: then the query is read again without them, as looking at each costs a third more.
        """
        try:
            self._copy(query, con, table, columns, "{}")
        except InputError:
            self._copy(query, con, table, columns, "nullif({}, '')")

    def _copy(
        self, query: str, con: duckdb.DuckDBPyConnection, table: str, columns: Mapping[str, str], number: str
    ) -> None:
        out = ", ".join(
            f"{text_column(name) if kind == 'VARCHAR' else number.format(quoted(name))} AS {quoted(name)}"
            for name, kind in columns.items()
        )
        casts = ", ".join(
            f"nullif(CAST({quoted(name)} AS VARCHAR), chr(1)) AS {quoted(name)}"
            if kind == "VARCHAR"
            else f"CAST({quoted(name)} AS {kind}) AS {quoted(name)}"
            for name, kind in columns.items()
        )
        create = f"CREATE TABLE {table} AS SELECT {casts} FROM sqlite_rows"
        self._file.load(con, create, f"SELECT {out} FROM ({query})")
