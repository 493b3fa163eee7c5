"""Traces for the tests of analysis: built in memory from a list, or normalised once from a real file."""

from __future__ import annotations

import atexit
import contextlib
import functools
import itertools
import json
import shutil
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import duckdb

from profrun.collectors.normalize import normalize
from profrun.traces.memo import Memo
from profrun.traces.meta import TraceMeta
from profrun.traces.schema import TABLES
from profrun.traces.trace import Trace
from profrun.traces.views import create_views

Row = tuple[Any, ...]  # (kind, name, ts_ns, dur_ns, track[, {column: value}])

H200 = {
    "vendor": "nvidia", "name": "NVIDIA H200", "arch": "sm_90", "sm_count": 132, "warp_size": 32,
    "max_threads_per_sm": 2048, "regs_per_sm": 65536, "smem_per_sm": 233472, "memory_bytes": 150109880320,
}  # fmt: skip


@functools.cache
def _engine() -> tuple[duckdb.DuckDBPyConnection, Path, Iterator[int]]:
    """One engine for all, a database with empty tables and the views, and numbers for its copies.

    An engine of its own, its tables and views cost each trace 35 ms of CPU, a copy of the database 3 ms.
    """
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(_engine.cache_clear)  # or the engine outlives its module
    with duckdb.connect(str(folder / "empty")) as con:
        for table in TABLES.values():
            con.execute(table.ddl())
        create_views(con)
    return duckdb.connect(":memory:", config={"threads": 1}), folder / "empty", itertools.count()


def _empty() -> duckdb.DuckDBPyConnection:
    """A connection to an empty trace; it goes when the connection does."""
    engine, template, numbers = _engine()
    name = f"trace{next(numbers)}"
    copy = template.with_name(name)
    shutil.copyfile(template, copy)
    con = engine.cursor()
    con.execute(f"ATTACH '{copy}' AS {name}")
    con.execute(f"USE {name}")
    weakref.finalize(con, _drop, name, copy).atexit = False
    return con


def _drop(name: str, copy: Path) -> None:
    with contextlib.suppress(duckdb.Error):  # still used by a cursor of its own
        _engine()[0].execute(f"DETACH {name}")
    copy.unlink(missing_ok=True)
    copy.with_name(f"{name}.wal").unlink(missing_ok=True)


def memory_trace(
    rows: Sequence[Row],
    *,
    meta: Mapping[str, Any] | None = None,
    side: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    device: Mapping[str, Any] | None = None,
    ranks: int = 1,
    hosts: Sequence[str] = (),
) -> Trace:
    """A trace that lives in memory only: ids are places in the list, parents follow from nesting.

    Tracks: 'main', 'autograd', ... are host threads, 'stream N' a GPU stream; 'r1:main' belongs to rank 1,
    whose device is 1. ``columns`` as in ``tests.tracekit.make_trace``.
    """
    trace = Trace.__new__(Trace)
    trace.path = Path("memory")
    meta_defaults: dict[str, Any] = {
        "source": "synthetic", "collector": "torch", "vendor": "nvidia", "tool_version": None, "epoch_ns": 0,
        "clock": "epoch", "replayed": False, "launch_blocking": None, "job": None, "extra": {},
    }  # fmt: skip
    trace.meta = cast("TraceMeta", meta_defaults | dict(meta or {}))
    trace.memo = Memo()
    trace._connection = _empty()
    trace._views_wanted = False  # they are in the empty database
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    for rank in range(ranks):
        tables["processes"].append(
            {"process": rank, "pid": 100 + rank, "rank": rank, "host": hosts[rank] if hosts else "h"}
        )
        gpu = {"device": rank, "process": rank, "ordinal": rank} | H200 | dict(device or {})
        tables["devices"].append(gpu)
    tracks: dict[str, int] = {}
    for row in rows:
        tracks.setdefault(row[4], len(tracks))
    for track_name, track in tracks.items():
        prefix, _, name = track_name.rpartition(":")
        rank = int(prefix[1:]) if prefix else 0
        stream = name.startswith("stream ")
        tables["tracks"].append(
            {"track": track, "kind": "stream" if stream else "thread", "process": rank, "name": name,
             "device": rank if stream else None, "native_id": int(name.split()[1]) if stream else track}
        )  # fmt: skip
    _slices(tables, rows, tracks)
    for table, extra in (side or {}).items():
        tables[table] += [dict(one) for one in extra]
    for name, made in TABLES.items():
        if tables[name]:
            marks = "(" + ", ".join("?" for _ in made.column_names) + ")"
            values = [one.get(column) for one in tables[name] for column in made.column_names]
            trace.con.execute(f'INSERT INTO "{name}" VALUES {", ".join([marks] * len(tables[name]))}', values)
    return trace


def _slices(tables: dict[str, list[dict[str, Any]]], rows: Sequence[Row], tracks: Mapping[str, int]) -> None:
    for number, (kind, name, ts, dur, track, *rest) in enumerate(rows):
        row = {"slice": number, "kind": kind, "name": name, "ts_ns": ts, "dur_ns": dur}
        row["track"] = tracks[track]
        side: dict[str, dict[str, Any]] = {}
        if kind == "kernel":
            side["kernels"] = {"slice": number}
        for key, value in (rest[0] if rest else {}).items():
            table, _, column = key.rpartition(".")
            if table:
                side.setdefault(table, {"slice": number})[column] = value
            else:
                row[key] = value
        if "stream" not in track:
            row.setdefault("parent", _parent(rows, number))
        tables["slices"].append(row)
        for table, values in side.items():
            tables[table].append(values)


def _parent(rows: Sequence[Row], number: int) -> int | None:
    """The shortest slice of the same track that encloses this one (of equal ones the last before it)."""
    _, _, ts, dur, track = rows[number][:5]
    found = None
    for place, other in enumerate(rows):
        if place == number or other[4] != track or other[2] > ts or other[2] + other[3] < ts + dur:
            continue
        if (other[2], other[3]) == (ts, dur) and place > number:
            continue
        if found is None or other[3] <= rows[found][3]:
            found = place
    return found


def step(number: int, ts: int, dur: int, track: str = "main") -> Row:
    """A step range."""
    return ("step", f"profrun.step#{number}", ts, dur, track)


def run(ts: int, dur: int, track: str = "main") -> Row:
    """The range over a run without steps."""
    return ("step", "profrun.run", ts, dur, track)


def record_here(program: str, folder: Path) -> Any:
    """Run a program that writes ``cpu.json`` and ``truth.json``; normalise the first into ``trace``.

    It runs in a process of its own: torch's profiler wants to be the first to start threads.

    Args:
        program: Python source; its only argument is the folder.
        folder: where everything is written.

    Returns:
        The value of ``truth.json``.
    """
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    normalize([folder / "cpu.json"], folder / "trace")
    return json.loads((folder / "truth.json").read_text(encoding="utf-8"))


def sm_clocks(clocks: Mapping[int, float], device: int = 0) -> dict[str, list[dict[str, Any]]]:
    """Side tables of a sampler's readings of a GPU's clock: time -> MHz; for one rank's trace."""
    track = {"track": 90 + device, "kind": "counter", "process": 0, "device": device, "name": "samples"}
    counters = [
        {"track": 90 + device, "ts_ns": ts, "name": "SM clock", "value": mhz, "unit": "MHz"}
        for ts, mhz in clocks.items()
    ]
    return {"tracks": [track], "counters": counters} if counters else {}
