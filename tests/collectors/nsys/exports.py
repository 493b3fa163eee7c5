"""Small synthetic nsys exports: the tables and rows of one test, on one screen."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from profrun.collectors.normalize import normalize
from profrun.traces.trace import Trace

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
MEMCPY = "CUPTI_ACTIVITY_KIND_MEMCPY"

Rows = Sequence[Mapping[str, Any]]


def gpid(pid: int) -> int:
    """A globalPid as nsys writes it: host 1, this pid, no thread."""
    return (1 << 48) | (pid << 24)


def gtid(pid: int, tid: int) -> int:
    """A globalTid as nsys writes it."""
    return gpid(pid) | tid


def make_export(path: Path, tables: Mapping[str, Rows], strings: Sequence[str] = ()) -> Path:
    """A SQLite export with these tables; columns are those that any row names. String n has id n."""
    everything = {"StringIds": [{"id": n, "value": text} for n, text in enumerate(strings)]} | dict(tables)
    con = sqlite3.connect(path)
    for name, rows in everything.items():
        columns = list(dict.fromkeys(column for row in rows for column in row)) or ["start"]
        quoted = ", ".join('"' + column + '"' for column in columns)
        con.execute(f'CREATE TABLE "{name}" ({quoted})')
        con.executemany(
            f'INSERT INTO "{name}" VALUES ({", ".join("?" for _ in columns)})',
            [[row.get(column) for column in columns] for row in rows],
        )
    con.commit()
    con.close()
    return path


def trace_of(tmp_path: Path, *paths: Path) -> Trace:
    """Normalise (which checks every invariant) and open."""
    out = tmp_path / "trace"
    normalize(list(paths), out)
    return Trace(out)


def issues(trace: Trace) -> dict[str, int]:
    """Issue code -> count (codes that come several times are added up)."""
    return dict(trace.sql("SELECT code, sum(count)::BIGINT FROM issues GROUP BY code").rows)
