"""Bring the events of kineto files into DuckDB, typed, with exact int64 ns times.

Pieces of whole events (``reader_cut``) are written as small files, each a JSON array, and read by DuckDB on
all its threads while the next ones are cut. A piece that the strict column types refuse is read again with
every column as text; one that is no JSON is walked event by event (``reader_repair``).

DuckDB parses JSON numbers with a fraction as float64. Below 2**43 us such a number lies within 0.489 ns of
the three-decimal text it came from, and its product with 1000 stays below 2**53, so rounding that product
gives the exact ns. Larger whole microseconds are read as decimals; files with larger fractional times
(absolute microseconds, 2024) get them quoted first and read as decimal text.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from profrun.collectors.reading import Progress
from profrun.collectors.torch.reader_cut import EventFile
from profrun.collectors.torch.reader_files import Edit, ahead, batches

if TYPE_CHECKING:
    import duckdb

EXACT_BELOW_NS = 2**43 * 1000
OBJECT_LIMIT = 4 << 20

# column of k_batch, key in args, type, group. A column costs time even where it is NULL throughout, so a
# group is read only once a sign of it was seen; the batch that shows the first one is read again.
ARGS = (
    ("xid", "External id", "BIGINT", ""),
    ("corr", "correlation", "BIGINT", ""),
    ("dev", "device", "BIGINT", ""),
    ("stream", "stream", "VARCHAR", ""),
    ("registers", "registers per thread", "BIGINT", ""),
    ("smem", "shared memory", "BIGINT", ""),
    ("grid", "grid", "BIGINT[]", ""),
    ("block", "block", "BIGINT[]", ""),
    ("occupancy", "est. achieved occupancy %", "DOUBLE", ""),
    ("bytes", "bytes", "BIGINT", ""),
    ("graph", "graph id", "BIGINT", ""),
    ("graph_node", "graph node id", "BIGINT", ""),
    ("coll", "Collective name", "VARCHAR", ""),
    ("in_nelems", "In msg nelems", "BIGINT", "coll"),
    ("out_nelems", "Out msg nelems", "BIGINT", "coll"),
    ("group_size", "Group size", "BIGINT", "coll"),
    ("dtype", "dtype", "VARCHAR", "coll"),
    ("pg", "Process Group Name", "VARCHAR", "coll"),
    ("dims", "Input Dims", "VARCHAR", ""),
    ("types", "Input type", "VARCHAR", ""),
    ("seq", "Sequence number", "BIGINT", ""),
    ("dev_type", "Device Type", "BIGINT", "memory"),
    ("dev_id", "Device Id", "BIGINT", "memory"),
    ("allocated", "Total Allocated", "BIGINT", ""),
    ("reserved", "Total Reserved", "BIGINT", "memory"),
    ("mem_bytes", "Mem Bytes", "BIGINT", ""),
    ("label", "name", "VARCHAR", ""),
    ("pyid", "Python id", "BIGINT", ""),
)
_COLLECTIVE = ("coll", "in_nelems", "out_nelems", "group_size", "dtype", "pg")
SIGNS = {"coll": "coll IS NOT NULL", "memory": "coalesce(allocated, mem_bytes) IS NOT NULL"}
_RENAMED = (  # DuckDB's field names ignore case: keys that differ only there are renamed in the text
    (b'"external id"', b'"External id"'),
    (b'"Input dims"', b'"Input Dims"'),
    (b'"Bytes"', b'"Mem Bytes"'),
)
_OLD = re.compile(rb'"cat"\s*:\s*"(?:Operator|Kernel|Runtime)"')
_TIME = re.compile(rb'"(ts|dur)"\s*:\s*(-?[0-9][0-9.eE+-]*)')


class _Fooled(Exception):
    """The guesses about this file were wrong: read it again with the stated ones."""

    def __init__(self, *, careful: bool = False, quote: bool = False) -> None:
        super().__init__()
        self.careful = careful
        self.quote = quote


@dataclass
class Staged:
    """One file on its way into the staging tables.

    Attributes:
        file: the file, its keys and what was noticed.
        renames: keys to rename in its text.
        quote: quote times first, to read them as decimal text.
        time_type: DOUBLE where that is exact, else DECIMAL(20,3).
        groups: column groups whose sign was seen.
    """

    file: EventFile
    renames: list[tuple[bytes, bytes]] = field(default_factory=list)
    quote: bool = False
    time_type: str = "DOUBLE"
    groups: set[str] = field(default_factory=set)

    @property
    def edit(self) -> Edit | None:
        """What must change in the text of a piece before it is read."""
        return self._edited if self.renames or self.quote else None

    def _edited(self, text: bytes) -> bytes:
        for old, new in self.renames:
            text = text.replace(old, new)
        return _TIME.sub(rb'"\1": "\2"', text) if self.quote else text


LABELS = ("cat", "pid", "tid", "dev", "stream")
_GPU_CATS = "('kernel', 'gpu_memcpy', 'gpu_memset', 'Kernel', 'Memcpy', 'Memset', 'concurrent_kernel')"
_NAMED_CATS = "('cpu_op', 'Operator', 'user_annotation')"
# table: (columns from k_batch, condition); every row also carries ``row``, its number in the recording
_PARTS = {
    "k_gpu": (
        (
            "xid",
            "registers",
            "smem",
            "grid",
            "block",
            "occupancy",
            "bytes",
            "graph",
            "graph_node",
            *_COLLECTIVE,
        ),
        f"ph = 'X' AND (cat IN {_GPU_CATS} OR grid IS NOT NULL OR smem IS NOT NULL)",
    ),
    "k_op": (("xid", "dims", "types", "seq", *_COLLECTIVE), f"ph = 'X' AND cat IN {_NAMED_CATS}"),
    "k_other": (
        (
            *("src", "ph", "cat", "name", "pid", "tid", "ts", "flow", "label"),
            *("dev_type", "dev_id", "allocated", "reserved", "mem_bytes"),
        ),
        "ph IS DISTINCT FROM 'X'",
    ),
}


def create(con: duckdb.DuckDBPyConnection) -> None:
    """Make the empty staging tables.

    ``k_core`` has a row for each complete event: its number, the label of its lane, name, times in ns,
    correlation, and what decides between events of the same time; ``k_label`` the distinct lane labels;
    ``k_gpu`` and ``k_op`` the arguments of GPU work and of ops; ``k_other`` every other event.
    """
    _empty_batch(con)
    con.execute(
        "CREATE TABLE k_label (label INTEGER, src INTEGER, cat VARCHAR, pid VARCHAR, tid VARCHAR, "
        "dev BIGINT, stream VARCHAR)"
    )
    con.execute(
        'CREATE TABLE k_core ("row" BIGINT, label INTEGER, name VARCHAR, ts BIGINT, dur BIGINT, corr BIGINT, '
        "tie BIGINT)"
    )
    for table, (columns, _) in _PARTS.items():
        con.execute(
            f'CREATE TABLE {table} AS SELECT rowid AS "row", {", ".join(columns)} FROM k_batch LIMIT 0'
        )


def _empty_batch(con: duckdb.DuckDBPyConnection) -> None:
    """A fresh ``k_batch``: dropping gives its memory back at once, deleting would not."""
    args = ", ".join(f"{name} {type_}" for name, _, type_, _ in ARGS)
    con.execute(
        "CREATE OR REPLACE TABLE k_batch (src INTEGER, ph VARCHAR, cat VARCHAR, name VARCHAR, pid VARCHAR, "
        f"tid VARCHAR, ts BIGINT, dur BIGINT, flow VARCHAR, {args})"
    )


def stage(
    con: duckdb.DuckDBPyConnection, number: int, path: Path, compressed: bool, work: Path, progress: Progress
) -> EventFile:
    """Add one file to the staging tables; flow arrows other than forward-backward are left out.

    Args:
        con: connection with the tables of ``create``; insertion order is not kept.
        number: the file's number, column ``src``.
        path: the file.
        compressed: whether it is gzip.
        work: folder for the pieces; removed piece by piece.
        progress: called with bytes of the file read.

    Raises:
        InputError: no array of events in it.
    """
    careful = quote = False
    first = _next_row(con)
    while True:
        staged = Staged(EventFile(path, compressed, careful), quote=quote)
        try:
            _stage_once(con, number, staged, work, progress)
            return staged.file
        except _Fooled as fooled:
            careful, quote = careful or fooled.careful, quote or fooled.quote
            for table in ("k_core", *_PARTS):
                con.execute(f'DELETE FROM {table} WHERE "row" >= {first}')
        finally:
            staged.file.blocks.close()
            shutil.rmtree(work, ignore_errors=True)


def _stage_once(
    con: duckdb.DuckDBPyConnection, number: int, staged: Staged, work: Path, progress: Progress
) -> None:
    _look(staged, staged.file.open())
    work.mkdir(parents=True, exist_ok=True)
    row = _next_row(con)
    with contextlib.closing(ahead(batches(staged.file, work, str(number), staged.edit))) as ready:
        for batch in ready:  # closed before anyone reads the file again: the thread writes into ``work``
            row = _insert(con, number, staged, batch, row)
            progress(staged.file.blocks.done, None)
            for piece in batch:
                piece.unlink()


def _next_row(con: duckdb.DuckDBPyConnection) -> int:
    row = con.execute('SELECT max("row") FROM (SELECT "row" FROM k_core UNION ALL SELECT "row" FROM k_other)')
    found = row.fetchone()
    return 0 if found is None or found[0] is None else int(found[0]) + 1


def _look(staged: Staged, head: bytes) -> None:
    """Choose the time's type and the keys to rename from the first events."""
    times = [value for key, value in _TIME.findall(head[: 1 << 20]) if key == b"ts"]
    largest = max((abs(float(value)) for value in times if _is_number(value)), default=0.0)
    if largest * 1000 >= EXACT_BELOW_NS:
        staged.time_type = "DECIMAL(20,3)"
        staged.quote = staged.quote or any(b"." in value for value in times)
    if staged.quote:
        staged.time_type = "DECIMAL(20,3)"
    if _OLD.search(head[: 1 << 20]):
        staged.renames = list(_RENAMED)
    elif b'"profile_memory"' in head or b'"[memory]"' in head:
        staged.renames = [_RENAMED[-1]]


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _insert(con: duckdb.DuckDBPyConnection, number: int, staged: Staged, batch: list[Path], row: int) -> int:
    """Add a batch; read it once more when it shows a column group that was not read. Returns the next row."""
    _read(con, number, staged, batch)
    unread = {
        group
        for group, sign in SIGNS.items()
        if group not in staged.groups
        and con.execute(f"SELECT 1 FROM k_batch WHERE {sign} LIMIT 1").fetchone()
    }
    if unread:
        staged.groups |= unread
        _read(con, number, staged, batch)
    limit = "" if staged.time_type == "DECIMAL(20,3)" else f" AND abs(ts) >= {EXACT_BELOW_NS}"
    inexact = f"SELECT 1 FROM k_batch WHERE ts % 1000 <> 0{limit} LIMIT 1"
    if not staged.quote and con.execute(inexact).fetchone():
        raise _Fooled(quote=True)
    return _distribute(con, number, row)


