"""Bring the events of kineto files into one DuckDB table, typed, with exact int64 ns times.

Pieces of whole events (``reader_cut``) are written as small files, each a JSON array, and read by DuckDB on
all its threads while the next ones are cut. A piece that the strict column types refuse is read again with
every column as text; one that is no JSON is walked event by event (``reader_repair``).

DuckDB parses JSON numbers with a fraction as float64. Below 2**43 us such a number lies within 0.489 ns of
the three-decimal text it came from, and its product with 1000 stays below 2**53, so rounding that product
gives the exact ns. Larger whole microseconds are read as decimals; files with larger fractional times
(absolute microseconds, 2024) get them quoted first and read as decimal text.
"""

from __future__ import annotations

import queue
import re
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from profrun.collectors.reading import Progress
from profrun.collectors.torch.reader_cut import EventFile

if TYPE_CHECKING:
    import duckdb

BATCH = 8
"""Pieces read by one statement: enough to keep all threads busy, few enough to overlap with cutting."""
EXACT_BELOW_NS = 2**43 * 1000
OBJECT_LIMIT = 4 << 20

# column of k_event, key in args, type, group. A column costs time even where it is NULL throughout, so a
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
    """One file on its way into ``k_event``.

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


def create(con: duckdb.DuckDBPyConnection) -> None:
    """Make the empty table ``k_event``."""
    args = ", ".join(f"{name} {type_}" for name, _, type_, _ in ARGS)
    con.execute(
        "CREATE TABLE k_event (src INTEGER, ph VARCHAR, cat VARCHAR, name VARCHAR, pid VARCHAR, tid VARCHAR, "
        f"ts BIGINT, dur BIGINT, flow VARCHAR, {args})"
    )


def stage(
    con: duckdb.DuckDBPyConnection, number: int, path: Path, compressed: bool, work: Path, progress: Progress
) -> EventFile:
    """Fill ``k_event`` with the events of one file; flow arrows other than forward-backward are left out.

    Args:
        con: connection with ``k_event``; insertion order is not kept.
        number: the file's number, column ``src``.
        path: the file.
        compressed: whether it is gzip.
        work: folder for the pieces; removed piece by piece.
        progress: called with bytes of the file read.

    Raises:
        InputError: no array of events in it.
    """
    careful = quote = False
    while True:
        staged = Staged(EventFile(path, compressed, careful), quote=quote)
        try:
            _stage_once(con, number, staged, work, progress)
            return staged.file
        except _Fooled as fooled:
            careful, quote = careful or fooled.careful, quote or fooled.quote
            con.execute("DELETE FROM k_event WHERE src = ?", [number])
        finally:
            staged.file.blocks.close()
            shutil.rmtree(work, ignore_errors=True)


def _stage_once(
    con: duckdb.DuckDBPyConnection, number: int, staged: Staged, work: Path, progress: Progress
) -> None:
    _look(staged, staged.file.open())
    work.mkdir(parents=True, exist_ok=True)
    for batch in _ahead(_batches(staged, work, number)):
        _insert(con, number, staged, batch)
        progress(staged.file.blocks.done, None)
        for piece in batch:
            piece.unlink()
    limit = "" if staged.time_type == "DECIMAL(20,3)" else f" AND abs(ts) >= {EXACT_BELOW_NS}"
    inexact = f"SELECT 1 FROM k_event WHERE src = ? AND ts % 1000 <> 0{limit} LIMIT 1"
    if not staged.quote and con.execute(inexact, [number]).fetchone():
        raise _Fooled(quote=True)


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


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _batches(staged: Staged, work: Path, number: int) -> Iterator[list[Path]]:
    batch: list[Path] = []
    for count, piece in enumerate(staged.file.pieces()):
        path = work / f"{number}-{count}.json"
        _write(path, staged, piece)
        batch.append(path)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _write(path: Path, staged: Staged, piece: bytes) -> None:
    for old, new in staged.renames:
        piece = piece.replace(old, new)
    if staged.quote:
        piece = _TIME.sub(rb'"\1": "\2"', piece)
    with path.open("wb") as file:
        file.write(b"[")
        file.write(piece)
        file.write(b"]")


def _ahead(batches: Iterator[list[Path]]) -> Iterator[list[Path]]:
    """Cut the next batch in a thread while this one is read."""
    ready: queue.Queue[list[Path] | BaseException | None] = queue.Queue(maxsize=1)
    stop = threading.Event()

    def work() -> None:
        try:
            for batch in batches:
                while not stop.is_set():
                    try:
                        ready.put(batch, timeout=0.1)
                        break
                    except queue.Full:
                        continue
                if stop.is_set():
                    return
            ready.put(None)
        except BaseException as error:
            ready.put(error)

    thread = threading.Thread(target=work, name="profrun-cut", daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stop.set()
        thread.join()


def _insert(con: duckdb.DuckDBPyConnection, number: int, staged: Staged, batch: list[Path]) -> None:
    """Insert a batch, once more when it shows a column group that was not read."""
    row = con.execute("SELECT coalesce(max(rowid), -1) FROM k_event").fetchone()
    last = row[0] if row else -1
    _insert_patiently(con, number, staged, batch)
    unread = {
        group
        for group, sign in SIGNS.items()
        if group not in staged.groups
        and con.execute(f"SELECT 1 FROM k_event WHERE rowid > {last} AND {sign} LIMIT 1").fetchone()
    }
    if unread:
        staged.groups |= unread
        con.execute(f"DELETE FROM k_event WHERE rowid > {last}")
        _insert_patiently(con, number, staged, batch)


def _insert_patiently(con: duckdb.DuckDBPyConnection, number: int, staged: Staged, batch: list[Path]) -> None:
    """Insert a batch; when it is refused, piece by piece, ever more patiently."""
    if _try(con, number, batch, _select(staged, strict=True)):
        return
    for piece in batch:
        if _try(con, number, [piece], _select(staged, strict=True)):
            continue
        if _try(con, number, [piece], _select(staged, strict=False)):
            continue
        text = piece.read_bytes()[1:-1]
        good, rest, ended = staged.file.scan(text, final=False)
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
            f"INSERT INTO k_event ({names}) SELECT {number}, {wanted} FROM read_json([{paths}], "
            f"format = 'array', maximum_object_size = {OBJECT_LIMIT}, columns = {{{columns}}}) "
            "WHERE ph IS NULL OR ph NOT IN ('s', 't', 'f') OR cat = 'fwdbwd'"
        )
    except (duckdb.InvalidInputException, duckdb.ConversionException, duckdb.OutOfRangeException):
        return False
    return True


def _select(staged: Staged, *, strict: bool) -> tuple[str, str, str]:
    """(columns for read_json, columns of k_event, select list): the file's types, or everything as text."""
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
