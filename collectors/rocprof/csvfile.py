"""A CSV file of an AMD tool as a DuckDB table of texts: header by content, quoted or not, bad rows
counted."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, cast

import duckdb

from profrun.collectors.reading import Source
from profrun.collectors.rocprof.staging import Staging
from profrun.collectors.unpack import DAMAGED
from profrun.errors import InputError
from profrun.traces.engine_path import sql_path


@dataclass(frozen=True)
class Header:
    """Column names of a CSV file in file order: in lower case and unique, and as they are written."""

    names: tuple[str, ...]
    original: tuple[str, ...]

    def has(self, *names: str) -> bool:
        """Are all these columns there?"""
        return set(names) <= set(self.names)

    def text(self, *aliases: str) -> str:
        """SQL for the first of these columns that is there, empty text as NULL; NULL when none is."""
        for name in aliases:
            if name in self.names:
                return f"nullif(trim({_quoted(name)}), '')"
        return "NULL::VARCHAR"

    def int(self, *aliases: str) -> str:
        """The same as a BIGINT; what is no int64 is NULL."""
        return f"try_cast({self.text(*aliases)} AS BIGINT)"


def header(source: Source) -> Header | None:
    """The header of a file that starts like a CSV; None for anything else. Never raises."""
    first = source.head.split(b"\n", 1)[0].removeprefix(b"\xef\xbb\xbf").strip()
    if b"\n" not in source.head and len(source.head) >= 1 << 16:
        first = _long_line(source)
    if not first or b"\0" in first or first[:1] in (b"{", b"[") or b"," not in first:
        return None
    try:
        names = next(csv.reader(io.StringIO(first.decode("utf-8"))))
    except (csv.Error, UnicodeDecodeError, StopIteration):
        return None
    unique: list[str] = []
    for name in names:
        base = name.strip().lower() or "column"
        text, number = base, 1
        while text in unique:
            number += 1
            text = f"{base}.{number}"
        unique.append(text)
    return Header(tuple(unique), tuple(name.strip() for name in names))


def _long_line(source: Source) -> bytes:
    """First line of a file whose header is longer than what was seen of it (thousands of counters)."""
    try:
        with gzip.open(source.path) if source.gzip else source.path.open("rb") as file:
            return bytes(file.readline(1 << 22)).strip()
    except DAMAGED:
        return b""


def load(
    staging: Staging,
    source: Source,
    columns: Header,
    table: str = "csv_raw",
    only: Sequence[str] | None = None,
) -> int:
    """Create temporary ``table`` of texts, one row a record; returns how many rows there are.

    ``only``: the columns to keep, None for all.

    Rows that cannot be split into fields are left out and recorded as the issue ``csv_row_not_read``.
    """
    con = staging.con
    types = ", ".join(f"{_quoted(name, quote=chr(39))}: 'VARCHAR'" for name in columns.names)
    kept = "*" if only is None else ", ".join(_quoted(name) for name in only)
    con.execute("DROP TABLE IF EXISTS reject_errors")
    con.execute("DROP TABLE IF EXISTS reject_scans")
    try:
        con.execute(
            f"CREATE TEMP TABLE {table} AS SELECT {kept} FROM read_csv({sql_path(source.path)}, "
            f"columns = {{{types}}}, "
            "header = true, auto_detect = false, delim = ',', quote = '\"', escape = '\"', "
            "null_padding = true, strict_mode = false, parallel = false, max_line_size = 16777216, "
            f"store_rejects = true, compression = '{'gzip' if source.gzip else 'none'}')"
        )
    except duckdb.Error as error:
        raise InputError(
            f"{source.path.name} cannot be read as CSV",
            why=str(error).splitlines()[0],
            fix="copy it again after the profiler has ended",
        ) from error
    rejected = con.execute("SELECT count(DISTINCT line), any_value(csv_line) FROM reject_errors").fetchone()
    if rejected:
        example = str(rejected[1])[:200] if rejected[1] is not None else None
        staging.writer.issue("csv_row_not_read", rejected[0], "lines that are not rows of the table", example)
    found = con.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(found[0]) if found else 0


def rows(source: Source) -> Iterator[list[str]]:
    """Rows below the header, for tables of thousands of columns and few rows; invalid bytes replaced."""
    with gzip.open(source.path) if source.gzip else source.path.open("rb") as file:
        text = io.TextIOWrapper(cast("IO[bytes]", file), encoding="utf-8", errors="replace", newline="")
        reader = csv.reader(line.replace("\0", "") for line in text)
        try:
            next(reader, None)
            yield from reader
        except (*DAMAGED, csv.Error) as error:
            raise InputError(
                f"{source.path.name} cannot be read as CSV",
                why=str(error),
                fix="copy it again after the profiler has ended",
            ) from error


def unreadable(staging: Staging, needed: Sequence[str], name: str, table: str = "csv_raw") -> None:
    """Remove rows in which one of ``needed`` (SQL) is NULL, and count them: dots and cut-off last lines."""
    rule = " OR ".join(f"({column}) IS NULL" for column in needed)
    found = staging.con.execute(f"SELECT count(*) FROM {table} WHERE {rule}").fetchone()
    if found and found[0]:
        staging.writer.issue("csv_row_not_read", found[0], "rows without a number where one must be", name)
        staging.con.execute(f"DELETE FROM {table} WHERE {rule}")


def _quoted(name: str, quote: str = '"') -> str:
    return quote + name.replace(quote, quote * 2) + quote
