"""rocprof v1: results.db (SQLite) and results.json (Chrome trace), every ROCm up to 7.

Both hold the same records: HIP and HSA calls, kernels (OPS, or KERN in runs without tracing), copies.
Times are ``BeginNs`` and ``EndNs``; the JSON's ``ts`` and ``dur`` are microseconds cut to integers and are
not used. A record's ``Index`` is that of the API call that caused it. ``dev-id`` counts CPU agents first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from profrun.collectors.json_stream import JsonStream, Malformed, Truncated, open_bytes
from profrun.collectors.reading import Progress, Source
from profrun.collectors.rocprof.build import build
from profrun.collectors.rocprof.folder import expand, knows
from profrun.collectors.rocprof.names import direction, direction_sql
from profrun.collectors.rocprof.sqlite import Database
from profrun.collectors.rocprof.staging import Staging
from profrun.collectors.unpack import DAMAGED
from profrun.errors import InputError
from profrun.traces.writer import TraceWriter

_TABLES = frozenset({"HIP", "HSA", "OPS", "COPY", "KERN", "rocTX"})
_TEXTS = frozenset({"Name", "KernelName", "args"})
_SIZES = (("numBlocks", "g"), ("dimBlocks", "w"))  # in a launch's args: numBlocks({z(1) y(1) x(1})
_BATCH = 50_000


class V1DatabaseReader:
    """Reads results.db."""

    name = "rocprofv1-db"

    def accepts(self, source: Source) -> bool:
        """Has it v1's tables?"""
        if source.path.is_dir():
            return knows(self, source)
        names = source.sqlite_tables
        return bool(names & {"OPS", "KERN"}) and names <= _TABLES | {"sqlite_sequence"}

    def read(self, sources: Sequence[Source], writer: TraceWriter, progress: Progress) -> None:
        """Fill the writer from all databases of a run."""
        sources = expand(self, sources)
        staging = Staging(writer)
        for number, source in enumerate(sources):
            with Database(source.path) as database:
                _read_database(staging, database)
            progress(number + 1, len(sources))
        build(staging, self.name)


def _read_database(staging: Staging, database: Database) -> None:
    con = staging.con
    pids: set[int] = set()
    for table in sorted(database.relations & _TABLES):
        if {"pid", "BeginNs"} <= database.columns(table):
            pids |= {
                pid for (pid,) in database.rows(f'SELECT DISTINCT pid FROM "{table}"') if isinstance(pid, int)
            }
    procs = {pid: staging.process(pid) for pid in sorted(pids) or [0]}
    con.execute("CREATE TEMP TABLE v1_pid (pid BIGINT, proc INTEGER)")
    con.executemany("INSERT INTO v1_pid VALUES (?, ?)", list(procs.items()))
    default = next(iter(procs.values()))
    for table, prio in (("HIP", 0), ("HSA", 1), ("rocTX", 9)):
        if _copy(database, staging, table, ("pid", "tid", "BeginNs", "EndNs", "Name", "Index", "args")):
            if table == "HIP":
                _launch_sizes(staging)
            staging.insert(
                "amd_host",
                f"SELECT coalesce(p.proc, {default}) AS proc, tid, "
                f"'{'range' if prio == 9 else 'api'}' AS kind, Name AS name, BeginNs AS start, EndNs AS "
                f"stop, {'NULL' if prio == 9 else 'r.Index'} AS corr, {prio} AS prio "
                "FROM v1_raw r LEFT JOIN v1_pid p USING (pid)",
                "r.rowid",
            )
            con.execute("DROP TABLE v1_raw")
    _read_copies(database, staging, default)
    _read_kernels(database, staging, default)
    con.execute("DROP TABLE v1_pid")
    con.execute("DROP TABLE IF EXISTS v1_sizes")


