"""Write a trace: readers fill staging tables in DuckDB, ``finish`` turns them into the folder.

The folder appears whole or not at all: everything is written to ``<out>.partial`` and renamed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal

import duckdb

from profrun.contract.ends import DISK_FULL_ERRORS
from profrun.errors import DiskFullError, InputError, UnavailableError, bounded
from profrun.traces.engine_path import engine_path, sql_path
from profrun.traces.meta import TraceMeta
from profrun.traces.schema import FORMAT_VERSION, TABLES

if TYPE_CHECKING:
    from profrun.traces.causality.model import Ids, Ints
    from profrun.traces.checks_slices import Slices

Clocks = Literal["repair", "keep"]
"""What to do with GPU times that cannot be true."""

MAX_THREADS = 4
"""More would each hold their own read buffers and break the memory bound on large machines."""

_FEW_NAMES = 1 << 14
"""Names that may travel as an enumeration: Parquet repeats all of it in each group of 122,880 rows."""

_MOST_RUNS = 64
"""Most runs of tracks that ``by_track`` reads one by one."""

_REFUSED = (duckdb.ConversionException, duckdb.OutOfRangeException, duckdb.InvalidInputException)
"""What the engine raises for a value that a column cannot hold."""

MEMORY = 300_000_000
"""Bytes that the engine may hold while a trace of up to ``ROWS_IN_MEMORY`` rows is made. What exceeds them is
written to files. Joins of more rows cannot be written to files, so each further row adds ``ROW_BYTES``."""
ROWS_IN_MEMORY = 4_000_000
ROW_BYTES = 120
MOST_OF_EXAMPLE = 300
"""Characters of an example in the issues table."""

_ORDER = {
    "slices": "ORDER BY track, ts_ns, dur_ns DESC, slice",
    "counters": "ORDER BY track, ts_ns, name",
}


def _out_of_space(error: BaseException | None) -> bool:
    if isinstance(error, OSError):
        return error.errno in DISK_FULL_ERRORS
    return isinstance(error, duckdb.IOException) and "No space left" in str(error)


def _is_encodable(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def encodable(text: str) -> str:
    """The text with U+FFFD in place of lone surrogates, which UTF-8 and the engine cannot hold."""
    return text if _is_encodable(text) else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class TraceWriter:
    """Collects one trace. Use as a context manager; call ``finish`` once.

    Attributes:
        con: the DuckDB connection with one empty staging table for each table of the schema, under its
            own name. Readers fill them with SQL (fast) or with ``insert`` (small sources).
        scratch: where readers may put files of their own (not made yet); gone when the trace appears.
        meta: what goes into meta.json; the reader sets source, collector, vendor, ...
    """

    def __init__(self, out: Path, *, memory_limit: str = f"{MEMORY}B", threads: int | None = None) -> None:
        self.out = Path(out)
        if self.out.exists() and any(self.out.iterdir() if self.out.is_dir() else [self.out]):
            raise InputError(f"{self.out} exists already", fix="name another --out or remove it")
        self.partial = self.out.with_name(self.out.name + ".partial")
        shutil.rmtree(self.partial, ignore_errors=True)
        try:
            self.partial.mkdir(parents=True)
        except OSError as error:
            raise UnavailableError(
                f"{self.partial} cannot be made", why=error.strerror, fix="name another --out"
            ) from error
        self.scratch = self.partial / "scratch"
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": memory_limit,
            "temp_directory": engine_path(self.partial / "spill"),
            "threads": threads or min(MAX_THREADS, os.cpu_count() or 1),
        }
        self._delivered: dict[str, str] = {}
        self._variables: dict[str, str] = {}
        self._begun: dict[str, tuple[Future[int], duckdb.DuckDBPyConnection]] = {}
        self.con = duckdb.connect(":memory:", config=config)  # what exceeds the limit goes to spill
        self.con.execute(";".join(table.ddl() for table in TABLES.values()))  # each call takes half a ms
        self.meta: TraceMeta = {
            "format_version": FORMAT_VERSION,
            "vendor": "none",
            "tool_version": None,
            "epoch_ns": None,
            "clock": "session",
            "files": [],
            "replayed": False,
            "launch_blocking": None,
            "job": None,
            "counts": {},
            "sessions": [],
            "extra": {},
        }

    def room_for(self, rows: int) -> None:
        """Let the engine hold more for a large recording: a reader says how many events it has staged."""
        if rows > ROWS_IN_MEMORY:
            held = MEMORY + ROW_BYTES * (rows - ROWS_IN_MEMORY)
            self.con.execute(f"SET memory_limit = '{held}B'")

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for future, cursor in self._begun.values():
            if not future.done():
                cursor.interrupt()
                future.exception()  # nothing may write into the folder when it goes
        self.con.close()
        shutil.rmtree(self.partial, ignore_errors=True)
        if _out_of_space(error):
            raise DiskFullError(
                f"no space left to write {self.out}",
                why="the trace and what does not fit into memory are written beside it",
                fix="free some space or name an --out on another disk",
            ) from error
        if isinstance(error, duckdb.OutOfMemoryException):
            raise UnavailableError(
                f"not enough memory to write {self.out}",
                why=str(error).splitlines()[0],
                fix="free memory and try again, or give fewer files at once",
            ) from error

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Append rows (tuples in the order of ``columns``) to a staging table; other columns are NULL."""
        batch = [tuple(row) for row in rows]
        if not batch:
            return
        batch = self._encodable(table, batch)
        names = ", ".join(f'"{name}"' for name in columns)
        marks = "(" + ", ".join("?" for _ in columns) + ")"
        for start in range(0, len(batch), 100):  # one statement per row costs 40 times as much
            part = batch[start : start + 100]
            try:
                self.con.execute(
                    f'INSERT INTO "{table}" ({names}) VALUES {", ".join([marks] * len(part))}',
                    [value for row in part for value in row],
                )
            except _REFUSED as error:
                raise InputError(
                    f"a value of the file fits no column of the table {table}",
                    why=" ".join(str(error).split("\n\n")[0].split()),
                    fix="record or export it again",
                ) from error

    def _encodable(self, table: str, batch: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
        """The rows with U+FFFD for what UTF-8 cannot hold: lone surrogates, which JSON can spell."""
        changed = 0
        for place, row in enumerate(batch):
            if any(isinstance(value, str) and not _is_encodable(value) for value in row):
                batch[place] = tuple(encodable(value) if isinstance(value, str) else value for value in row)
                changed += 1
        if table != "issues":
            self.issue("odd_text", changed, "text that is no valid Unicode: U+FFFD stands for what is not")
        return batch

    def issue(self, code: str, count: int, message: str, example: str | None = None) -> None:
        """Record what was repaired, clipped, guessed or could not be placed. ``count`` 0 records nothing.

        ``example``: any text of the file; long text is shortened, blank text is no example.
        """
        if count:
            shown = bounded(example or "", MOST_OF_EXAMPLE)
            row = (code, count, bounded(message), shown if shown.strip() else None)
            self.insert("issues", ("code", "count", "message", "example"), [row])

    def deliver(self, table: str, query: str, *, begin: bool = False) -> None:
        """Let ``finish`` write the rows of ``query`` instead of the staging table's.

        For large tables that are in order already and need not be stored once more. The query yields the
        table's columns in order; for ``slices`` ordered by (track, ts_ns, -dur_ns), without a join (the
        engine's joins do not keep an order: see ``names``).

        Args:
            table: name of the table.
            query: its rows.
            begin: write it at once, beside what the reader does next. What the query reads must stay as it
                is; of the ``names`` it uses no other query may make use afterwards.
        """
        self._delivered[table] = query
        if begin:
            cursor, pool = self.con.cursor(), ThreadPoolExecutor(1, "profrun-write")
            for name, value in self._variables.items():
                if f"'{name}'" in query:  # a variable belongs to one connection
                    cursor.execute(f"SET VARIABLE {name} = {value}")
                    self.con.execute(f"RESET VARIABLE {name}")
            self._begun[table] = pool.submit(self._copy, cursor, table), cursor
            pool.shutdown(wait=False)

    def deliver_slices(self, on_thread: str, rest: str, labels: str) -> None:
        """Deliver the slices of two sorted tables at once, kinds and names as text.

        Args:
            on_thread: table of the slices on threads: kind, label, ts, dur, track, parent, depth, corr; a
                row's place is its slice.
            rest: table of all others: slice, kind, label, ts, dur, track, corr, launch.
            labels: table of the names (see ``names``).
        """
        columns = "{}, kind, label, ts, dur, track, {}, {}, corr, {}"
        thread = columns.format("rowid AS slice", "parent", "depth", "NULL::BIGINT AS launch")
        other = columns.format("slice", "NULL::BIGINT AS parent", "NULL::INTEGER AS depth", "launch")
        rows = self.by_track(
            f"SELECT {thread} FROM {on_thread}", f"SELECT {other} FROM {rest}", "track, ts, dur DESC, slice"
        )
        self.deliver(
            "slices",
            f"SELECT slice, kind::VARCHAR AS kind, {self.names(labels)} AS name, ts AS ts_ns, dur AS dur_ns, "
            f"track, parent, depth, corr AS correlation, launch FROM ({rows})",
            begin=True,
        )

    def by_track(self, on_thread: str, rest: str, order: str) -> str:
        """SQL that puts the rows of two queries in the order of tracks, without sorting them again.

        Call it when ``tracks`` is filled. Both are sorted and share no track, so that their runs of tracks
        one after the other are the trace's order.

        Args:
            on_thread: SELECT ... FROM a table, without conditions: rows of tracks of the kind thread.
            rest: the same for rows of all other tracks; same columns, one of them track.
            order: what to sort by where the tracks of threads and others take turns too often.
        """
        runs = self.con.execute(
            "SELECT min(track), max(track), thread FROM (SELECT *, track - row_number() OVER (PARTITION BY "
            "thread ORDER BY track) AS run FROM (SELECT track, kind = 'thread' AS thread FROM tracks)) "
            "GROUP BY thread, run ORDER BY 1"
        ).fetchall()
        if not 0 < len(runs) <= _MOST_RUNS:
            return f"FROM ({on_thread} UNION ALL {rest}) ORDER BY {order}"
        return " UNION ALL ".join(
            f"{on_thread if thread else rest} WHERE track BETWEEN {first} AND {last}"
            for first, last, thread in runs
        )

    def names(self, table: str, label: str = "label") -> str:
        """SQL that turns the integer column ``label`` of a delivered query into its name.

        The engine's joins do not keep the order of rows, this does. Few names travel as an enumeration, which
        Parquet takes as its dictionary without looking at each row's text.

        Args:
            table: has columns label (0, 1, 2, ... without gaps) and name, not NULL.
            label: SQL of the label, never NULL.
        """
        few = self.con.execute(f"SELECT count(*) BETWEEN 1 AND {_FEW_NAMES} FROM {table}").fetchone()
        kind = "VARCHAR"
        if few and few[0]:
            kind = f"{table}_text"
            self.con.execute(f"CREATE TYPE {kind} AS ENUM (SELECT DISTINCT name FROM {table})")
        name = f"{table}_names"
        value = f"(SELECT coalesce(list(name::{kind} ORDER BY label), []::{kind}[]) FROM {table})"
        self._variables[name] = value
        self.con.execute(f"SET VARIABLE {name} = {value}")
        return f"getvariable('{name}')[{label} + 1]"

    def finish(self, *, check: bool = False, clocks: Clocks | None = None) -> Path:
        """Write Parquet and meta.json, then move the folder into place; returns its path.

        Args:
            check: check the written files against all invariants of the format before they appear, with the
                code of ``Trace.check()``.
            clocks: judge the clocks of the GPUs (``meta.clocks``) and the records that contradict each other
                (``meta.contradictions``). 'repair' puts GPU times that cannot be true on the host's clock,
                'keep' leaves all times as they are. None: nothing is judged.

        Raises:
            UnavailableError: no space left (raised by the context manager).
            InputError: ``check`` found a broken invariant: the files are damaged, or the reader has a bug.
        """
        rows = {table: self._write(table) for table in TABLES}
        self._read_back()
        kinds = self.con.execute("SELECT kind, count(*) FROM slices GROUP BY kind ORDER BY kind").fetchall()
        self.meta["counts"] = {"rows": rows, "slices": dict(kinds)}
        if check or clocks:
            from profrun.traces.checks_slices import Slices

            slices = Slices(self.con)
            if check:
                self._check(slices)
            if clocks and self._judge(slices, clocks) and check:
                self._check(Slices(self.con))
        self.con.close()
        for folder in (self.partial / "spill", self.scratch):
            shutil.rmtree(folder, ignore_errors=True)
        meta = json.dumps(self.meta, indent=1) + "\n"
        (self.partial / "meta.json").write_text(meta, encoding="utf-8")
        if self.out.exists():
            self.out.rmdir()
        self.partial.rename(self.out)
        return self.out

    def _check(self, slices: Slices) -> None:
        from profrun.traces.checks import problems

        found = problems(self.con, json.loads(json.dumps(self.meta)), slices)
        if found:
            names = ", ".join(file["name"] for file in self.meta["files"][:3]) or "what was read"
            raise InputError(
                f"{names} cannot become a trace",
                why="; ".join(found),
                fix="record or export it again if it is damaged; if it is as its profiler wrote it, it is a "
                "bug of profrun: please report it with the file",
            )

    def _judge(self, slices: Slices, clocks: Clocks) -> bool:
        """Fill ``meta.clocks`` and ``meta.contradictions``; whether times were moved."""
        from profrun.traces.causality.judge import judge, judge_and_repair
        from profrun.traces.causality.model import clock_entries, contradiction_entries
        from profrun.traces.causality.recording import recording_of

        if self.meta["replayed"]:
            self.meta["clocks"], self.meta["contradictions"] = [], []
            return False
        recording = recording_of(self.con, slices.columns(), meta=self.meta)
        found, moves = judge_and_repair(recording) if clocks == "repair" else (judge(recording), None)
        self.meta["clocks"] = clock_entries(found.clocks)
        self.meta["contradictions"] = contradiction_entries(found.contradictions)
        if moves is not None:
            self._move(*moves)
        return moves is not None

    def _move(self, ids: Ids, starts: Ints, ends: Ints) -> None:
        """Write the slices again with other times for some of them."""
        self.con.register("moved", {"slice": ids, "ts": starts, "dur": ends - starts})
        file = self._file("slices")
        part = file[:-1] + ".moved'"
        self.con.execute(
            "COPY (SELECT s.* REPLACE (coalesce(m.ts, s.ts_ns) AS ts_ns, coalesce(m.dur, s.dur_ns) AS "
            f"dur_ns) FROM slices s LEFT JOIN moved m ON m.slice = s.slice {_ORDER['slices']}) "
            f"TO {part} (FORMAT parquet, COMPRESSION zstd)"
        )
        self.con.unregister("moved")
        (self.partial / "slices.parquet.moved").replace(self.partial / "slices.parquet")
        self.con.execute(f"CREATE OR REPLACE VIEW slices AS SELECT * FROM read_parquet({file})")

    def _file(self, table: str) -> str:
        """SQL literal of the path of a table's file."""
        return sql_path(self.partial / f"{table}.parquet")

    def _write(self, table: str) -> int:
        """Write one table; returns the number of rows in its file."""
        return self._begun[table][0].result() if table in self._begun else self._copy(self.con, table)

    def _copy(self, con: duckdb.DuckDBPyConnection, table: str) -> int:
        """Write one table by this connection; returns the number of rows in its file."""
        query = self._delivered.get(table) or f'SELECT * FROM "{table}" {_ORDER.get(table, "")}'
        options = "FORMAT parquet, COMPRESSION zstd"
        (rows,) = con.execute(f"COPY ({query}) TO {self._file(table)} ({options})").fetchone() or (0,)
        return int(rows)

    def _read_back(self) -> None:
        """Put the files in the place of the staging tables, as ``Trace`` shows them: queries from now on
        read what was written, and the memory of the staging tables is free."""
        held = self.con.execute(
            "SELECT database_name, schema_name, table_name FROM duckdb_tables() WHERE NOT internal"
        ).fetchall()
        drops = [
            "DROP TABLE " + ".".join('"' + part.replace('"', '""') + '"' for part in place) for place in held
        ]
        views = [f'CREATE VIEW "{name}" AS SELECT * FROM read_parquet({self._file(name)})' for name in TABLES]
        self.con.execute(";".join(drops + views))
