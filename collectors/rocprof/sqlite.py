"""SQLite databases of AMD's tools: which relations and columns there are, and rows into DuckDB as Arrow "
"batches."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

import adbc_driver_manager
import adbc_driver_sqlite
import duckdb

from profrun.errors import InputError


class Database:
    """A database, read only. Use as a context manager.

    Raises:
        InputError: (every method) the file is not a whole SQLite database.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        wal = path.with_name(path.name + "-wal")
        # immutable: no lock and no -shm beside a file we may not write to; not when a log has yet to be read
        frozen = "" if wal.exists() and wal.stat().st_size else "&immutable=1"
        self.uri = f"file:{quote(str(path.absolute()))}?mode=ro{frozen}"
        try:
            self.con = sqlite3.connect(self.uri, uri=True)
            self.relations = frozenset(
                str(row[0])
                for row in self.con.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
            )
        except sqlite3.Error as error:
            raise self.broken(error) from error
        self._columns: dict[str, frozenset[str]] = {}

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.con.close()

    def broken(self, error: Exception) -> InputError:
        """The error for a database that cannot be read."""
        return InputError(
            f"{self.path.name} cannot be read as a database",
            why=str(error).splitlines()[0] if str(error) else type(error).__name__,
            fix="copy it again from where it was recorded, after the profiler has ended",
        )

    def columns(self, relation: str) -> frozenset[str]:
        """Column names of a table or view, empty when there is none."""
        if relation not in self._columns:
            try:
                rows = self.con.execute(f'PRAGMA table_info("{relation}")').fetchall()
            except sqlite3.Error as error:
                raise self.broken(error) from error
            self._columns[relation] = frozenset(str(row[1]) for row in rows)
        return self._columns[relation]

    def rows(self, query: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a small query."""
        try:
            return self.con.execute(query, tuple(params)).fetchall()
        except sqlite3.Error as error:
            raise self.broken(error) from error

    def copy(
        self, query: str, con: duckdb.DuckDBPyConnection, table: str, columns: Mapping[str, str]
    ) -> None:
        """Create temporary DuckDB ``table`` from the query's rows, streamed in Arrow batches.

        ``columns``: DuckDB type of each column of the query; SQLite itself has no types, and a column that is
        NULL in the first batch would come as integers.
        """
        casts = ", ".join(f'CAST("{name}" AS {kind}) AS "{name}"' for name, kind in columns.items())
        try:
            with (
                adbc_driver_sqlite.connect(self.uri) as database,
                adbc_driver_manager.AdbcConnection(database) as connection,
                adbc_driver_manager.AdbcStatement(connection) as statement,
            ):
                statement.set_options(**{"adbc.sqlite.query.batch_rows": "65536"})
                statement.set_sql_query(query)
                stream, _ = statement.execute_query()
                con.register("amd_stream", stream)
                try:
                    con.execute(f"CREATE TEMP TABLE {table} AS SELECT {casts} FROM amd_stream")
                finally:
                    con.unregister("amd_stream")
        except (adbc_driver_manager.Error, duckdb.Error) as error:
            raise self.broken(error) from error
