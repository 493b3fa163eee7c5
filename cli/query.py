"""``profrun query TRACE SQL``."""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profrun.cli.at_once import BOUND, bounded_memory, ends_at_once
from profrun.cli.options import JsonOption, RunsOption, TraceArgument, runs_root
from profrun.cli.output import emit, note, say, terminal_style
from profrun.errors import InputError, UsageError
from profrun.runner.mapped import offer_addresses
from profrun.runner.references import opened

if TYPE_CHECKING:
    from profrun.traces.trace import Answer, Trace

SHOWN_ROWS = 10_000
"""Most rows of a table on a terminal: the widths of its columns need all of them at once."""
SHOWN_CHARACTERS = 2_000
"""Most characters of a cell that are laid out; a terminal shows fewer."""

EXAMPLES = (
    ("profrun query last/1 'SHOW TABLES'", "the tables and views"),
    ("profrun query last/1 'SELECT * FROM kernels LIMIT 5'", "rows, cut to the terminal"),
    ("profrun query last/1 'FROM kernel_address'", "GPU work with its lines, of a run with a mapping"),
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

    A query only reads, and only the trace: it is one SELECT, or one of FROM,
    VALUES, SHOW, DESCRIBE, SUMMARIZE and PIVOT.

    Tables and views are listed in docs/trace-format.md; times are int64 ns. With
    a mapping beside the trace, kernel_address has the lines of GPU work.
    """
    _need_one_output(csv=csv, json_=json_, parquet=parquet, force=force)
    query = sys.stdin.read() if sql == "-" else sql
    part = parquet.with_name(f".{parquet.name}.{os.getpid()}") if parquet else None
    with (
        opened(trace, runs_root(runs), answers=_written(part)) as found,
        ends_at_once(found.con.interrupt, lambda: _clean(found, part)),
        bounded_memory(),
    ):
        try:
            offer_addresses(found, query)
            if parquet is not None and part is not None:
                rows = _write(found, query, part, parquet)
                emit({"parquet": str(parquet), "rows": rows}) if json_ else note(f"{rows} rows in {parquet}")
            else:
                _print(found.stream(query), csv=csv, json_=json_)
        except MemoryError:
            raise InputError(
                "the query needs too much memory",
                why=f"a row of it does not fit into {BOUND // 10**9} GB",
                fix="ask for shorter values",
            ) from None


def _print(answer: Answer, *, csv: bool, json_: bool) -> None:
    """Print the rows as they come; only a table for a terminal needs all of them, and it is cut."""
    if json_:
        _print_json(answer)
    elif csv:
        import csv as csv_module

        writer = csv_module.writer(sys.stdout, lineterminator="\n")
        writer.writerow(answer.columns)
        for rows in answer.batches:
            writer.writerows(rows)
    elif sys.stdout.isatty():
        _show(answer)
    else:
        say("\t".join(map(_cell, answer.columns)))
        for rows in answer.batches:
            for row in rows:
                say("\t".join(map(_cell, row)))


def _print_json(answer: Answer) -> None:
    """Print one document; each row is a line of it, written when it comes."""
    sys.stdout.write(f'{{"columns": {json.dumps(answer.columns)},\n "rows": [')
    separator = "\n  "
    for rows in answer.batches:
        for row in rows:
            text = json.dumps([_plain(cell) for cell in row], allow_nan=False, default=str)
            sys.stdout.write(separator + text)
            separator = ",\n  "
    sys.stdout.write("]}\n")


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


def _show(answer: Answer) -> None:
    """Print a table as wide as the terminal, with numbers aligned to the right, of the first rows."""
    from profrun.reports.terminal_layout import Table, lay_out

    rows: list[list[str | None]] = []
    numbers: set[int] = set()
    for row in itertools.islice(itertools.chain.from_iterable(answer.batches), SHOWN_ROWS + 1):
        numbers |= {place for place, value in enumerate(row) if isinstance(value, (int, float))}
        rows.append([None if value is None else _cell(value)[:SHOWN_CHARACTERS] for value in row])
    shown = Table(answer.columns, rows[:SHOWN_ROWS], sorted(numbers), indent="")
    say(lay_out([shown], terminal_style()))
    if len(rows) > SHOWN_ROWS:
        note(f"only the first {SHOWN_ROWS} rows are shown; add LIMIT, or print all of them with --csv")


def _cell(value: object) -> str:
    """A value in a line of values: what would break the line is written as an escape."""
    text = "" if value is None else str(value)
    return text.translate(_ESCAPES)


_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def _written(part: Path | None) -> Sequence[Path]:
    """The files that the engine opens to write a Parquet file: it may begin with one beside it."""
    return (part, part.with_name(f"tmp_{part.name}")) if part else ()


def _clean(trace: Trace, part: Path | None) -> None:
    """Remove what an answer that was not finished has written."""
    trace.remove_spill()
    for file in _written(part):
        file.unlink(missing_ok=True)


def _write(trace: Trace, query: str, part: Path, file: Path) -> int:
    """Write the answer as one Parquet file (zstd), row by row; returns the number of rows.

    Args:
        part: written first, so that a query that fails replaces nothing.
        file: what it becomes.
    """
    import duckdb

    from profrun.traces.statements import one_select
    from profrun.traces.trace import query_error

    try:
        one_select(trace.con, query)
        trace.con.sql(query).write_parquet(str(part.absolute()), compression="zstd")
        written = trace.con.execute(
            "SELECT count(*) FROM read_parquet($file)", {"file": str(part.absolute())}
        ).fetchone()
        part.replace(file)
    except (duckdb.ParserException, duckdb.OutOfMemoryException) as error:
        raise query_error(error) from error
    except duckdb.Error as error:
        raise InputError(
            f"query failed: {' '.join(str(error).split())}",
            fix="see docs/trace-format.md for tables and views, and whether the file can be written",
        ) from error
    finally:
        for left in _written(part):
            left.unlink(missing_ok=True)
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
