"""Opens what nsys leaves: a SQLite export or a folder of Parquet files, behind one small interface."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import duckdb

from profrun.collectors.nsys.tables import Stage
from profrun.collectors.sqlite import SqliteFile, quoted, text_column
from profrun.errors import InputError
from profrun.traces.engine_path import sql_path


class Export(Protocol):
    """An export of nsys, whatever holds it.

    Attributes:
        path: the file or folder that was given.
        columns: columns of every table, by name.
    """

    path: Path
    columns: dict[str, tuple[str, ...]]

    def load(self, con: duckdb.DuckDBPyConnection, stage: Stage, table: str, src: int) -> int:
        """Append one table to its staging table; returns rows. Any thread may call it."""

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """A small query over the export's own tables."""

    def most_rows(self, table: str) -> int | None:
        """A bound of a table's rows that costs no scan, None where there is none."""

    def close(self) -> None:
        """Release it."""


class SqliteExport:
    """``nsys export --type=sqlite``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = SqliteFile(path)
        self.columns = self._file.columns

    def load(self, con: duckdb.DuckDBPyConnection, stage: Stage, table: str, src: int) -> int:
        """See ``Export``."""
        present = self.columns[table]
        if _unplaced(stage, present):
            return 0
        selected, inserted = [], []
        for name, column in stage.columns.items():
            if column not in present:
                continue
            if name in stage.text:
                selected.append(f"{text_column(column)} AS {name}")
                inserted.append(f"nullif({name}, chr(1)) AS {name}")
            else:
                selected.append(f"{quoted(column)} AS {name}")
                inserted.append(f"CAST({name} AS {stage.type(name)}) AS {name}")
        if not selected:
            return 0
        query = f"SELECT {', '.join(selected)} FROM {quoted(table)}{_where(stage, present)}"
        insert = (
            f"INSERT INTO {stage.name} BY NAME SELECT {src} AS src, {', '.join(inserted)} FROM sqlite_rows"
        )
        return self._file.load(con, insert, query)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """See ``Export``."""
        return self._file.rows(query)

    def each_row(self, query: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a large query, one by one."""
        return self._file.each_row(query)

    def most_rows(self, table: str) -> int | None:
        """See ``Export``: row ids are distinct."""
        ends = ", ".join(f"(SELECT {end}(rowid) FROM {quoted(table)})" for end in ("min", "max"))
        try:
            low, high = self._file.rows(f"SELECT {ends}")[0]
        except InputError:  # a view, or a table without row ids
            return None
        return None if low is None else int(high) - int(low) + 1

    def close(self) -> None:
        """See ``Export``."""
        self._file.close()


class ParquetExport:
    """``nsys export --type=parquetdir``: one Parquet file per table."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._con = duckdb.connect(":memory:")
        self.columns: dict[str, tuple[str, ...]] = {}
        self._files: dict[str, str] = {}
        for file in sorted(path.glob("*.parquet")):
            literal = sql_path(file)
            try:
                self._con.execute(f"CREATE VIEW {quoted(file.stem)} AS SELECT * FROM read_parquet({literal})")
                described = self._con.execute(f"DESCRIBE {quoted(file.stem)}").fetchall()
            except duckdb.Error as error:
                raise InputError(
                    f"{file} cannot be read as Parquet", why=str(error), fix="export it again"
                ) from error
            self.columns[file.stem] = tuple(row[0] for row in described)
            self._files[file.stem] = literal

    def load(self, con: duckdb.DuckDBPyConnection, stage: Stage, table: str, src: int) -> int:
        """See ``Export``."""
        present = self.columns[table]
        if _unplaced(stage, present):
            return 0
        selected = []
        for name, column in stage.columns.items():
            if column in present:
                value = f"CAST({quoted(column)} AS {stage.type(name)})"
                selected.append(
                    f"nullif({value}, '') AS {name}" if name in stage.text else f"{value} AS {name}"
                )
        if not selected:
            return 0
        try:
            row = con.execute(
                f"INSERT INTO {stage.name} BY NAME SELECT {src} AS src, {', '.join(selected)} "
                f"FROM read_parquet({self._files[table]}){_where(stage, present)}"
            ).fetchone()
        except duckdb.Error as error:
            raise InputError(
                f"{self.path}/{table}.parquet is damaged", why=str(error), fix="export it again"
            ) from error
        return int(row[0]) if row else 0

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """See ``Export``."""
        try:
            return self._con.execute(query).fetchall()
        except duckdb.Error as error:
            raise InputError(f"{self.path} is damaged", why=str(error), fix="export it again") from error

    def most_rows(self, table: str) -> int | None:
        """See ``Export``: Parquet files state how many rows they have."""
        return int(self.rows(f"SELECT count(*) FROM {quoted(table)}")[0][0])

    def close(self) -> None:
        """See ``Export``."""
        self._con.close()


def open_export(path: Path) -> Export:
    """A SQLite export or a parquetdir.

    Raises:
        InputError: it cannot be read.
    """
    return ParquetExport(path) if path.is_dir() else SqliteExport(path)


def _where(stage: Stage, present: tuple[str, ...]) -> str:
    """Filters of the stage; a record without a start has no place on any axis."""
    conditions = [stage.where[1]] if stage.where and stage.where[0] in present else []
    if stage.columns.get("start") in present:
        conditions.append('"start" IS NOT NULL')
    return " WHERE " + " AND ".join(conditions) if conditions else ""


def without_start(export: Export, stage: Stage, table: str) -> int:
    """Rows of a table that ``load`` left out because they say no start."""
    if "start" not in stage.columns:
        return 0
    where = "" if _unplaced(stage, export.columns[table]) else ' WHERE "start" IS NULL'
    return int(export.rows(f"SELECT count(*) FROM {quoted(table)}{where}")[0][0])


def _unplaced(stage: Stage, present: tuple[str, ...]) -> bool:
    """Does the table lack the column that says when its records began?"""
    return "start" in stage.columns and stage.columns["start"] not in present