def _distribute(con: duckdb.DuckDBPyConnection, number: int, row: int) -> int:
    """Move ``k_batch`` into the narrow tables: sorting and joining them costs a fraction of the wide one."""
    same = " AND ".join(f"b.{name} IS NOT DISTINCT FROM l.{name}" for name in LABELS)
    labels = ", ".join(LABELS)
    con.execute(
        "INSERT INTO k_label "
        f"SELECT (SELECT count(*) FROM k_label) + row_number() OVER () - 1, {number}, {labels} "
        f"FROM (SELECT DISTINCT {labels} FROM k_batch WHERE ph = 'X') b WHERE NOT EXISTS "
        f"(FROM k_label l WHERE l.src = {number} AND {same})"
    )
    con.execute(
        f"INSERT INTO k_core SELECT b.rowid + {row}, l.label, b.name, b.ts, b.dur, nullif(b.corr, 0), "
        f"coalesce(b.corr, b.xid, b.pyid) FROM k_batch b JOIN k_label l ON l.src = {number} AND {same} "
        "WHERE b.ph = 'X'"
    )
    for table, (columns, where) in _PARTS.items():
        con.execute(
            f"INSERT INTO {table} SELECT rowid + {row}, {', '.join(columns)} FROM k_batch WHERE {where}"
        )
    found = con.execute("SELECT coalesce(max(rowid), -1) FROM k_batch").fetchone()
    return row + 1 + (int(found[0]) if found else -1)


