"""Large profiler files from small real ones: the same work, repeated back to back.

    python bench/enlarge.py kineto SOURCE OUT --copies 9 [--layout source|line] [--gzip]
    python bench/enlarge.py sqlite SOURCE OUT --copies 100

A kineto file is repeated with shifted ``ts`` and renumbered correlation, External id, flow, Ev Idx, Python
and Record function ids and step numbers; every other byte of an event stays. What stands before the events is
cut down to the keys that torch itself writes (a recording's own notes can hold a whole environment), and
metadata events (``ph`` M) are written once. SQLite databases (nsys, rocpd) are repeated inside SQLite: tables
with start and end get shifted copies, ids and correlation ids are renumbered. Both are deterministic, and the
text is written copy by copy: memory depends on the source, not on what is made.

Repeated text compresses better than a recording of that length: gunzip has less work, parsing has the same.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from gzip import GzipFile
from pathlib import Path

KEPT_NOTES = (
    "schemaVersion",
    "deviceProperties",
    "distributedInfo",
    "displayTimeUnit",
    "baseTimeNanoseconds",
)
NUMBERED = re.compile(
    rb'("(?:ts|correlation|External id|id|Ev Idx|Python id|Python parent id|Record function id)"\s*:\s*'
    rb'|"name"\s*:\s*"ProfilerStep#)(\d+)'
)
EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[\s*\n')
TIME = re.compile(rb'"ts"\s*:\s*(\d+)')


def events_of(text: bytes) -> tuple[dict[str, object], list[bytes]]:
    """Notes worth keeping, and the events' texts, of a pretty-printed file."""
    start = EVENTS.search(text)
    if start is None:
        raise SystemExit("no traceEvents, or not pretty-printed")
    indent = re.match(rb" *", text[start.end() :])
    assert indent is not None
    end = re.compile(rb"\n {0,%d}\]" % len(indent.group())).search(text, start.end())  # inside events: deeper
    assert end is not None
    events = re.split(rb",\n(?=" + indent.group() + rb"\{)", text[start.end() : end.start()])
    notes = json.loads(text[: start.start()] + b'"traceEvents": []' + text[end.end() :])
    kept = {
        key: value
        for key, value in notes.items()
        if key in KEPT_NOTES or key.endswith("_version") or value in (0, 1)
    }
    return kept, events


def copies_of(events: list[bytes], copies: int) -> Iterator[bytes]:
    """The text of each copy's events, without a comma behind the last one."""
    later = b",\n".join(event for event in events if not re.search(rb'"ph"\s*:\s*"M"', event))
    first = min(int(value) for value in TIME.findall(later))
    last = max(
        int(ts) + int(dur) + 1 for ts, dur in re.findall(rb'"ts"\s*:\s*(\d+)[^}]*?"dur"\s*:\s*(\d+)', later)
    )
    span = last - first + 1000
    yield b",\n".join(events)
    parts = NUMBERED.split(later)  # text, key, number, text, key, number, ..., text
    keys, numbers = parts[1::3], [int(number) for number in parts[2::3]]
    most: dict[bytes, int] = {}
    for key, number in zip(keys, numbers, strict=True):
        most[key] = max(most.get(key, 0), number)
    shared = max(
        (value for key, value in most.items() if b'"correlation"' in key or b'"id"' in key), default=0
    )
    strides = {key: value + 1 for key, value in most.items()}
    for key in strides:
        if b'"ts"' in key:
            strides[key] = span
        elif b'"correlation"' in key or b'"id"' in key:  # a flow's id is its launch's correlation
            strides[key] = shared + 1
        elif b"Python" in key:
            strides[key] = max(value for other, value in most.items() if b"Python" in other) + 1
        elif b"ProfilerStep" in key:
            strides[key] = len({n for k, n in zip(keys, numbers, strict=True) if k == key})
    moves = [
        0 if number == 0 and b'"ts"' not in key else strides[key]
        for key, number in zip(keys, numbers, strict=True)
    ]
    for copy in range(1, copies):
        parts[2::3] = [b"%d" % (number + copy * move) for number, move in zip(numbers, moves, strict=True)]
        yield b"".join(parts)


