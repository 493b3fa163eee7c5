"""Bring the events of kineto files into DuckDB with its JSON reader: any file, damaged ones too.

Pieces of whole events (``reader_cut``) are written as small files, each a JSON array, and read by DuckDB on
all its threads while the next ones are cut; what was read is kept in Parquet files. A piece that the strict
column types refuse is read again with every column as text; one that is no JSON is walked event by event
(``reader_repair``).

DuckDB parses JSON numbers with a fraction as float64. Below 2**43 us such a number lies within 0.489 ns of
the three-decimal text it came from, and its product with 1000 stays below 2**53, so rounding that product
gives the exact ns. Larger whole microseconds are read as decimals; files with larger fractional times
(absolute microseconds, 2024) get them quoted first and read as decimal text.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from profrun.collectors.reading import Progress
from profrun.collectors.torch.reader_cut import EventFile
from profrun.collectors.torch.reader_files import ahead, batches
from profrun.traces.engine_path import sql_path

if TYPE_CHECKING:
    import duckdb

EXACT_BELOW_NS = 2**43 * 1000
OBJECT_LIMIT = 4 << 20
ROW_GROUP = 20480
"""Rows that each thread holds before it writes them."""

# column of k_stage, key in args, type
ARGS = (
    ("xid", "External id", "BIGINT"),
    ("corr", "correlation", "BIGINT"),
    ("dev", "device", "BIGINT"),
    ("stream", "stream", "VARCHAR"),
    ("registers", "registers per thread", "BIGINT"),
    ("smem", "shared memory", "BIGINT"),
    ("grid", "grid", "BIGINT[]"),
    ("block", "block", "BIGINT[]"),
    ("occupancy", "est. achieved occupancy %", "DOUBLE"),
    ("bytes", "bytes", "BIGINT"),
    ("graph", "graph id", "BIGINT"),
    ("graph_node", "graph node id", "BIGINT"),
    ("coll", "Collective name", "VARCHAR"),
    ("in_nelems", "In msg nelems", "BIGINT"),
    ("out_nelems", "Out msg nelems", "BIGINT"),
    ("group_size", "Group size", "BIGINT"),
    ("dtype", "dtype", "VARCHAR"),
    ("pg", "Process Group Name", "VARCHAR"),
    ("dims", "Input Dims", "VARCHAR"),
    ("types", "Input type", "VARCHAR"),
    ("seq", "Sequence number", "BIGINT"),
    ("dev_type", "Device Type", "BIGINT"),
    ("dev_id", "Device Id", "BIGINT"),
    ("allocated", "Total Allocated", "BIGINT"),
    ("reserved", "Total Reserved", "BIGINT"),
    ("mem_bytes", "Mem Bytes", "BIGINT"),
    ("label", "name", "VARCHAR"),
    ("pyid", "Python id", "BIGINT"),
    ("rank", "rank", "BIGINT"),
    ("own_rank", "Own Rank", "BIGINT"),
    ("pg_ranks", "Process Group Ranks", "VARCHAR"),
)
COLLECTIVE = ("coll", "in_nelems", "out_nelems", "group_size", "dtype", "pg", "own_rank", "pg_ranks")
_RENAMED = (  # DuckDB's field names ignore case: keys that differ only there are renamed in the text
    (b'"Bytes":', b'"Mem Bytes":'),
    (b'"Rank":', b'"Own Rank":'),
)
_RENAMED_OF_OLD = ((b'"external id"', b'"External id"'), (b'"Input dims"', b'"Input Dims"'), *_RENAMED)
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
        number: its number, column ``src``.
        work: folder for its pieces and parts.
        renames: keys to rename in its text; samples of the allocator may come late in any file.
        quote: quote times first, to read them as decimal text.
        time_type: DOUBLE where that is exact, else DECIMAL(20,3).
        parts: Parquet files of its events.
        tried: parts begun, those that were refused included.
    """

    file: EventFile
    number: int
    work: Path
    renames: Sequence[tuple[bytes, bytes]] = _RENAMED
    quote: bool = False
    time_type: str = "DOUBLE"
    parts: list[Path] = field(default_factory=list)
    tried: int = 0

    def edit(self, text: bytes) -> bytes:
        """The text of a piece as DuckDB can read it."""
        for old, new in self.renames:
            text = text.replace(old, new)
        return _TIME.sub(rb'"\1": "\2"', text) if self.quote else text


FILE_BITS = 52
"""From this bit on ``row`` is the file's number; below are 20 bits for the piece and 32 for the event."""
OWNER = ("cat", "pid", "tid", "dev", "stream", "rank")
GPU_CATS = ("kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset", "concurrent_kernel")
NAMED_CATS = ("cpu_op", "Operator", "user_annotation")
KEPT = tuple(entry for entry in ARGS if entry[0] != "pyid")
"""What a Parquet part holds of the arguments; the Python id is in ``tie``."""


