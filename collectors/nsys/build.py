"""Staging tables into the trace: slices, side tables, launches. All in SQL, all in the writer's engine.

A staged row's slice id is the base of its kind plus DuckDB's rowid in its staging table (dense from 0: rows
are only ever appended there), so links are known before a slice is written.
"""

from __future__ import annotations

from profrun.collectors.nsys.names import (
    COLLECTIVE_PATTERN,
    COLLECTIVES,
    COPY_DIRECTIONS,
    DTYPE_PATTERN,
    MEMORY_KINDS,
    NO_STREAM,
    SYNC_TYPES,
    case,
    case_text,
)
from profrun.traces.writer import TraceWriter

_COLUMNS = "slice, kind, name, ts_ns, dur_ns, track, correlation, launch"
_TS = "r.start + o.shift AS ts_ns"
_DUR = "greatest(coalesce(r.stop, r.start) - r.start, 0) AS dur_ns"
_GPU_TRACK = (
    "JOIN n_gpu_track t ON t.src = r.src AND t.p = r.gpid >> 24 AND t.device = r.device AND t.what = "
    "'{what}' "
    "AND t.context = coalesce(r.context, -1) AND t.stream = coalesce(r.stream, -1) "
)
_LAUNCH = (
    "LEFT JOIN (SELECT * FROM n_launch WHERE slice BETWEEN {base} AND {last}) a "
    "ON a.slice = {base} + r.rowid "
)

GPU_TABLES = ("n_kernel", "n_memcpy", "n_memset", "n_sync", "n_graph")