def _launch_sizes(staging: Staging) -> None:
    """Grids in blocks from the arguments of launch calls: v1 writes them nowhere else."""
    sizes = ", ".join(
        f"try_cast(nullif(regexp_extract(args, '{what}[^x]*x\\((\\d+)', 1), '') AS BIGINT) AS {short}x, "
        f"try_cast(nullif(regexp_extract(args, '{what}[^y]*y\\((\\d+)', 1), '') AS BIGINT) AS {short}y, "
        f"try_cast(nullif(regexp_extract(args, '{what}[^z]*z\\((\\d+)', 1), '') AS BIGINT) AS {short}z"
        for what, short in _SIZES
    )
    staging.con.execute(
        f"CREATE TEMP TABLE v1_sizes AS SELECT pid, r.Index AS corr, {sizes} FROM v1_raw r "
        "WHERE contains(args, 'numBlocks') QUALIFY row_number() OVER (PARTITION BY pid, r.Index) = 1"
    )


def _read_copies(database: Database, staging: Staging, default: int) -> None:
    columns = ("pid", "BeginNs", "EndNs", "Name", "Index", "dev-id", "stream-id")
    if not _copy(database, staging, "COPY", columns):
        return
    way = direction_sql("Name")
    staging.insert(
        "amd_gpu",
        f"SELECT coalesce(p.proc, {default}) AS proc, "
        f"CASE {way} WHEN 'memset' THEN 'memset' ELSE 'memcpy' END AS what, {way} AS direction, Name AS "
        f"name, "
        'BeginNs AS start, EndNs AS stop, r.Index AS corr, "dev-id" AS agent, "stream-id" AS stream '
        "FROM v1_raw r LEFT JOIN v1_pid p USING (pid)",
        "r.rowid",
    )
    staging.con.execute("DROP TABLE v1_raw")


def _read_kernels(database: Database, staging: Staging, default: int) -> None:
    """OPS where tracing was on; else KERN, which has the launch sizes (as products) and no API calls."""
    con = staging.con
    traced = database.rows("SELECT count(*) FROM OPS")[0][0] if "OPS" in database.relations else 0
    columns: tuple[str, ...] = ("pid", "BeginNs", "EndNs", "Name", "Index", "dev-id", "queue-id", "stream-id")
    if traced and _copy(database, staging, "OPS", columns):
        con.execute(
            "CREATE TEMP TABLE IF NOT EXISTS v1_sizes (pid BIGINT, corr BIGINT, gx BIGINT, gy BIGINT, gz "
            "BIGINT, wx BIGINT, wy BIGINT, wz BIGINT)"
        )
        staging.insert(
            "amd_gpu",
            f"SELECT coalesce(p.proc, {default}) AS proc, 'kernel' AS what, Name AS name, "
            'BeginNs AS start, EndNs AS stop, r.Index AS corr, "dev-id" AS agent, "queue-id" AS queue, '
            "\"stream-id\" AS stream, 'blocks' AS unit, z.gx, z.gy, z.gz, z.wx, z.wy, z.wz "
            "FROM v1_raw r LEFT JOIN v1_pid p USING (pid) "
            "LEFT JOIN v1_sizes z ON z.pid = r.pid AND z.corr = r.Index",
            "r.rowid",
        )
        con.execute("DROP TABLE v1_raw")
        return
    columns = ("Index", "KernelName", "gpu-id", "queue-id", "pid", "grd", "wgr", "lds", "scr")
    columns += ("arch_vgpr", "vgpr", "accum_vgpr", "BeginNs", "EndNs")
    if _copy(database, staging, "KERN", columns):
        staging.insert(
            "amd_gpu",
            f"SELECT coalesce(p.proc, {default}) AS proc, 'kernel' AS what, "
            'KernelName AS name, BeginNs AS start, EndNs AS stop, "gpu-id" AS agent, "queue-id" AS queue, '
            "r.Index AS dispatch, 'product' AS unit, grd AS gx, wgr AS wx, coalesce(arch_vgpr, vgpr) AS "
            "vgpr, "
            "accum_vgpr AS accum, lds AS lds_total, scr AS scratch FROM v1_raw r LEFT JOIN v1_pid p USING "
            "(pid)",
            "r.rowid",
        )
        con.execute("DROP TABLE v1_raw")