_FIXED = (
    *(("src", "INTEGER"), ("part", "BIGINT"), ("owner", "BIGINT"), ("ph", "VARCHAR"), ("cat", "VARCHAR")),
    *(("name", "VARCHAR"), ("pid", "VARCHAR"), ("tid", "VARCHAR"), ("ts", "BIGINT"), ("dur", "BIGINT")),
    *(("flow", "VARCHAR"), ("tie", "BIGINT"), ("file_row_number", "BIGINT")),
)
GPU = ("xid", "registers", "smem", "grid", "block", "occupancy", "bytes", "graph", "graph_node")
OTHER = ("ph", "cat", "name", "pid", "tid", "ts", "flow", "label", "rank")
MEMORY = ("ts", "dev_type", "dev_id", "allocated", "reserved", "mem_bytes", "rank")
_SAMPLE = "coalesce(name, '') = '[memory]' AND coalesce(allocated, reserved, mem_bytes) IS NOT NULL"
# view: columns beside ``row``, and which events it holds
_VIEWS = {
    "k_core": (
        ("owner", "n_name.number AS name", "ts", "dur", "nullif(corr, 0) AS corr", "tie"),
        "ph = 'X'",
    ),
    "k_gpu": (GPU, f"ph = 'X' AND (cat IN {GPU_CATS} OR grid IS NOT NULL OR smem IS NOT NULL)"),
    "k_op": (
        ("xid", "n_dims.number AS dims", "n_types.number AS types", "seq"),
        f"ph = 'X' AND cat IN {NAMED_CATS}",
    ),
    "k_coll": (
        COLLECTIVE,
        f"ph = 'X' AND coalesce({', '.join(f'{name}::VARCHAR' for name in COLLECTIVE)}) IS NOT NULL",
    ),
    "k_memory": (("src", *MEMORY), f"ph IS DISTINCT FROM 'X' AND {_SAMPLE}"),
    "k_other": (("src", *OTHER), f"ph IS DISTINCT FROM 'X' AND NOT ({_SAMPLE})"),
}


def gather(con: duckdb.DuckDBPyConnection, parts: Sequence[Path]) -> None:
    """Offer the staged events of all files as the tables that ``reader_handover`` lists.

    Args:
        con: connection for them.
        parts: what ``stage`` made of all files.
    """
    if parts:
        con.execute(
            f"CREATE VIEW k_stage AS SELECT * FROM read_parquet({_listed(parts)}, file_row_number = true)"
        )
    else:
        empty = ", ".join(f"{name} {type_}" for name, type_ in (*_FIXED, *(item[::2] for item in KEPT)))
        con.execute(f"CREATE TABLE k_stage ({empty})")
    con.execute(
        "CREATE TABLE k_text AS SELECT (row_number() OVER () - 1)::INTEGER AS number, text FROM ("
        + " UNION ".join(
            f"SELECT {name} AS text FROM k_stage WHERE ph = 'X'" for name in ("name", "dims", "types")
        )
        + ") WHERE text IS NOT NULL"
    )
    for name, (columns, where) in _VIEWS.items():
        texts = " ".join(
            f"LEFT JOIN k_text n_{text} ON n_{text}.text = k_stage.{text}"
            for text in ("name", "dims", "types")
            if any(column.startswith(f"n_{text}.") for column in columns)
        )
        con.execute(
            f'CREATE VIEW {name} AS SELECT (part << 32) + file_row_number AS "row", {", ".join(columns)} '
            f"FROM k_stage {texts} WHERE {where}"
        )
    con.execute(
        f"CREATE TABLE k_owner AS SELECT owner, src, {', '.join(OWNER)}, count(*) AS events, "
        "min(ts) AS first FROM k_stage WHERE ph = 'X' GROUP BY ALL"
    )
    same = con.execute("SELECT owner FROM k_owner GROUP BY owner HAVING count(*) > 1").fetchall()
    if same:
        raise RuntimeError(f"two owners have one number: {same}")


def stage(
    con: duckdb.DuckDBPyConnection, number: int, path: Path, compressed: bool, work: Path, progress: Progress
) -> Staged:
    """Read one file into Parquet files of typed events; flow arrows other than forward-backward are left out.

    Args:
        con: connection to read with; insertion order is not kept.
        number: the file's number, column ``src``.
        path: the file.
        compressed: whether it is gzip.
        work: folder for the pieces, removed one by one, and for the Parquet files, which stay.
        progress: called with bytes of the file read.

    Raises:
        InputError: no array of events in it.
    """
    careful = quote = False
    while True:
        staged = Staged(EventFile(path, compressed, careful), number, work / str(number), quote=quote)
        try:
            _stage_once(con, staged, progress)
            return staged
        except _Fooled as fooled:
            careful, quote = careful or fooled.careful, quote or fooled.quote
            shutil.rmtree(staged.work)
        finally:
            staged.file.blocks.close()


