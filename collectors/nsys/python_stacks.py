"""Python stacks of CUDA calls, which ``--python-backtrace=cuda`` records: ``stage``, then ``fill``.

nsys keeps such a stack as an NVTX mark. The mark lies at the start of the row that --cudabacktrace adds for
the call (eventClass 67), on the same thread, and that row has the correlation id of the call. The frames are
the payload of the mark: a header of four 64-bit numbers (domain, schema, size and place of what follows),
then the fields that NVTX_PAYLOAD_SCHEMA_ENTRIES lists for the schema. An export holds payloads where it was
made with ``--include-blobs=true``. So it is in recordings of nsys 2025.3.1. Those of 2024.2.3 have the same
marks, but its SQLite export has no payloads.

The stacks of ``--python-sampling`` are marks of the same form at which no call begins.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from profrun.collectors.nsys.build import Builder
from profrun.collectors.nsys.names import EVENT_BACKTRACE, NVTX_DOMAIN, NVTX_MARK
from profrun.collectors.nsys.source import Export, SqliteExport

_HEADER = struct.Struct("<qqqq")
_NUMBERS = {5: "<i4", 6: "<u4", 9: "<i8", 10: "<i8", 15: "<i4", 16: "<u4", 17: "<i8", 18: "<i8", 80: "<i8"}
"""Type of a payload's field, by nvToolsExtPayload.h of NVTX, as numpy names it. 80: id of a string. The
unsigned ones of 64 bits are read as signed, which every column of the trace is."""
_MOST = 65536
"""Bytes of a frame, and place of a field, at most: of a file that is not damaged."""
_DOMAIN = "Python Backtrace"
"""Beginning of the name of the marks' NVTX domain."""
_EVENTS, _CALLS = "NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_RUNTIME"
_SCHEMAS, _ENTRIES = "NVTX_PAYLOAD_SCHEMAS", "NVTX_PAYLOAD_SCHEMA_ENTRIES"

_SAMPLE, _UNREADABLE = -1, 0
"""Stand for the correlation id of marks at which no call begins, and of those that are unreadable."""

Frames = tuple[tuple[int, int, int], ...]
"""Function and file as ids of strings, and line; innermost first."""


@dataclass(frozen=True)
class _Layout:
    """Where the frames are in a payload.

    Attributes:
        count: place and type of the number of frames.
        first: place of the first frame.
        frame: a frame with function, file and line.
    """

    count: tuple[int, str]
    first: int
    frame: np.dtype[np.void]

    def frames(self, payload: bytes) -> Frames | None:
        """The frames of a payload; None where it is shorter than it says."""
        place, kind = self.count
        if len(payload) < place + np.dtype(kind).itemsize:
            return None
        count = int(np.frombuffer(payload, kind, 1, place)[0])
        if not 0 <= count <= (len(payload) - self.first) // self.frame.itemsize:
            return None
        return tuple(np.frombuffer(payload, self.frame, count, self.first).tolist()) if count else ()


@dataclass
class _Marks:
    """The marks of all exports, a list a column.

    Attributes:
        stack: number of the stack; -1 for one without frames.
        corr: correlation id of the call, ``_SAMPLE`` or ``_UNREADABLE``.
        numbers: (export, frames) -> number of the stack.
        unreadable: marks whose payload does not fit its schema.
    """

    src: list[int] = field(default_factory=list)
    gtid: list[int] = field(default_factory=list)
    start: list[int] = field(default_factory=list)
    stack: list[int] = field(default_factory=list)
    corr: list[int] = field(default_factory=list)
    numbers: dict[tuple[int, Frames], int] = field(default_factory=dict)
    unreadable: int = 0