class Builder:
    """Fills slices and side tables.

    Attributes:
        next: the first free slice id.
        unplaced: records that found no lane or had no start.
        base: first slice id of each GPU staging table, after ``launches``.
    """

    def __init__(self, writer: TraceWriter) -> None:
        self.writer = writer
        self.con = writer.con
        self.next = 0
        self.unplaced = 0
        self.base: dict[str, int] = {}

    def take(self, table: str) -> int:
        """Reserve slice ids for every row of a staging table; returns the base."""
        base = self.next
        self.next += self.count(f"SELECT count(*) FROM {table}")
        return base

    def count(self, query: str) -> int:
        """The single integer of a query."""
        row = self.con.execute(query).fetchone()
        return int(row[0]) if row and row[0] is not None else 0

    def launches(self) -> None:
        """n_launch(slice, launch): the call behind every GPU record, by (file, process, correlation).

        Reserves the ids of all GPU records: ``base`` of each staging table.
        """
        for table in GPU_TABLES:
            self.base[table] = self.take(table)
        work = " UNION ALL ".join(
            f"SELECT {self.base[table]} + rowid AS slice, src, gpid >> 24 AS p, corr FROM {table}"
            for table in GPU_TABLES
        )
        # CUPTI gives a runtime call and the driver call inside it their own ids; where one id stands on
        # several rows all the same, the latest to start is the innermost, which enqueued the work.
        self.con.execute(
            "CREATE TABLE n_launch AS SELECT w.slice, arg_max(h.rowid, h.ts) AS launch, count(*) AS calls "
            f"FROM ({work}) w JOIN n_host h ON h.src = w.src AND h.p = w.p AND h.corr = w.corr GROUP BY "
            f"w.slice"
        )
        self.writer.issue(
            "correlation-repeated",
            self.count("SELECT count(*) FROM n_launch WHERE calls > 1"),
            "GPU records whose correlation id stands on several API calls of their process: the latest "
            "to start "
            "counts as the launch",
        )

    def _launch(self, base: int) -> str:
        """The join that finds the launch of each row of one staging table, over its own part of n_launch."""
        after = min((other for other in [*self.base.values(), self.next] if other > base), default=base)
        return _LAUNCH.format(base=base, last=after - 1)

    def kernels(self) -> None:
        """Kernel slices, their launch, the kernels table and NCCL's collectives."""
        base = self.base["n_kernel"]
        self.con.execute(
            "CREATE TABLE n_kernel_name AS SELECT u.*, coalesce(d.value, s.value, m.value, 'unknown "
            "kernel') AS name "
            "FROM (SELECT DISTINCT src, demangled, short, mangled FROM n_kernel) u "
            "LEFT JOIN n_string d ON d.src = u.src AND d.id = u.demangled "
            "LEFT JOIN n_string s ON s.src = u.src AND s.id = u.short "
            "LEFT JOIN n_string m ON m.src = u.src AND m.id = u.mangled"
        )
        self.con.execute(
            f"INSERT INTO slices ({_COLUMNS}) SELECT {base} + r.rowid, 'kernel', n.name, {_TS}, {_DUR}, "
            f"t.track, "
            "nullif(r.corr, 0), a.launch FROM n_kernel r JOIN n_origin o ON o.src = r.src "
            + _GPU_TRACK.format(what="stream")
            + self._launch(base)
            + "JOIN n_kernel_name n ON n.src = r.src AND n.demangled IS NOT DISTINCT FROM r.demangled "
            "AND n.short IS NOT DISTINCT FROM r.short AND n.mangled IS NOT DISTINCT FROM r.mangled"
        )
        shape = [f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz"]
        sound = ", ".join(f"CASE WHEN {name} >= 1 THEN {name} END AS {name}" for name in shape)
        self.con.execute(
            f"INSERT INTO kernels BY NAME SELECT {base} + rowid AS slice, {sound}, "
            "regs AS registers, smem_static, smem_dynamic, "
            "nullif(graph, 0) AS graph, nullif(node, 0) AS graph_node, local AS scratch FROM n_kernel"
        )
        self.writer.issue(
            "bad-grid",
            self.count(f"SELECT count(*) FROM n_kernel WHERE least({', '.join(shape)}) < 1"),
            "kernels whose grid or block has a size below 1: that size is unknown here",
        )
        op = f"regexp_extract(name, '{COLLECTIVE_PATTERN}', 1)"
        self.con.execute(
            "INSERT INTO collectives BY NAME SELECT slice, "
            f"{case_text(op, COLLECTIVES, f'lower({op})')} AS op, "
            f"nullif(regexp_extract(name, '{DTYPE_PATTERN}', 1), '') AS dtype FROM slices "
            f"WHERE kind = 'kernel' AND regexp_matches(name, '{COLLECTIVE_PATTERN}')"
        )

    def memcpys(self) -> None:
        """Copies asked for, and unified-memory migrations, which nobody asked for, on a lane of their own."""
        base = self.base["n_memcpy"]
        direction = case("r.kind", COPY_DIRECTIONS, "'unknown'")
        kinds = [case(f"r.{side}_kind", MEMORY_KINDS, "NULL") for side in ("src", "dst")]
        shown = [f"coalesce(upper({kind}[1]) || {kind}[2:], 'Unknown')" for kind in kinds]
        name = (
            f"CASE WHEN r.kind IN (11, 12, 13) THEN 'Unified memory migration ' || {direction} "
            f"ELSE 'Memcpy ' || {direction} || ' (' || {shown[0]} || ' -> ' || {shown[1]} || ')' END"
        )
        self.con.execute(
            f"INSERT INTO slices ({_COLUMNS}) SELECT {base} + r.rowid, 'memcpy', {name}, {_TS}, {_DUR}, "
            f"t.track, "
            "nullif(r.corr, 0), a.launch FROM (SELECT *, rowid, kind IN (11, 12, 13) AS uvm FROM n_memcpy) r "
            "JOIN n_origin o ON o.src = r.src "
            "JOIN n_gpu_track t ON t.src = r.src AND t.p = r.gpid >> 24 AND t.device = r.device "
            "AND t.what = CASE WHEN r.uvm THEN 'uvm' ELSE 'stream' END "
            "AND t.context = CASE WHEN r.uvm THEN -1 ELSE coalesce(r.context, -1) END "
            "AND t.stream = CASE WHEN r.uvm THEN -1 ELSE coalesce(r.stream, -1) END " + self._launch(base)
        )
        self.con.execute(
            f"INSERT INTO copies BY NAME SELECT {base} + rowid AS slice, {direction} AS direction, r.bytes, "
            f"{kinds[0]} AS src_kind, {kinds[1]} AS dst_kind, coalesce(r.kind IN (11, 12, 13), false) "
            f"AS managed "
            "FROM n_memcpy r"
        )

    def memsets(self) -> None:
        """Memset slices and their rows in copies."""
        base = self.base["n_memset"]
        kind = case("r.mem_kind", MEMORY_KINDS, "NULL")
        name = f"'Memset (' || coalesce(upper({kind}[1]) || {kind}[2:], 'Unknown') || ')'"
        self.con.execute(
            f"INSERT INTO slices ({_COLUMNS}) SELECT {base} + r.rowid, 'memset', {name}, {_TS}, {_DUR}, "
            f"t.track, "
            "nullif(r.corr, 0), a.launch FROM n_memset r JOIN n_origin o ON o.src = r.src "
            + _GPU_TRACK.format(what="stream")
            + self._launch(base)
        )
        self.con.execute(
            f"INSERT INTO copies BY NAME SELECT {base} + rowid AS slice, 'memset' AS direction, r.bytes, "
            f"{kind} AS dst_kind, false AS managed FROM n_memset r"
        )

    def syncs(self) -> None:
        """Synchronisation records, on one lane a device: they overlap the stream's own work."""
        base = self.base["n_sync"]
        type_name = case("r.type", SYNC_TYPES, "'Sync'")
        name = (
            f"{type_name} || "
            f"CASE WHEN r.stream IS NULL OR r.stream = {NO_STREAM} THEN '' ELSE ' (stream ' || r.stream "
            f"|| ')' END"
        )
        self.con.execute(
            f"INSERT INTO slices ({_COLUMNS}) SELECT {base} + r.rowid, 'sync', {name}, {_TS}, {_DUR}, "
            f"t.track, "
            "nullif(r.corr, 0), a.launch FROM n_sync r JOIN n_origin o ON o.src = r.src "
            "JOIN n_gpu_track t ON t.src = r.src AND t.p = r.gpid >> 24 AND t.device = r.device "
            "AND t.what = 'sync' " + self._launch(base)
        )

    def graphs(self) -> None:
        """Graph launches recorded as one bar: a range on the stream, and an issue, as the kernels are "
        "not there."""
        base = self.base["n_graph"]
        self.con.execute(
            f"INSERT INTO slices ({_COLUMNS}) SELECT {base} + r.rowid, 'range', "
            f"'CUDA graph ' || coalesce(r.graph::VARCHAR, ''), {_TS}, {_DUR}, t.track, "
            "nullif(r.corr, 0), a.launch FROM n_graph r JOIN n_origin o ON o.src = r.src "
            + _GPU_TRACK.format(what="stream")
            + self._launch(base)
        )
        self.writer.issue(
            "graph-opaque",
            self.count("SELECT count(*) FROM n_graph"),
            "CUDA graph launches were recorded as a whole: their kernels are not in this report; record with "
            "--cuda-graph-trace=node",
        )

    def overheads(self) -> None:
        """The profiler's own work, on a lane of its own."""
        self.con.execute("CREATE TABLE n_over AS SELECT * FROM n_overhead WHERE gtid IS NOT NULL")
        self.unplaced += self.count("SELECT count(*) FROM n_overhead WHERE gtid IS NULL")
        base = self.take("n_over")
        self.con.execute(
            f"INSERT INTO slices ({_COLUMNS}) SELECT {base} + r.rowid, 'overhead', "
            f"coalesce(s.value, 'Profiler overhead'), {_TS}, {_DUR}, l.track, NULL, NULL FROM n_over r "
            "JOIN n_origin o ON o.src = r.src JOIN n_proc m ON m.src = r.src AND m.p = r.gtid >> 24 "
            "JOIN n_lane l ON l.process = m.process AND l.what = 'overhead' "
            "LEFT JOIN n_string s ON s.src = r.src AND s.id = r.name_id"
        )
