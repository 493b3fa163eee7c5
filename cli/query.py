"""``profrun query TRACE SQL``."""

from __future__ import annotations

import contextlib
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profrun.cli.options import JsonOption, RunsOption, TraceArgument, runs_root
from profrun.cli.output import columns, emit, note, say
from profrun.errors import InputError, UsageError
from profrun.runner.references import opened

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


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
    runs: RunsOption = None,
    json_: JsonOption = False,
) -> None:
    """Answer an SQL query over a trace.

    Tables and views are listed in docs/trace-format.md; times are int64 ns.
    """
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
    else:
        numbers = [
            index
            for index in range(len(result.columns))
            if any(isinstance(row[index], (int, float)) for row in result.rows)
        ]
        say(columns(result.columns, result.rows, right=numbers))


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
    """Write the answer as one Parquet file (zstd), row by row; returns the number of rows."""
    import duckdb

    try:
        if any("SELECT" not in one.type.name for one in trace.con.extract_statements(query)):
            raise InputError("this query has no rows to write", fix="give a SELECT")
        trace.con.sql(query).write_parquet(str(file), compression="zstd")
        written = trace.con.execute(
            "SELECT count(*) FROM read_parquet($file)", {"file": str(file)}
        ).fetchone()
    except duckdb.Error as error:
        raise InputError(
            f"query failed: {' '.join(str(error).split())}",
            fix="see docs/trace-format.md for tables and views, and whether the file can be written",
        ) from error
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