def single_line(text: bytes) -> bytes:
    """The same JSON as ``json.dump`` writes it by default: one line, ', ' and ': '."""
    return re.sub(rb"\n\s*", b"", re.sub(rb",\s*\n\s*", b", ", text))


def kineto(source: Path, out: Path, copies: int, layout: str, packed: bool) -> None:
    """Write the enlarged file; complete or not there at all."""
    raw = source.read_bytes()
    notes, events = events_of(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    partial = out.with_name(out.name + ".partial")
    lines = layout == "line"
    with partial.open("wb") as plain, contextlib.ExitStack() as stack:
        write: Callable[[bytes], int] = plain.write
        if packed:  # without name and time: the same bytes every time
            write = stack.enter_context(GzipFile("", "wb", 6, plain, mtime=0)).write
        head = json.dumps(notes, indent=None if lines else 2)[:-1].rstrip()
        write(head.encode() + (b', "traceEvents": [' if lines else b',\n  "traceEvents": [\n'))
        for number, text in enumerate(copies_of(events, copies)):
            if lines:
                write((b", " if number else b"") + single_line(text.lstrip()))
            else:
                write((b",\n" if number else b"") + text)
        write(b"]}" if lines else b"\n  ]\n}\n")
    partial.rename(out)


def sqlite(source: Path, out: Path, copies: int) -> None:
    """Repeat every table with start and end, and what their ids point to, inside a copy of the database."""
    partial = out.with_name(out.name + ".partial")
    shutil.copyfile(source, partial)
    con = sqlite3.connect(partial)
    con.executescript(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; CREATE TEMP TABLE copy (k INTEGER)"
    )
    con.executemany("INSERT INTO copy VALUES (?)", [(k,) for k in range(1, copies)])
    tables = {
        name: [str(row[1]) for row in con.execute(f'PRAGMA table_info("{name}")')]
        for (name,) in con.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    }
    timed = [name for name, columns in tables.items() if {"start", "end"} <= set(columns)]
    grown = [*timed, *(name for name in tables if name.startswith(("rocpd_event", "rocpd_arg")))]
    grown = [
        name
        for name in grown
        if not name.startswith("rocpd_info") and con.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone()
    ]

    def biggest(column: str, names: list[str]) -> int:
        found = [
            con.execute(f'SELECT max(CAST("{column}" AS INTEGER)) FROM "{n}"').fetchone()[0] for n in names
        ]
        return max((int(value) for value in found if value is not None), default=0)

    def having(column: str) -> list[str]:
        return [name for name in grown if column in tables[name]]

    span = biggest("end", having("end")) - min(
        con.execute(f'SELECT min(start) FROM "{name}"').fetchone()[0] for name in having("start")
    )
    events = [name for name in grown if name.startswith("rocpd_event")]
    strides = {"start": span + 1_000_000, "end": span + 1_000_000}
    strides |= {"event_id": biggest("id", events)} if events else {}
    for column in ("correlationId", "correlation_id", "stack_id", "parent_stack_id", "dispatch_id"):
        strides[column] = max(biggest(name, having(name)) for name in {column, column.replace("parent_", "")})
    for name in grown:
        own = dict(strides)
        if name.startswith("rocpd"):
            own["id"] = strides["event_id"] if name in events else biggest("id", [name])
        columns = ", ".join(f'"{column}"' for column in tables[name])
        values = ", ".join(
            f'CASE WHEN "{column}" = 0 THEN 0 ELSE "{column}" + k * {own[column]} END'
            if column in own
            else f'"{column}"'
            for column in tables[name]
        )
        con.execute(f'INSERT INTO "{name}" ({columns}) SELECT {values} FROM copy, "{name}"')
    con.commit()
    con.close()
    partial.rename(out)


def main() -> None:
    """Make one file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("family", choices=("kineto", "sqlite"))
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--copies", type=int, default=9)
    parser.add_argument("--layout", choices=("source", "line"), default="source")
    parser.add_argument("--gzip", action="store_true")
    options = parser.parse_args()
    if options.family == "sqlite":
        sqlite(options.source, options.out, options.copies)
    else:
        kineto(options.source, options.out, options.copies, options.layout, options.gzip)


if __name__ == "__main__":
    main()