def stage(build: Builder, exports: list[Export]) -> None:
    """n_python_mark and n_python_stack. Call it before ``nvtx.stage``, for which such marks are no ranges."""
    marks = _Marks()
    for src, item in enumerate(exports):
        if isinstance(item, SqliteExport):  # Parquet declares payloads as text, which they are not
            _read(item, src, marks)
    _tables(build, marks)
    build.con.execute(  # marks whose payload is not there
        "INSERT INTO n_python_mark SELECT r.src, r.gtid, r.start, NULL, NULL FROM n_nvtx r "
        f"WHERE r.event = {NVTX_MARK} AND r.text IS NULL AND r.text_id IS NULL "
        "AND (r.src, r.gtid >> 24, r.domain) IN (SELECT (src, gtid >> 24, domain) FROM n_nvtx "
        f"WHERE event = {NVTX_DOMAIN} AND starts_with(text, '{_DOMAIN}')) "
        "AND (r.src, r.gtid, r.start) NOT IN (SELECT (src, gtid, start) FROM n_python_mark)"
    )
    build.writer.issue(
        "python-stacks-not-exported",
        build.count("SELECT count(*) FROM n_python_mark WHERE corr IS NULL"),
        "Python stacks were recorded, and this export does not hold them: make one with `nsys export "
        "--type=sqlite --include-blobs=true` of nsys 2025.3 or newer",
    )
    build.writer.issue(
        "python-stack-unreadable", marks.unreadable, "Python stacks that are not as their schema says"
    )
    build.writer.issue(
        "left-out",
        build.count(f"SELECT count(*) FROM n_python_mark WHERE corr = {_SAMPLE}"),
        f"Python samples ({_EVENTS}) have no place in this trace format",
        _EVENTS,
    )


def fill(build: Builder) -> None:
    """``call_stacks`` and ``stacks``. Needs n_host, whose rowids are the slice ids of calls."""
    con = build.con
    con.execute(
        "CREATE TABLE n_python_call AS SELECT h.rowid AS slice, m.stack FROM n_python_mark m "
        "LEFT JOIN n_thread_track t ON t.src = m.src AND t.gtid = m.gtid "
        "LEFT JOIN n_host h ON h.track = t.track AND h.corr = m.corr "
        "WHERE m.stack IS NOT NULL AND m.corr > 0"
    )
    con.execute(
        "INSERT INTO call_stacks SELECT slice, min(stack) FROM n_python_call WHERE slice IS NOT NULL "
        "GROUP BY slice ORDER BY slice"
    )
    con.execute(
        "INSERT INTO stacks SELECT * FROM n_python_stack "
        "WHERE stack IN (SELECT stack FROM call_stacks) ORDER BY stack, frame"
    )
    build.writer.issue(
        "python-stack-without-call",
        build.count("SELECT count(*) FROM n_python_call WHERE slice IS NULL"),
        "Python stacks of calls that are not in the recording",
    )


def _read(item: SqliteExport, src: int, marks: _Marks) -> None:
    """Add the marks of one export."""
    needed = {
        _EVENTS: {"binaryData", "eventType", "globalTid", "start"},
        _ENTRIES: {"domainId", "schemaId", "name", "type", "offset"},
        _SCHEMAS: {"schemaId", "payloadSize"},
    }
    if any(not columns <= set(item.columns.get(table, ())) for table, columns in needed.items()):
        return
    layouts = _layouts(item)
    if not layouts:
        return
    calls = _calls(item)
    query = (
        f'SELECT "start", "globalTid", CAST("binaryData" AS BLOB) FROM "{_EVENTS}" '
        f'WHERE "eventType" = {NVTX_MARK} AND "binaryData" IS NOT NULL AND {_whole("start", "globalTid")}'
    )
    for start, gtid, blob in item.each_row(query):
        layout = layouts.get(_HEADER.unpack_from(blob)[:2]) if len(blob) >= _HEADER.size else None
        if layout is None:
            continue  # a mark of the program or of NCCL
        _, _, size, place = _HEADER.unpack_from(blob)
        frames = layout.frames(blob[place : place + size])
        marks.src.append(src)
        marks.gtid.append(gtid)
        marks.start.append(start)
        marks.corr.append(_UNREADABLE if frames is None else calls.get((gtid, start), _SAMPLE))
        marks.stack.append(marks.numbers.setdefault((src, frames), len(marks.numbers)) if frames else -1)
        marks.unreadable += frames is None


def _layouts(item: SqliteExport) -> dict[tuple[int, int], _Layout]:
    """(domain, schema) -> how a Python stack lies in it, of the schemas that describe one.

    Every process lists its schemas. One that two processes define differently is none that can be read: the
    marks do not say whose it is.
    """
    rows = item.rows(
        f'SELECT DISTINCT "domainId", "schemaId", "name", "type", coalesce("offset", 0) FROM "{_ENTRIES}" '
        f"WHERE {_whole('domainId', 'schemaId', 'type')} "
        f'AND typeof(coalesce("offset", 0)) = \'integer\' AND coalesce("offset", 0) BETWEEN 0 AND {_MOST}'
    )
    entries: dict[tuple[int, int], dict[str, set[tuple[int | str, int]]]] = {}
    for domain, schema, name, kind, place in rows:
        fields = entries.setdefault((domain, schema), {})
        fields.setdefault(str(name), set()).add((_NUMBERS.get(kind, kind), place))
    sizes = dict(
        item.rows(
            f'SELECT "schemaId", max("payloadSize") FROM "{_SCHEMAS}" '
            f"WHERE {_whole('schemaId', 'payloadSize')} GROUP BY 1"
        )
    )
    found = {}
    for (domain, schema), of in entries.items():
        counts, frames = of.get("Frames count", set()), of.get("Frames", set())
        if len(counts) != 1 or len(frames) != 1:
            continue
        ((kind, place),), ((inner, first),) = counts, frames
        if not isinstance(kind, str) or not isinstance(inner, int):
            continue
        frame = _frame(entries.get((domain, inner), {}), sizes.get(inner))
        if frame is not None:
            found[domain, schema] = _Layout((place, kind), first, frame)
    return found