def _copy(database: Database, staging: Staging, table: str, columns: tuple[str, ...]) -> bool:
    """Copy columns that may be missing as v1_raw; False when the table has no times."""
    known = database.columns(table)
    if not {"BeginNs", "EndNs"} <= known:
        return False
    select = ", ".join(f'"{name}"' if name in known else f'NULL AS "{name}"' for name in columns)
    types = {name: "VARCHAR" if name in _TEXTS else "BIGINT" for name in columns}
    database.copy(f'SELECT {select} FROM "{table}"', staging.con, "v1_raw", types)
    return True


class V1JsonReader:
    """Reads results.json of rocprof v1 (not the JSON of rocprofv3)."""

    name = "rocprofv1-json"

    def accepts(self, source: Source) -> bool:
        """Is it a Chrome trace with v1's marks: an empty first event, times in args?"""
        if source.path.is_dir():
            return knows(self, source)
        start = b"".join(source.head[:64].split())
        return start.startswith(b'{"traceEvents":[{}') and (
            b'"BeginNs"' in source.head or b"CPU HIP API" in source.head or b'"COPY"' in source.head
        )

    def read(self, sources: Sequence[Source], writer: TraceWriter, progress: Progress) -> None:
        """Fill the writer from all files of a run."""
        sources = expand(self, sources)
        staging = Staging(writer)
        for number, source in enumerate(sources):
            with open_bytes(source) as file:
                try:
                    _JsonRun(staging).read(JsonStream(file))
                except Truncated:
                    writer.issue(
                        "truncated", 1, "the file ends early; its whole records were kept", source.path.name
                    )
                except (*DAMAGED, Malformed, AttributeError, TypeError) as error:
                    raise InputError(
                        f"{source.path.name} is not the JSON that rocprof writes",
                        why=str(error),
                        fix="copy it again after the profiler has ended",
                    ) from error
            progress(number + 1, len(sources))
        if not _found(staging):
            raise InputError(f"{sources[0].path.name} holds no records", fix="record the run again")
        build(staging, self.name)


def _found(staging: Staging) -> bool:
    return staging.con.execute("SELECT count(*) FROM amd_process").fetchone() != (0,)


