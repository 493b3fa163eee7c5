"""SQLite databases of nsys, rocpd, RPD and rocprof v1: rows as records, changed by UPDATE, DELETE and INSERT.

A family is a handful of queries: which rows are GPU work, which are host calls, and which statement changes a
row's times, correlation and process. The file is copied and changed in the copy.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

from planted_damage.model import GpuRecord, HostRecord, Recording

STEP = re.compile(r"(?:ProfilerStep#|step[ _#]?|iteration[ _#]?)\d+", re.IGNORECASE)


class Database(Recording):
    """One SQLite file; the families below say what is in it."""

    start = "start"
    end = "end"

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__()
        (self.path,) = paths
        self._con = sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        self._tables = {
            name: [str(row[1]) for row in self._con.execute(f'PRAGMA table_info("{name}")')]
            for (name,) in self._con.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        }
        self.load()
        self._con.close()
        self._before: dict[tuple[object, ...], tuple[int, int, Hashable, Hashable]] = {
            row.ref: (row.start, row.end, row.correlation, row.process) for row in self.rows
        }

    def load(self) -> None:
        """Fill ``gpu`` and ``host`` from ``self._con``."""
        raise NotImplementedError

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        return self._con.execute(sql).fetchall()

    def column(self, table: str, name: str, otherwise: str = "0") -> str:
        """A column that not every version has."""
        return f'"{name}"' if name in self._tables[table] else otherwise

    def save(self, folder: Path) -> list[Path]:
        """A copy of the file with the changed rows."""
        out = folder / self.path.name
        shutil.copyfile(self.path, out)
        con = sqlite3.connect(out)
        con.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF;")
        for row in self.rows:
            start, end, correlation, process = self._before[row.ref]
            if (row.start, row.end) != (start, end):
                self.set_times(con, row)
            if isinstance(row, GpuRecord):
                if row.correlation != correlation:
                    self.set_correlation(con, row)
                if row.process != process:
                    self.set_process(con, row)
                if row.copies == 0:
                    con.execute(f'DELETE FROM "{row.ref[0]}" WHERE rowid = ?', (row.ref[1],))
                for _ in range(row.copies - 1):
                    self.double(con, row)
        con.commit()
        con.close()
        return [out]

    def set_times(self, con: sqlite3.Connection, row: GpuRecord | HostRecord) -> None:
        """Write the times of a row."""
        table, rowid = row.ref[:2]
        con.execute(
            f'UPDATE "{table}" SET "{self.start}" = ?, "{self.end}" = ? WHERE rowid = ?',
            (row.start, row.end, rowid),
        )

    def set_correlation(self, con: sqlite3.Connection, row: GpuRecord) -> None:
        """Write what ties a GPU row to its launch."""
        raise NotImplementedError

    def set_process(self, con: sqlite3.Connection, row: GpuRecord) -> None:
        """Write the process of a GPU row."""
        raise NotImplementedError

    def double(self, con: sqlite3.Connection, row: GpuRecord) -> int:
        """Insert the row once more, with an id of its own, and return its rowid."""
        table, rowid = row.ref[:2]
        keys = {str(r[1]) for r in con.execute(f'PRAGMA table_info("{table}")') if r[5]}
        columns = ", ".join(f'"{name}"' for name in self._tables[str(table)] if name not in keys)
        cursor = con.execute(
            f'INSERT INTO "{table}" ({columns}) SELECT {columns} FROM "{table}" WHERE rowid = ?', (rowid,)
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid


class Nsys(Database):
    """An export of Nsight Systems; processes are told apart by globalPid."""

    family = "nsys"
    gpu_tables = (
        ("CUPTI_ACTIVITY_KIND_KERNEL", "kernel"),
        ("CUPTI_ACTIVITY_KIND_MEMCPY", "copy"),
        ("CUPTI_ACTIVITY_KIND_MEMSET", "fill"),
        ("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "kernel"),
    )

    def load(self) -> None:
        self._shifted: list[tuple[Hashable, int]] = []
        strings: dict[int, str] = dict(self.query("SELECT id, value FROM StringIds"))
        for table, kind in self.gpu_tables:
            if table in self._tables:
                self._load_gpu(table, kind, strings)
        self._load_api(strings)
        if "NVTX_EVENTS" in self._tables:
            self._load_ranges(strings)

    def _load_gpu(self, table: str, kind: str, strings: dict[int, str]) -> None:
        name = self.column(table, "demangledName", "NULL")
        if kind == "copy":
            to_host = f'"copyKind" = 2 AND {self.column(table, "dstKind", "NULL")} IS NOT NULL'
            name = f"CASE WHEN {to_host} THEN -1 - (dstKind = 0) END"
            strings = {-1: "DtoH", -2: "DtoH Pageable"}
        pid = self.column(table, "globalPid")
        sql = (
            f'SELECT rowid, start, "end", {pid}, deviceId, streamId, {self.column(table, "correlationId")}, '
            f'{name} FROM "{table}"'
        )
        for rowid, start, end, process, device, stream, correlation, text in self.query(sql):
            called = strings.get(text, kind)
            lane = (device, stream)
            found = correlation or None
            self.gpu.append(GpuRecord(kind, called, start, end, process, lane, found, (table, rowid)))

    def _load_api(self, strings: dict[int, str]) -> None:
        table, waits = "CUPTI_ACTIVITY_KIND_RUNTIME", {}
        syncs = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
        if syncs in self._tables:
            pid = self.column(syncs, "globalPid")
            found = self.query(f"SELECT {pid}, correlationId, deviceId, streamId FROM {syncs}")
            waits = {(p, c): (d, s) for p, c, d, s in found if s is not None and s != 4294967295}
        sql = f'SELECT rowid, start, "end", globalTid, correlationId, nameId FROM {table}'
        for rowid, start, end, thread, correlation, text in self.query(sql):
            process = (thread >> 24) << 24 if self._has_process() else 0
            self.host.append(
                HostRecord(
                    "api",
                    re.sub(r"_v\d{4,5}$", "", strings.get(text, "")),
                    start,
                    end,
                    process,
                    thread,
                    correlation,
                    (table, rowid),
                    waits.get((process, correlation)),
                )
            )

    def _has_process(self) -> bool:
        return "globalPid" in self._tables["CUPTI_ACTIVITY_KIND_KERNEL"]

    def _load_ranges(self, strings: dict[int, str]) -> None:
        table = "NVTX_EVENTS"
        text_id = self.column(table, "textId", "NULL")
        sql = (
            f'SELECT rowid, start, "end", globalTid, text, {text_id} FROM {table} '
            'WHERE "end" IS NOT NULL AND eventType IN (59, 60)'
        )
        for rowid, start, end, thread, text, number in self.query(sql):
            name = text if text is not None else strings.get(number, "")
            kind = "step" if STEP.fullmatch(name) else "host"
            process = (thread >> 24) << 24
            self.host.append(HostRecord(kind, name, start, end, process, thread, None, (table, rowid)))

    def shift_process(self, process: Hashable, delta: int) -> None:
        """Every table with times of a process, also those that are not loaded as records."""
        super().shift_process(process, delta)
        self._shifted.append((process, delta))

    def save(self, folder: Path) -> list[Path]:
        (out,) = super().save(folder)
        loaded = {row.ref for row in self.rows}
        con = sqlite3.connect(out)
        for table, columns in self._tables.items():
            owner = next((name for name in ("globalPid", "globalTid") if name in columns), None)
            if owner is None or "start" not in columns:
                continue
            ends = ', "end" = "end" + ?1' if "end" in columns else ""
            for process, delta in self._shifted:
                sql = f'SELECT rowid FROM "{table}" WHERE ("{owner}" >> 24) << 24 = ?'
                rest = [row for (row,) in con.execute(sql, (process,)) if (table, row) not in loaded]
                change = f'UPDATE "{table}" SET start = start + ?1{ends} WHERE rowid = ?2'
                con.executemany(change, [(delta, row) for row in rest])
        con.commit()
        con.close()
        return [out]

    def set_correlation(self, con: sqlite3.Connection, row: GpuRecord) -> None:
        con.execute(
            f'UPDATE "{row.ref[0]}" SET correlationId = ? WHERE rowid = ?', (row.correlation, row.ref[1])
        )

    def set_process(self, con: sqlite3.Connection, row: GpuRecord) -> None:
        con.execute(f'UPDATE "{row.ref[0]}" SET globalPid = ? WHERE rowid = ?', (row.process, row.ref[1]))


class Rocpd(Database):
    """A database of rocprofv3; a dispatch and its call share the stack id of their events."""

    family = "rocpd"

    def load(self) -> None:
        named = {name.rsplit("_", 5)[0]: name for name in self._tables if name.startswith("rocpd_")}
        self._event = named["rocpd_event"]
        for base, kind in (("rocpd_kernel_dispatch", "kernel"), ("rocpd_memory_copy", "copy")):
            device = "agent_id" if kind == "kernel" else "dst_agent_id"
            sql = (
                f'SELECT t.rowid, t.start, t."end", t.pid, t.{device}, t.queue_id, t.stream_id, e.stack_id, '
                f't.event_id FROM "{named[base]}" t LEFT JOIN "{self._event}" e ON e.id = t.event_id'
            )
            for rowid, start, end, pid, agent, queue, stream, stack, event in self.query(sql):
                lane, ref = (agent, queue, stream), (named[base], rowid, event)
                self.gpu.append(GpuRecord(kind, kind, start, end, pid, lane, stack, ref))
        sql = (
            f'SELECT t.rowid, s.string, t.start, t."end", t.pid, t.tid, e.stack_id '
            f'FROM "{named["rocpd_region"]}" t JOIN "{named["rocpd_string"]}" s ON s.id = t.name_id '
            f'LEFT JOIN "{self._event}" e ON e.id = t.event_id'
        )
        for rowid, name, start, end, pid, tid, stack in self.query(sql):
            region = (named["rocpd_region"], rowid)
            self.host.append(HostRecord("api", name, start, end, pid, tid, stack, region))

    def set_correlation(self, con: sqlite3.Connection, row: GpuRecord) -> None:
        con.execute(f'UPDATE "{self._event}" SET stack_id = ? WHERE id = ?', (row.correlation, row.ref[2]))


class Rpd(Database):
    """A database of rocmProfileData; rocpd_api_ops ties an op to its call."""

    family = "rpd"

    def load(self) -> None:
        sql = (
            'SELECT o.id, o.start, o."end", o.gpuId, o.queueId, k.string, a.pid, l.api_id FROM rocpd_op o '
            "JOIN rocpd_string k ON k.id = o.opType_id LEFT JOIN rocpd_api_ops l ON l.op_id = o.id "
            "LEFT JOIN rocpd_api a ON a.id = l.api_id"
        )
        kinds = {"KernelExecution": "kernel", "FillBuffer": "fill"}
        for rowid, start, end, gpu, queue, name, pid, api in self.query(sql):
            kind = kinds.get(name, "copy")
            ref = ("rocpd_op", rowid)
            self.gpu.append(GpuRecord(kind, name, start, end, pid, (gpu, queue), api, ref))
        sql = (
            'SELECT a.id, s.string, a.start, a."end", a.pid, a.tid FROM rocpd_api a '
            "JOIN rocpd_string s ON s.id = a.apiName_id"
        )
        for rowid, name, start, end, pid, tid in self.query(sql):
            self.host.append(HostRecord("api", name, start, end, pid, tid, rowid, ("rocpd_api", rowid)))

    def set_correlation(self, con: sqlite3.Connection, row: GpuRecord) -> None:
        con.execute("UPDATE rocpd_api_ops SET api_id = ? WHERE op_id = ?", (row.correlation, row.ref[1]))

    def double(self, con: sqlite3.Connection, row: GpuRecord) -> int:
        new = super().double(con, row)
        con.execute("INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (?, ?)", (row.correlation, new))
        return new


class RocprofV1(Database):
    """A database of rocprof v1; ``Index`` of an operation is that of its call."""

    family = "rocprofv1-db"
    start = "BeginNs"
    end = "EndNs"

    def load(self) -> None:
        for table, kind in (("OPS", "kernel"), ("COPY", "copy")):
            sql = f'SELECT rowid, BeginNs, EndNs, pid, "dev-id", "queue-id", Name, "Index" FROM {table}'
            for rowid, start, end, pid, device, queue, name, index in self.query(sql):
                lane = (device, queue)
                self.gpu.append(GpuRecord(kind, name, start, end, pid, lane, index, (table, rowid)))
        sql = 'SELECT rowid, Name, BeginNs, EndNs, pid, tid, "Index" FROM HIP'
        for rowid, name, start, end, pid, tid, index in self.query(sql):
            self.host.append(HostRecord("api", name, start, end, pid, tid, index, ("HIP", rowid)))

    def set_times(self, con: sqlite3.Connection, row: GpuRecord | HostRecord) -> None:
        super().set_times(con, row)
        con.execute(
            f'UPDATE "{row.ref[0]}" SET DurationNs = ? WHERE rowid = ?', (row.end - row.start, row.ref[1])
        )

    def set_correlation(self, con: sqlite3.Connection, row: GpuRecord) -> None:
        con.execute(f'UPDATE "{row.ref[0]}" SET "Index" = ? WHERE rowid = ?', (row.correlation, row.ref[1]))