def _frame(of: dict[str, set[tuple[int | str, int]]], size: int | None) -> np.dtype[np.void] | None:
    """The type of a frame by the fields of its schema; None where it is not what a frame is."""
    named = [one for name in ("Function", "File", "Line") for one in of.get(name, ())]
    fields = [(kind, place) for kind, place in named if isinstance(kind, str)]
    if len(named) != 3 or len(fields) != 3 or not size:
        return None
    if not max(place + np.dtype(kind).itemsize for kind, place in fields) <= size <= _MOST:
        return None
    return np.dtype(
        {
            "names": ["function", "file", "line"],
            "formats": [kind for kind, _ in fields],
            "offsets": [place for _, place in fields],
            "itemsize": size,
        }
    )


def _calls(item: SqliteExport) -> dict[tuple[int, int], int]:
    """(thread, start) -> correlation id, of the rows that --cudabacktrace adds."""
    if not {"eventClass", "globalTid", "start", "correlationId"} <= set(item.columns.get(_CALLS, ())):
        return {}
    rows = item.each_row(
        f'SELECT "globalTid", "start", "correlationId" FROM "{_CALLS}" '
        f'WHERE "eventClass" = {EVENT_BACKTRACE} AND "correlationId" > 0 '
        f"AND {_whole('globalTid', 'start', 'correlationId')}"
    )
    return {(gtid, start): corr for gtid, start, corr in rows}


def _whole(*columns: str) -> str:
    """SQL: these columns hold whole numbers. SQLite keeps what was written, whatever the column's type."""
    return " AND ".join(f"typeof(\"{column}\") = 'integer'" for column in columns)


def _tables(build: Builder, marks: _Marks) -> None:
    """n_python_mark and n_python_stack from what was read."""
    con = build.con
    of_mark = ("src", "gtid", "start", "stack", "corr")
    con.register("python_marks", {name: np.array(getattr(marks, name), dtype=np.int64) for name in of_mark})
    con.execute(
        "CREATE TABLE n_python_mark AS SELECT src::INTEGER AS src, gtid, start, "
        "nullif(stack, -1)::INTEGER AS stack, corr FROM python_marks"
    )
    con.unregister("python_marks")
    rows = np.array(list(_frames(marks)), dtype=np.int64).reshape(-1, 6)
    of_frame = ("src", "stack", "frame", "function", "file", "line")
    con.register("python_frames", {name: rows[:, at] for at, name in enumerate(of_frame)})
    texts = [f"LEFT JOIN n_string {at} ON {at}.src = r.src AND {at}.id = r.{at}" for at in of_frame[3:5]]
    con.execute(
        "CREATE TABLE n_python_stack AS SELECT r.stack::INTEGER AS stack, r.frame::INTEGER AS frame, "
        f"{_text('file')} AS file, CASE WHEN r.line >= 1 THEN try_cast(r.line AS INTEGER) END AS line, "
        f"{_text('function')} AS function FROM python_frames r {' '.join(texts)}"
    )
    con.unregister("python_frames")


def _text(table: str) -> str:
    """SQL: a string as Python has it, where nsys writes ``<module>`` as ``&lt;module&gt;``."""
    text = f"{table}.value"
    for escaped, plain in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        text = f"replace({text}, '{escaped}', '{plain}')"
    return f"coalesce({text}, '<unknown>')"


def _frames(marks: _Marks) -> Iterator[tuple[int, ...]]:
    """Export, stack, place from the outermost frame, function, file and line of every frame."""
    for (src, frames), stack in marks.numbers.items():
        for place, frame in enumerate(reversed(frames)):
            yield src, stack, place, *frame
