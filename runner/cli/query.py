"""``profrun query TRACE SQL``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from profrun.runner.cli.options import JsonOption, RunsOption, runs_root
from profrun.runner.cli.output import columns, emit, say
from profrun.runner.cli.traces import TraceArgument, opened


def command(
    trace: TraceArgument,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="A query; `-` reads it from stdin.")],
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    runs: RunsOption = None,
    json_: JsonOption = False,
) -> None:
    """Ask a trace in SQL.

    Tables and views are listed in docs/trace-format.md; times are int64 ns.
    """
    with opened(trace, runs_root(runs)) as found:
        result = found.sql(sys.stdin.read() if sql == "-" else sql)
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


def _plain(cell: object) -> object:
    """A cell as JSON can say it: NaN and infinity have no word there and become null."""
    if isinstance(cell, float) and not (float("-inf") < cell < float("inf")):
        return None
    return cell
