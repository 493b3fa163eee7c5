"""``profrun query TRACE SQL``."""

from __future__ import annotations

import contextlib
import os
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profrun.cli.options import JsonOption, RunsOption, TraceArgument, runs_root
from profrun.cli.output import emit, note, say, terminal_style
from profrun.errors import InputError, UsageError
from profrun.runner.references import opened

if TYPE_CHECKING:
    from profrun.traces.trace import Result, Trace


EXAMPLES = (
    ("profrun query last/1 'SHOW TABLES'", "the tables and views"),
    ("profrun query last/1 'SELECT * FROM kernels LIMIT 5'", "rows, cut to the terminal"),
    ("profrun query last/1 - < question.sql | cut -f 1", "a query from a file, answer into a pipe"),
    ("profrun query last/1 'FROM slices' --parquet slices.parquet", "a table for pandas or polars"),
)


def command(
    trace: TraceArgument,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="The query; `-` reads it from stdin.")],
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    parquet: Annotated[
        Path | None, typer.Option("--parquet", metavar="FILE", help="Write the answer to a Parquet file.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file of --parquet.")] = False,
    runs: RunsOption = None,
    json_: JsonOption = False,
) -> None:
    """Answer an SQL query over a trace.

    On a terminal the answer is a table that fits; long names are cut. In a pipe or a file each row is a line
    of whole values with tabs between them, below a line of names; NULL is empty.

    Tables and views are listed in docs/trace-format.md; times are int64 ns.
    """
    _need_one_output(csv=csv, json_=json_, parquet=parquet, force=force)
    query = sys.stdin.read() if sql == "-" else sql
    with opened(trace, runs_root(runs)) as found:
        _need_statement(found, query)
        if parquet is not None:
            rows = _write(found, query, parquet)
            emit({"parquet": str(parquet), "rows": rows}) if json_ else note(f"{rows} rows in {parquet}")
            return
        result = found.sql(query)
    if json_:
        emit(
            {"columns": list(result.columns), "rows": [[_plain(cell) for cell in row] for row in result.rows]}
        )
    elif csv:
        import csv as csv_module

        writer = csv_module.writer(sys.stdout, lineterminator="\n")
        writer.writerow(result.columns)
        writer.writerows(result.rows)
    elif sys.stdout.isatty():
        _show(result)
    else:
        for row in (result.columns, *result.rows):
            say("\t".join(_cell(value) for value in row))


def _need_one_output(*, csv: bool, json_: bool, parquet: Path | None, force: bool) -> None:
    """Refuse options that contradict each other, and a file that would be lost.

    Raises:
        UsageError: they do, or the file is there and ``force`` is not given.
    """
    if csv and (json_ or parquet is not None):
        other = "--json" if json_ else "--parquet"
        raise UsageError(f"--csv and {other} are two forms of one answer", fix="choose one of them")
    if force and parquet is None:
        raise UsageError("--force replaces the file of --parquet", fix="add --parquet FILE, or leave it out")
    if parquet is not None and parquet.exists() and (parquet.is_dir() or not force):
        raise UsageError(f"{parquet} exists already", fix="name another file, or replace it with --force")


def _show(result: Result) -> None:
    """Print a table as wide as the terminal, with numbers aligned to the right."""
    from profrun.reports.terminal_layout import Table, lay_out

    numbers = [
        place
        for place in range(len(result.columns))
        if any(isinstance(row[place], (int, float)) for row in result.rows)
    ]
    rows = [[None if value is None else _cell(value) for value in row] for row in result.rows]
    say(lay_out([Table(result.columns, rows, numbers, indent="")], terminal_style()))


def _cell(value: object) -> str:
    """A value in a line of values: what would break the line is written as an escape."""
    text = "" if value is None else str(value)
    return text.translate(_ESCAPES)


_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def _need_statement(trace: Trace, query: str) -> None:
    """Refuse a query of only blanks and comments, to which the engine gives no answer.

    Raises:
        UsageError: there is no statement.
    """
    import duckdb

    with contextlib.suppress(duckdb.Error):  # a wrong statement is reported when the query runs
        if not trace.con.extract_statements(query):
            raise UsageError("there is no query", fix="e.g. profrun query last 'SELECT * FROM steps'")


def _write(trace: Trace, query: str, file: Path) -> int:
    """Write the answer as one Parquet file (zstd), row by row; returns the number of rows.

    The file is written beside its place first, so that a query that fails replaces nothing.
    """
    import duckdb

    part = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        if any("SELECT" not in one.type.name for one in trace.con.extract_statements(query)):
            raise InputError("this query has no rows to write", fix="give a SELECT")
        trace.con.sql(query).write_parquet(str(part), compression="zstd")
        written = trace.con.execute(
            "SELECT count(*) FROM read_parquet($file)", {"file": str(part)}
        ).fetchone()
        part.replace(file)
    except duckdb.Error as error:
        raise InputError(
            f"query failed: {' '.join(str(error).split())}",
            fix="see docs/trace-format.md for tables and views, and whether the file can be written",
        ) from error
    finally:
        part.unlink(missing_ok=True)
    return int(written[0]) if written else 0


def _plain(cell: object) -> object:
    """A cell as a JSON value; NaN and infinity, which JSON does not have, become null."""
    if isinstance(cell, Decimal):
        cell = float(cell)
    if isinstance(cell, float) and not (float("-inf") < cell < float("inf")):
        return None
    if isinstance(cell, (list, tuple)):
        return [_plain(item) for item in cell]
    if isinstance(cell, dict):
        return {str(key): _plain(item) for key, item in cell.items()}
    return cell
