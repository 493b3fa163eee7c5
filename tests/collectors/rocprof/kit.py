"""Help for the tests of AMD's readers: a rocpd database of a chosen content, and what a trace holds."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from profrun.collectors.normalize import normalize
from profrun.traces.trace import Trace

GUID = "00003fdc-92cb-72cb-9169-c7e541b1fcdf"

_DDL = {
    "rocpd_metadata": "id INTEGER PRIMARY KEY, tag TEXT, value TEXT",
    "rocpd_string": "id INTEGER PRIMARY KEY, guid TEXT, string TEXT",
    "rocpd_info_node": "id INTEGER PRIMARY KEY, guid TEXT, machine_id TEXT, hostname TEXT",
    "rocpd_info_process": "id INTEGER PRIMARY KEY, guid TEXT, nid INT, pid INT, command TEXT, environment "
    "TEXT",
    "rocpd_info_thread": "id INTEGER PRIMARY KEY, guid TEXT, tid INT",
    "rocpd_info_agent": "id INTEGER PRIMARY KEY, guid TEXT, type TEXT, type_index INT, name TEXT, "
    "product_name TEXT, extdata TEXT",
    "rocpd_info_kernel_symbol": "id INTEGER PRIMARY KEY, guid TEXT, display_name TEXT, kernel_name TEXT, "
    "group_segment_size INT, arch_vgpr_count INT, accum_vgpr_count INT",
    "rocpd_info_pmc": "id INTEGER PRIMARY KEY, guid TEXT, name TEXT, units TEXT",
    "rocpd_track": "id INTEGER PRIMARY KEY, guid TEXT, pid INT, tid INT, name_id INT",
    "rocpd_event": "id INTEGER PRIMARY KEY, guid TEXT, category_id INT, stack_id INT, extdata TEXT",
    "rocpd_region": "id INTEGER PRIMARY KEY, guid TEXT, pid INT, tid INT, start INT, end INT, name_id INT, "
    "event_id INT",
    "rocpd_sample": "id INTEGER PRIMARY KEY, guid TEXT, track_id INT, timestamp INT, event_id INT",
    "rocpd_kernel_dispatch": "id INTEGER PRIMARY KEY, guid TEXT, pid INT, tid INT, agent_id INT, kernel_id "
    "INT, dispatch_id INT, queue_id INT, stream_id INT, start INT, end INT, private_segment_size INT, "
    "group_segment_size INT, workgroup_size_x INT, workgroup_size_y INT, workgroup_size_z INT, grid_size_x "
    "INT, grid_size_y INT, grid_size_z INT, event_id INT",
    "rocpd_memory_copy": "id INTEGER PRIMARY KEY, guid TEXT, pid INT, start INT, end INT, name_id INT, "
    "src_agent_id INT, dst_agent_id INT, size INT, queue_id INT, stream_id INT, event_id INT",
    "rocpd_memory_allocate": "id INTEGER PRIMARY KEY, guid TEXT, pid INT, agent_id INT, type TEXT, level "
    "TEXT, start INT, end INT, address INT, size INT, event_id INT",
    "rocpd_pmc_event": "id INTEGER PRIMARY KEY, guid TEXT, event_id INT, pmc_id INT, value REAL",
}


class Rocpd:
    """Writes a rocpd database row by row; strings and events are made as needed."""

    def __init__(self, path: Path, *, guid: str = GUID, version: str = "3.0.2", plain: bool = False) -> None:
        self.guid = guid
        self.con = sqlite3.connect(path)
        self.con.execute("PRAGMA synchronous = OFF")
        self.suffix = "" if plain else "_" + guid.replace("-", "_")
        for table, columns in _DDL.items():
            quoted = columns.replace(" end INT", ' "end" INT')
            self.con.execute(f'CREATE TABLE IF NOT EXISTS "{table}{self.suffix}" ({quoted})')
        self.row("rocpd_metadata", tag="schema_version", value=version)
        self.strings: dict[str, int] = {}

    def row(self, table: str, **values: Any) -> int:
        """Insert one row; returns its id."""
        if table != "rocpd_metadata":
            values["guid"] = self.guid
        names = ", ".join(f'"{name}"' for name in values)
        marks = ", ".join("?" for _ in values)
        cursor = self.con.execute(
            f'INSERT INTO "{table}{self.suffix}" ({names}) VALUES ({marks})', list(values.values())
        )
        return int(cursor.lastrowid or 0)

    def text(self, text: str) -> int:
        """Id of a string."""
        if text not in self.strings:
            self.strings[text] = self.row("rocpd_string", string=text)
        return self.strings[text]

    def event(self, category: str, stack: int, message: str | None = None) -> int:
        """Id of a new event."""
        extra = json.dumps({"message": message}) if message is not None else "{}"
        return self.row("rocpd_event", category_id=self.text(category), stack_id=stack, extdata=extra)

    def basics(self, pid: int = 7, environment: Mapping[str, str] | None = None) -> None:
        """One process of one thread, a CPU (agent 0) and two GPUs (agents 1 and 2), one kernel (id 1)."""
        self.row(
            "rocpd_info_process",
            id=pid,
            nid=99,
            pid=pid,
            command="/opt/bin/train --token s3cret",
            environment=json.dumps({"HF_TOKEN": "s3cret", **(environment or {})}),
        )
        self.row("rocpd_info_node", id=99, machine_id="m-s3cret", hostname="h-s3cret")
        self.row("rocpd_info_thread", id=pid, tid=pid)
        self.row(
            "rocpd_info_agent", id=0, type="CPU", type_index=0, name="EPYC", product_name="EPYC", extdata="{}"
        )
        for number in (1, 2):
            self.row(
                "rocpd_info_agent",
                id=number,
                type="GPU",
                type_index=number - 1,
                name="gfx942",
                product_name="AMD Instinct MI300X",
                extdata=json.dumps({"cu_count": 304, "wave_front_size": 64, "lds_size_in_kb": 64}),
            )
        self.row(
            "rocpd_info_kernel_symbol",
            id=1,
            display_name="gemm(float*) [clone .kd]",
            kernel_name="_Z4gemmPf.kd",
            group_segment_size=1024,
            arch_vgpr_count=100,
            accum_vgpr_count=28,
        )

    def region(
        self,
        category: str,
        name: str,
        start: int,
        end: int,
        stack: int,
        *,
        tid: int = 7,
        message: str | None = None,
    ) -> None:
        """A host region."""
        event = self.event(category, stack, message)
        self.row(
            "rocpd_region", pid=7, tid=tid, start=start, end=end, name_id=self.text(name), event_id=event
        )

    def kernel(
        self, start: int, end: int, stack: int, *, dispatch: int = 1, agent: int = 2, **more: Any
    ) -> int:
        """A dispatch of kernel 1; returns its event."""
        event = self.event("KERNEL_DISPATCH", stack)
        values: dict[str, Any] = {
            "pid": 7,
            "tid": 7,
            "agent_id": agent,
            "kernel_id": 1,
            "dispatch_id": dispatch,
            "queue_id": 16,
            "stream_id": 0,
            "start": start,
            "end": end,
            "private_segment_size": 8,
            "group_segment_size": 1536,
            "workgroup_size_x": 64,
            "workgroup_size_y": 4,
            "workgroup_size_z": 1,
            "grid_size_x": 100,
            "grid_size_y": 8,
            "grid_size_z": 3,
            "event_id": event,
        }
        self.row("rocpd_kernel_dispatch", **(values | more))
        return event

    def done(self) -> None:
        """Commit and close."""
        self.con.commit()
        self.con.close()


def trace_of(paths: Path | Sequence[Path], out: Path) -> Trace:
    """Normalize (which also checks the invariants) and open."""
    normalize([paths] if isinstance(paths, Path) else list(paths), out)
    return Trace(out)


def as_recorded(paths: Path | Sequence[Path], out: Path) -> Trace:
    """Normalize without moving any time, so that every time is the file's own, and open."""
    normalize([paths] if isinstance(paths, Path) else list(paths), out, repair=False)
    return Trace(out)


def totals(trace: Trace) -> dict[str, tuple[int, int]]:
    """Count and summed duration in ns of each kind of slice."""
    rows = trace.sql("SELECT kind, count(*), sum(dur_ns)::BIGINT FROM slices GROUP BY kind").rows
    return {kind: (count, total) for kind, count, total in rows}


def issue_codes(trace: Trace) -> set[str]:
    """Codes of all issues."""
    return {row[0] for row in trace.sql("SELECT code FROM issues").rows}


def summed(rows: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Count and summed duration of (start, end) pairs."""
    spans = [end - start for start, end in rows]
    return len(spans), sum(spans)