def _read(con: duckdb.DuckDBPyConnection, number: int, staged: Staged, batch: list[Path]) -> None:
    """Fill ``k_batch``; when the whole is refused, piece by piece, ever more patiently."""
    _empty_batch(con)
    if _try(con, number, batch, _select(staged, strict=True)):
        return
    for piece in batch:
        if _try(con, number, [piece], _select(staged, strict=True)):
            continue
        if _try(con, number, [piece], _select(staged, strict=False)):
            continue
        text = piece.read_bytes()[1:-1]
        good, rest, ended = staged.file.scan(text, final=False, patience=1 << 16)
        if ended or rest.strip(b", \t\r\n"):
            raise _Fooled(careful=True)
        piece.write_bytes(b"[" + good + b"]")
        if not _try(con, number, [piece], _select(staged, strict=False)):
            raise RuntimeError(f"{piece.name}: repaired events are refused")


def _try(
    con: duckdb.DuckDBPyConnection, number: int, files: list[Path], select: tuple[str, str, str]
) -> bool:
    import duckdb

    columns, names, wanted = select
    paths = ", ".join("'" + str(file).replace("'", "''") + "'" for file in files)
    try:
        con.execute(
            f"INSERT INTO k_batch ({names}) SELECT {number}, {wanted} FROM read_json([{paths}], "
            f"format = 'array', maximum_object_size = {OBJECT_LIMIT}, columns = {{{columns}}}) "
            "WHERE ph IS NULL OR ph NOT IN ('s', 't', 'f') OR cat = 'fwdbwd'"
        )
    except (duckdb.InvalidInputException, duckdb.ConversionException, duckdb.OutOfRangeException):
        return False
    return True


