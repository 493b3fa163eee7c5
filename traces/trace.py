"""Open a trace: DuckDB views over the Parquet files, and the named SQL views on top."""

from __future__ import annotations

import contextlib
import itertools
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import duckdb

from profrun.contract import json_text
from profrun.errors import InputError, ProfrunError, UsageError
from profrun.traces.confine import confine
from profrun.traces.engine_path import sql_path
from profrun.traces.memo import Memo
from profrun.traces.meta import TraceMeta
from profrun.traces.schema import FORMAT_VERSION, TABLES, Table
from profrun.traces.shape import column_problems, meta_problem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Result:
    """Rows of a query: column names and tuples."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def dicts(self) -> list[dict[str, Any]]:
        """Rows as dicts."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def scalar(self) -> Any:
        """The first value of the first row, or None when there is no row."""
        return self.rows[0][0] if self.rows else None


@dataclass(frozen=True)
class Answer:
    """An answer that is not held in memory: column names, and lists of rows, which can be read once.

    Reading the rows raises InputError where the query fails only then.
    """

    columns: tuple[str, ...]
    batches: Iterator[list[tuple[Any, ...]]]


_BATCH = 256
"""Rows that are fetched at once."""
_LISTS = re.compile(
    r"\b(?:show|describe|summarize|pragma\w*|information_schema|duckdb_\w+|pg_\w+|query\w*)\b"
)
"""Words of queries that may ask for views without their names."""
_NUMBERS = itertools.count()
"""Every open trace has an in-memory database of its own name, so that others can connect to it."""

Self = TypeVar("Self", bound="Trace")


class Trace:
    """A trace folder, read only: its engine opens no file but the trace's tables, and no network.

    Args:
        path: the folder.
        views: offer the named views beside the tables. They are made at the first query that may use one:
            making them costs more than opening a small trace.
        answers: files that the caller writes answers into by the engine.

    Attributes:
        path: the folder, absolute.
        meta: the content of meta.json.
        memo: results of memoised functions of this trace (see ``memo``).

    Raises:
        InputError: the folder is not a trace, or of a format version this profrun does not know.
    """

    def __init__(self, path: Path | str, *, views: bool = True, answers: Sequence[Path] = ()) -> None:
        self.meta = _read_meta(Path(path))
        self.path = Path(path).absolute()
        self.memo = Memo()
        self._database = f":memory:trace{next(_NUMBERS)}"
        self._connection: duckdb.DuckDBPyConnection | None = duckdb.connect(self._database)
        self._views_wanted = views
        self._spill: Path | None = None
        read = []
        for table in TABLES.values():
            file = Path(path) / f"{table.name}.parquet"
            if not file.is_file():  # a pipe in its place would be waited for
                self._must_be_empty(table.name, file)
                self.tables.execute(table.ddl())
                continue
            try:
                self._offer(table, file)
                read.append(file)
            except duckdb.Error as error:
                self.close()
                raise _unreadable(file, error) from error
        try:
            found = column_problems(self.tables)
        except duckdb.Error as error:  # names of columns that are no text
            self.close()
            raise _unreadable(self.path, error) from error
        self._refuse_unless_sound(found)
        self._spill = confine(self.tables, [*read, *answers])

    def _refuse_unless_sound(self, found: Sequence[str]) -> None:
        """Close the trace and raise InputError when there are problems."""
        if found:
            self.close()
            more = f" and {len(found) - 1} more" if len(found) > 1 else ""
            raise InputError(
                f"{self.path} breaks the trace format", why=found[0] + more, fix="normalize the source again"
            )

    def _offer(self, table: Table, file: Path) -> None:
        """Make the view of a table; columns that its format did not have yet are NULL."""
        quoted = sql_path(file.absolute())
        later = ""
        if self.meta["format_version"] != FORMAT_VERSION:
            held = self.tables.execute(f"SELECT * FROM read_parquet({quoted}) LIMIT 0").description or ()
            names = {column[0] for column in held}
            later = "".join(
                f', NULL::{column.type} AS "{column.name}"'
                for column in table.columns
                if not column.required and column.name not in names
            )
        self.tables.execute(f'CREATE VIEW "{table.name}" AS SELECT *{later} FROM read_parquet({quoted})')

    def _must_be_empty(self, table: str, file: Path) -> None:
        """A table without a file has no rows, or the trace is damaged: ``meta.counts`` tells."""
        rows = self.meta.get("counts", {}).get("rows", {})
        if rows.get(table):
            self.close()
            raise InputError(
                f"{file} is missing",
                why=f"the trace had {rows[table]} rows in it",
                fix="copy the whole folder, or normalize the source again",
            )

    @property
    def tables(self) -> duckdb.DuckDBPyConnection:
        """The connection as it was opened, with the tables and perhaps without the named views.

        Raises:
            UsageError: the trace was closed.
        """
        if self._connection is None:
            raise UsageError(f"the trace {self.path} is closed", fix="open it again")
        return self._connection

    @property
    def con(self) -> duckdb.DuckDBPyConnection:
        """The connection, with the tables and the named views."""
        if self._views_wanted:
            from profrun.traces.views import create_views

            self._views_wanted = False
            create_views(self.tables)
        return self.tables

    @property
    def database(self) -> str:
        """What ``duckdb.connect`` opens the in-memory database by, with the tables and the named views.

        The database exists as long as the trace or one of those connections is open.

        Raises:
            UsageError: the trace was closed.
        """
        _ = self.con
        return self._database

    def _for(self, query: str) -> duckdb.DuckDBPyConnection:
        """The connection, with the named views when the query may ask for one."""
        if self._views_wanted:
            from profrun.traces.views import VIEW_NAMES

            text = query.lower()
            if VIEW_NAMES.search(text) or _LISTS.search(text):
                return self.con
        return self.tables

    def stream(self, query: str) -> Answer:
        """Begin to answer a query from outside; the rows come as they are asked for.

        Raises:
            UsageError: it is not one SELECT that changes nothing (``statements.one_select``).
            InputError: the query is wrong, or needs too much memory; the engine's own words are in the
                message.
        """
        from profrun.traces.statements import one_select

        try:
            one_select(self.con, query)
            cursor = self.con.execute(query)
        except duckdb.Error as error:
            raise query_error(error) from error
        return Answer(tuple(item[0] for item in cursor.description or ()), _batches(cursor))

    def sql(self, query: str, params: Sequence[Any] = ()) -> Result:
        """Run SQL of profrun's own over the tables and named views; times are int64 ns.

        Text from outside goes to ``stream``, which holds all of it to reading.

        Raises:
            InputError: the query is wrong; the engine's own words are in the message.
        """
        try:
            cursor = self._for(query).execute(query, list(params))
        except duckdb.Error as error:
            raise query_error(error) from error
        columns = tuple(item[0] for item in cursor.description or ())
        return Result(columns, cursor.fetchall())

    def check(self) -> None:
        """Raise InputError when an invariant of the format does not hold (see ``checks.problems``)."""
        from profrun.traces.checks import problems

        found = problems(self.tables, self.meta)
        if found:
            raise InputError(f"{self.path} breaks the trace format: " + "; ".join(found))

    def close(self) -> None:
        """Release the engine and what was worked out."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        self.memo = Memo()
        self.remove_spill()

    def remove_spill(self) -> None:
        """Remove what the engine wrote for want of memory; for a process that ends at once, too."""
        if self._spill is not None:
            shutil.rmtree(self._spill, ignore_errors=True)

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it. An error that nobody expected is the fault of a trace that breaks its format.

        Raises:
            InputError: there was such an error, and the trace does break it.
        """
        try:
            if isinstance(error, Exception) and not isinstance(error, ProfrunError | OSError):
                self._blame(error)
        finally:
            self.close()

    def _blame(self, error: Exception) -> None:
        if self._connection is None:
            return
        try:
            self.check()
            # The check leaves out columns on which nothing depends, and a count would unpack no page.
            for name in TABLES:
                self._connection.execute(f'SELECT max(hash(t)) FROM "{name}" t').fetchall()
        except (InputError, duckdb.Error) as found:
            why = str(found).splitlines()[0]
            raise InputError(f"{self.path} is damaged", why=why, fix="normalize the source again") from error