def _stage_once(con: duckdb.DuckDBPyConnection, staged: Staged, progress: Progress) -> None:
    _look(staged, staged.file.open())
    staged.work.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(ahead(batches(staged.file, staged.work, "cut", staged.edit))) as ready:
        for batch in ready:  # closed before anyone reads the file again: the thread writes into ``work``
            _insert(con, staged, batch)
            progress(staged.file.blocks.done, None)
            for piece in batch:
                piece.unlink()


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
        staged.renames = _RENAMED_OF_OLD


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _insert(con: duckdb.DuckDBPyConnection, staged: Staged, batch: list[Path]) -> None:
    """Add a batch."""
    parts = _read(con, staged, batch)
    limit = "" if staged.time_type == "DECIMAL(20,3)" else f" AND abs(ts) >= {EXACT_BELOW_NS}"
    inexact = f"SELECT 1 FROM read_parquet({_listed(parts)}) WHERE ts % 1000 <> 0{limit} LIMIT 1"
    if not staged.quote and con.execute(inexact).fetchone():
        raise _Fooled(quote=True)
    lost = con.execute(
        f"SELECT sum(lost), min(name) FROM read_parquet({_listed(parts)}) WHERE lost > 0"
    ).fetchone()
    if lost and lost[0]:
        staged.file.note("unreadable_value", str(lost[1]), int(lost[0]))
    staged.parts += parts


def _listed(paths: Sequence[Path]) -> str:
    return "[" + ", ".join(map(sql_path, paths)) + "]"


def _read(con: duckdb.DuckDBPyConnection, staged: Staged, batch: list[Path]) -> list[Path]:
    """The Parquet files of a batch; when the whole is refused, piece by piece, ever more patiently."""
    strict, lenient = (_select(staged, strict=strict) for strict in (True, False))
    part = _try(con, staged, batch, strict)
    if part:
        return [part]
    parts = []
    for piece in batch:
        part = _try(con, staged, [piece], strict) or _try(con, staged, [piece], lenient)
        if part is None:
            text = piece.read_bytes()[1:-1]
            good, rest, ended = staged.file.scan(text, final=False, patience=1 << 16)
            if ended or rest.strip(b", \t\r\n"):
                raise _Fooled(careful=True)
            piece.write_bytes(b"[" + good + b"]")
            part = _try(con, staged, [piece], lenient)
        if part is None:
            raise RuntimeError(f"{piece.name}: repaired events are refused")
        parts.append(part)
    return parts


def _try(
    con: duckdb.DuckDBPyConnection, staged: Staged, files: list[Path], select: tuple[str, str]
) -> Path | None:
    import duckdb

    columns, wanted = select
    staged.tried += 1
    part = staged.work / f"part-{staged.tried}.parquet"
    number = (staged.number << FILE_BITS - 32) + staged.tried
    try:
        con.execute(
            f"COPY (SELECT {staged.number} AS src, {number}::BIGINT AS part, "
            f"(hash({staged.number}, {', '.join(OWNER)}) >> 1)::BIGINT AS owner, * "
            f"FROM (SELECT {wanted} FROM read_json({_listed(files)}, "
            f"format = 'array', maximum_object_size = {OBJECT_LIMIT}, columns = {{{columns}}}) "
            "WHERE ph IS NULL OR ph NOT IN ('s', 't', 'f') OR cat = 'fwdbwd')) "
            f"TO {sql_path(part)} (FORMAT parquet, COMPRESSION lz4, ROW_GROUP_SIZE {ROW_GROUP})"
        )
    except (
        duckdb.InvalidInputException,
        duckdb.ConversionException,
        duckdb.OutOfRangeException,
        UnicodeDecodeError,  # the engine quotes invalid bytes of the file in its own message
    ):
        part.unlink(missing_ok=True)
        return None
    return part


def _select(staged: Staged, *, strict: bool) -> tuple[str, str]:
    """(columns for read_json, select list): the file's types, or everything as text."""
    time = staged.time_type if strict else "VARCHAR"
    fields = ", ".join(f'"{key}" {type_ if strict else "VARCHAR"}' for _, key, type_ in ARGS)
    texts = ", ".join(f"{name}: 'VARCHAR'" for name in ("ph", "cat", "name", "pid", "tid", "id"))
    columns = f"{texts}, ts: '{time}', dur: '{time}', args: 'STRUCT({fields})'"
    values = {
        name: f'args."{key}"' if strict or type_ == "VARCHAR" else f'TRY_CAST(args."{key}" AS {type_})'
        for name, key, type_ in ARGS
    }
    wanted = [
        *("ph", "cat", "name", "pid", "tid"),
        *(f"{_ns(column, staged, strict)} AS {column}" for column in ("ts", "dur")),
        f"id AS flow, coalesce({values['corr']}, {values['xid']}, {values['pyid']}) AS tie",
        *(f"{values[name]} AS {name}" for name, *_ in KEPT),
    ]
    lost = (
        "0"
        if strict
        else " + ".join(
            f"""(args."{key}" IS NOT NULL AND {values[name]} IS NULL)::INTEGER"""
            for name, key, type_ in ARGS
            if type_ in ("BIGINT", "DOUBLE")
        )
    )
    wanted.append(f"{lost} AS lost")
    return columns, ", ".join(wanted)


def _ns(column: str, staged: Staged, strict: bool) -> str:
    if strict and staged.time_type == "DOUBLE":
        return f"CAST({column} * 1000 AS BIGINT)"
    cast = "CAST" if strict else "TRY_CAST"
    return f"{cast}({cast}({column} AS DECIMAL(38,3)) * 1000 AS BIGINT)"