def _select(staged: Staged, *, strict: bool) -> tuple[str, str, str]:
    """(columns for read_json, columns of k_batch, select list): the file's types, or everything as text."""
    args = [entry for entry in ARGS if not entry[3] or entry[3] in staged.groups]
    time = staged.time_type if strict else "VARCHAR"
    fields = ", ".join(f'"{key}" {type_ if strict else "VARCHAR"}' for _, key, type_, _ in args)
    texts = ", ".join(f"{name}: 'VARCHAR'" for name in ("ph", "cat", "name", "pid", "tid", "id"))
    columns = f"{texts}, ts: '{time}', dur: '{time}', args: 'STRUCT({fields})'"
    wanted = [
        f'args."{key}"' if strict or type_ == "VARCHAR" else f'TRY_CAST(args."{key}" AS {type_})'
        for _, key, type_, _ in args
    ]
    names = ["src", "ph", "cat", "name", "pid", "tid", "ts", "dur", "flow", *(entry[0] for entry in args)]
    times = [_ns(column, staged, strict) for column in ("ts", "dur")]
    return columns, ", ".join(names), ", ".join(["ph", "cat", "name", "pid", "tid", *times, "id", *wanted])


def _ns(column: str, staged: Staged, strict: bool) -> str:
    if strict and staged.time_type == "DOUBLE":
        return f"CAST({column} * 1000 AS BIGINT)"
    cast = "CAST" if strict else "TRY_CAST"
    return f"{cast}({cast}({column} AS DECIMAL(38,3)) * 1000 AS BIGINT)"