class _JsonRun:
    """Records of one file, by process."""

    def __init__(self, staging: Staging) -> None:
        self.staging = staging
        self.procs: dict[int, int] = {}
        self.labels: dict[int, str] = {}
        self.rows: dict[tuple[str, int], list[dict[str, Any]]] = {}
        self.arrows: dict[int, list[int | None]] = {}

    def read(self, stream: JsonStream) -> None:
        """Walk the events; whatever was read is staged even when the text ends early."""
        try:
            for key in stream.items():
                if key != "traceEvents":
                    stream.skip()
                    continue
                for _ in stream.elements():
                    self.event(stream.value())
        finally:
            for kind in list(self.rows):
                self.stage(kind)
            self.link()

    def event(self, event: Any) -> None:
        """Take one event: a process name, a complete event, or an end of an arrow."""
        if not isinstance(event, dict) or event.get("ph") not in ("X", "M", "s", "t"):
            return
        if event["ph"] in "st":
            arrow = self.arrows.setdefault(int(event["id"]), [None, None, None, None])
            at = 0 if event["ph"] == "s" else 2
            arrow[at : at + 2] = [_int(event.get("ts")), _int(event.get("tid" if at == 0 else "pid"))]
            return
        args = event.get("args") or {}
        group = int(event.get("pid", -1))
        if event["ph"] == "M":
            if event.get("name") == "process_name":
                self.labels[group] = str(args.get("name", ""))
            return
        label = self.labels.get(group, "")
        kind = "gpu"
        if label.startswith("Markers"):
            kind = "range"
        elif label.startswith("CPU"):
            kind = "hip" if "HIP" in label else "hsa"
        elif label == "COPY":
            kind = "copy"
        elif "Barrier" in label:
            kind = "barrier"
        pid = _int(args.get("pid", 0)) or 0
        if pid not in self.procs:
            self.procs[pid] = self.staging.process(pid)
        rows = self.rows.setdefault((kind, self.procs[pid]), [])
        rows.append({**args, "Name": args.get("Name") or event.get("name")})
        if len(rows) >= _BATCH:
            self.stage((kind, self.procs[pid]))

    def link(self) -> None:
        """Turn arrows into correlation ids (arrow + 1; 0 is none).

        In the file's cut microseconds an arrow starts inside its API call, on the call's thread, and ends at
        the start of the GPU record.
        """
        ids = [number for number, arrow in self.arrows.items() if None not in arrow]
        con = self.staging.con
        if not ids:
            return
        con.execute(
            "CREATE TEMP TABLE v1_arrow (arrow BIGINT, s_ts BIGINT, s_tid BIGINT, t_ts BIGINT, copy BOOLEAN)"
        )
        con.executemany(
            "INSERT INTO v1_arrow VALUES (?, ?, ?, ?, ?)",
            [(n + 1, *self.arrows[n][:3], self.labels.get(self.arrows[n][3] or 0) == "COPY") for n in ids],
        )
        con.execute(
            "UPDATE amd_host SET corr = a.arrow FROM (SELECT n, min(arrow) AS arrow FROM v1_arrow ASOF JOIN "
            "(SELECT rowid AS n, tid, start FROM amd_host WHERE kind = 'api' AND prio = 0) h "
            "ON h.tid = v1_arrow.s_tid AND v1_arrow.s_ts * 1000 + 999 >= h.start GROUP BY n) a "
            "WHERE amd_host.rowid = a.n"
        )
        con.execute(
            "UPDATE amd_gpu SET corr = a.arrow FROM (SELECT min(arrow) AS arrow, t_ts, copy FROM v1_arrow "
            "GROUP BY ALL) a WHERE start // 1000 = a.t_ts AND (what <> 'kernel') = a.copy"
        )
        con.execute("DROP TABLE v1_arrow")

    def stage(self, key: tuple[str, int]) -> None:
        """Stage the records of one kind and process."""
        kind, proc = key
        rows = self.rows.pop(key, [])
        times = {
            "name": [row["Name"] for row in rows],
            "start": [_int(row.get("BeginNs")) for row in rows],
            "stop": [_int(row.get("EndNs")) for row in rows],
        }
        if kind == "barrier":
            self.staging.add("amd_overhead", times, proc)
            return
        corr = [_int(row.get("Index")) for row in rows]
        if kind in ("hip", "hsa", "range"):
            more: dict[str, list[Any]] = {
                "tid": [_int(row.get("tid")) for row in rows],
                "kind": ["range" if kind == "range" else "api"] * len(rows),
                "prio": [int(kind != "hip")] * len(rows),
                "corr": [None if kind == "range" else value for value in corr],
            }
            self.staging.add("amd_host", {**times, **more}, proc)
            return
        ways = [direction(row["Name"]) if kind == "copy" else None for row in rows]
        more = {
            "what": ["kernel" if way is None else "memset" if way == "memset" else "memcpy" for way in ways],
            "direction": ways,
            "agent": [_int(row.get("dev-id")) for row in rows],
            "queue": [_int(row.get("queue-id")) for row in rows],
            "stream": [_int(row.get("stream-id")) for row in rows],
            "corr": corr,
        }
        self.staging.add("amd_gpu", {**times, **more}, proc)


def _int(value: Any) -> int | None:
    """An int64 from a number or a text of digits, else None."""
    if isinstance(value, str):
        value = int(value) if re.fullmatch(r"-?\d{1,19}", value) else None
    return value if isinstance(value, int) and -(2**63) <= value < 2**63 else None