def _unreadable(path: Path, error: duckdb.Error) -> InputError:
    """The error about a table or a trace that the engine cannot read."""
    return InputError(
        f"{path} cannot be read", why=str(error).splitlines()[0], fix="normalize the source again"
    )


@contextlib.contextmanager
def registered(
    connection: duckdb.DuckDBPyConnection, name: str, columns: Mapping[str, NDArray[np.int64]]
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Offer arrays to queries as a table, inside ``with`` only.

    Args:
        name: of the table. columns: name of each column -> its values, all of one length.
    """
    connection.register(name, columns)
    try:
        yield connection
    finally:
        connection.unregister(name)


def _batches(cursor: duckdb.DuckDBPyConnection) -> Iterator[list[tuple[Any, ...]]]:
    try:
        while rows := cursor.fetchmany(_BATCH):
            yield rows
    except duckdb.Error as error:
        raise query_error(error) from error


def query_error(error: duckdb.Error) -> InputError:
    """What a failed query means to a person, with the engine's own words in it."""
    if isinstance(error, duckdb.OutOfMemoryException):
        return InputError(
            "the query needs too much memory",
            why=str(error).split("\n", maxsplit=1)[0],
            fix="ask for fewer rows or shorter values, or export tables with --parquet",
        )
    return InputError(
        f"query failed: {' '.join(str(error).split())}", fix="see docs/trace-format.md for tables and views"
    )


def _read_meta(path: Path) -> TraceMeta:
    file = path / "meta.json"
    if not file.is_file():
        raise InputError(
            f"{path} is not a trace",
            why="it has no meta.json",
            fix="make one with `profrun normalize FILE --out DIR`",
        )
    try:
        meta: dict[str, object] = json_text.read(file, follow=True)
        major = int(str(meta["format_version"]).split(".")[0])
        problem = meta_problem(meta)
        if problem is not None:
            raise ValueError(problem)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{file} cannot be read", why=str(error), fix="normalize the source again"
        ) from error
    if major != int(FORMAT_VERSION.split(".", maxsplit=1)[0]):
        raise InputError(
            f"{path} has trace format {meta['format_version']}, this profrun reads {FORMAT_VERSION}",
            fix="normalize the source again with this profrun, or use the one that wrote it",
        )
    return cast("TraceMeta", meta)
