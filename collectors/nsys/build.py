"""Staging tables into the trace, in SQL, in the writer's engine.

A staged row's slice id is the base of its kind plus DuckDB's rowid in its staging table (dense from 0: rows
are only ever appended there), so links are known before a slice is written. What runs on a thread is in
n_on_thread (``host``), everything else in n_rest: both in the trace's order, with names as numbers (n_label),
so that rows are narrow while they are sorted and joined. The writer reads slices and kernels out of them.
"""

from __future__ import annotations

from profrun.collectors.nsys.names import (
    COLLECTIVE_PATTERN,
    COLLECTIVES,
    COPY_DIRECTIONS,
    DTYPE_PATTERN,
    MEMORY_KINDS,
    NVTX_START_END,
    case,
    case_text,
)
from profrun.collectors.nsys.record_index import GPU_TABLES, OWNER, gpu_name
from profrun.traces.schema import SLICE_KINDS
from profrun.traces.writer import TraceWriter

KEPT = ("n_on_thread", "n_rest", "n_label", "n_kernel")
"""Staging tables that the writer reads when it writes slices and kernels."""

_DUR = "greatest(coalesce(r.stop, r.start) - r.start, 0)"


class Builder:
    """Fills slices and side tables.

    Attributes:
        next: the first free slice id.
        unplaced: records that found no track or had no start.
        base: first slice id of each staging table.
        calls: labels of calls; those of the ranges in n_range follow.
        repeated: GPU records whose correlation id stands on several calls.
        failed: calls that returned an error, and the first of them.
    """

    def __init__(self, writer: TraceWriter) -> None:
        self.writer = writer
        self.con = writer.con
        self.next = 0
        self.unplaced = 0
        self.calls = 0
        self.repeated = 0
        self.failed: tuple[int, str | None] = (0, None)
        self.base: dict[str, int] = {}
        kinds = ", ".join(f"'{kind}'" for kind in SLICE_KINDS)
        self.con.execute(f"CREATE TYPE n_kind AS ENUM ({kinds})")

    def take(self, *tables: str) -> None:
        """Reserve slice ids for every row of staging tables: ``base`` of each."""
        counts = ", ".join(f"(SELECT count(*) FROM {table})" for table in tables)
        for table, rows in zip(tables, self.row(f"SELECT {counts}"), strict=True):
            self.base[table] = self.next
            self.next += rows

    def row(self, query: str) -> tuple[int, ...]:
        """The integers of a query's single row; NULL is 0."""
        row = self.con.execute(query).fetchone()
        return tuple(int(value or 0) for value in row) if row else ()

    def count(self, query: str) -> int:
        """The single integer of a query."""
        return next(iter(self.row(query)), 0)

    def rest(self) -> None:
        """n_rest: slices of the GPU with their launch, of the profiler's own work, and of start/end ranges.

        Needs n_host, whose rowids are the slice ids of calls. Any cursor may run it beside ``host.nest``.
        """
        self.con.execute(
            "CREATE TABLE n_over AS SELECT * FROM n_overhead WHERE gtid IS NOT NULL; "
            "CREATE TABLE n_start_end AS SELECT rowid AS place, * FROM n_range "
            f"WHERE event = {NVTX_START_END} AND gtid IS NOT NULL"
        )
        self.unplaced += self.count("SELECT count(*) FROM n_overhead WHERE gtid IS NULL")
        self.take(*GPU_TABLES, "n_over", "n_start_end")
        self.names()
        self.con.execute(f"CREATE TABLE n_rest AS {self._rest('')}")
        gpu = f"FROM n_rest WHERE slice < {self.base['n_over']}"
        placed = self.count("SELECT sum(records) FROM n_gpu_key")
        if self.count(f"SELECT count(*) {gpu}") > placed:
            self.repeated = self.count(
                f"SELECT count(*) FROM (SELECT slice {gpu} GROUP BY slice HAVING count(*) > 1)"
            )
            # CUPTI gives a runtime call and the driver call inside it their own ids; where one id stands on
            # several rows all the same, the latest to start is the innermost, which enqueued the work.
            latest = "row_number() OVER (PARTITION BY w.slice ORDER BY h.ts DESC, h.rowid DESC) = 1"
            self.con.execute(f"CREATE OR REPLACE TABLE n_rest AS {self._rest(f'QUALIFY {latest}')}")

    def names(self) -> None:
        """n_gpu_key: track and label of GPU records; n_over_name: label of the profiler's own work."""
        con = self.con
        strings = " ".join(
            f"LEFT JOIN n_string {at} ON g.stage = 'n_kernel' AND {at}.src = g.src AND {at}.id = g.k{number}"
            for number, at in enumerate("dsm", 1)
        )
        con.execute(
            f"CREATE TABLE n_gpu_named AS SELECT g.*, t.track, t.proc, t.shift, {gpu_name()} AS name "
            "FROM n_gpu_index g JOIN n_gpu_track t ON t.src = g.src AND t.p = g.p AND t.device = g.ordinal "
            f"AND t.what = g.what AND t.context = g.track_context AND t.stream = g.track_stream {strings}"
        )
        con.execute(
            "CREATE TABLE n_over_named AS SELECT c.src, c.name_id, coalesce(s.value, 'Profiler overhead') AS "
            "name FROM (SELECT DISTINCT src, name_id FROM n_call_index WHERE what = 'overhead') c "
            "LEFT JOIN n_string s ON s.src = c.src AND s.id = c.name_id"
        )
        first = self.count("SELECT count(*) FROM n_label")
        con.execute(
            f"INSERT INTO n_label SELECT {first} + row_number() OVER (ORDER BY name) - 1, name FROM "
            "(SELECT name FROM n_gpu_named UNION SELECT name FROM n_over_named)"
        )
        for table, named in (("n_gpu_key", "n_gpu_named"), ("n_over_name", "n_over_named")):
            con.execute(
                f"CREATE TABLE {table} AS SELECT n.* EXCLUDE (name), l.label FROM {named} n "
                f"JOIN n_label l ON l.label >= {first} AND l.name = n.name"
            )

    def _rest(self, once: str) -> str:
        """SELECT of all rows of n_rest, sorted. ``once``: clause that keeps one launch of each."""
        work = " UNION ALL ".join(self._gpu_rows(table) for table in GPU_TABLES)
        return (
            "SELECT w.slice, w.kind, w.label, w.ts, w.dur, w.track, w.corr, h.rowid AS launch "
            f"FROM ({work}) w LEFT JOIN n_host h ON h.proc = w.proc AND h.corr = w.corr {once} "
            f"UNION ALL {self._overheads()} UNION ALL {self._start_end()} "
            "ORDER BY track, ts, dur DESC, slice"
        )

    def _gpu_rows(self, table: str) -> str:
        kind, keys = GPU_TABLES[table]
        same = " AND ".join(
            f"k.{there} IS NOT DISTINCT FROM r.{here}"
            for here, there in (*zip(OWNER, OWNER, strict=True), *zip(keys, ("k1", "k2", "k3"), strict=False))
        )
        return (
            f"SELECT {self.base[table]} + r.rowid AS slice, '{kind}'::n_kind AS kind, k.label, "
            f"r.start + k.shift AS ts, {_DUR} AS dur, k.track, nullif(r.corr, 0) AS corr, k.proc "
            f"FROM {table} r JOIN n_gpu_key k ON k.stage = '{table}' AND {same}"
        )

    def _overheads(self) -> str:
        """The profiler's own work, on a track of its own."""
        return (
            f"SELECT {self.base['n_over']} + r.rowid, 'overhead'::n_kind, n.label, r.start + o.shift, "
            f"{_DUR}, l.track::INTEGER, NULL, NULL FROM n_over r JOIN n_origin o ON o.src = r.src "
            "JOIN n_proc m ON m.src = r.src AND m.p = r.gtid >> 24 "
            "JOIN n_track l ON l.process = m.process AND l.what = 'overhead' "
            "JOIN n_over_name n ON n.src = r.src AND n.name_id IS NOT DISTINCT FROM r.name_id"
        )

    def _start_end(self) -> str:
        """Start/end ranges, on one track per domain."""
        return (
            f"SELECT {self.base['n_start_end']} + r.rowid, "
            "CASE WHEN r.step THEN 'step' ELSE 'range' END::n_kind, "
            f"{self.calls} + r.place, r.start + o.shift, greatest(r.stop - r.start, 0), l.track::INTEGER, "
            "NULL, NULL FROM n_start_end r JOIN n_origin o ON o.src = r.src "
            "JOIN n_proc m ON m.src = r.src AND m.p = r.gtid >> 24 "
            "JOIN n_track l ON l.process = m.process AND l.what = 'nvtx' AND l.a = r.domain"
        )

    def side_tables(self) -> None:
        """Rows of kernels (read out of n_kernel by the writer), copies and collectives."""
        shape = [f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz"]
        sound = ", ".join(f"CASE WHEN {name} >= 1 THEN {name} END AS {name}" for name in shape)
        self.writer.deliver(
            "kernels",
            f"SELECT {self.base['n_kernel']} + rowid AS slice, {sound}, regs AS registers, smem_static, "
            "smem_dynamic, NULL::BIGINT AS smem, NULL::DOUBLE AS est_occupancy, nullif(graph, 0) AS graph, "
            "nullif(node, 0) AS graph_node, local AS scratch FROM n_kernel",
            begin=True,
        )
        kinds = [case(column, MEMORY_KINDS, "NULL") for column in ("src_kind", "dst_kind", "mem_kind")]
        self.con.execute(
            f"INSERT INTO copies BY NAME SELECT {self.base['n_memcpy']} + rowid AS slice, "
            f"{case('kind', COPY_DIRECTIONS, chr(39) + 'unknown' + chr(39))} AS direction, bytes, "
            f"{kinds[0]} AS src_kind, {kinds[1]} AS dst_kind, coalesce(kind IN (11, 12, 13), false) "
            f"AS managed FROM n_memcpy UNION ALL BY NAME SELECT {self.base['n_memset']} + rowid AS slice, "
            f"'memset' AS direction, bytes, {kinds[2]} AS dst_kind, false AS managed FROM n_memset"
        )
        op = f"regexp_extract(l.name, '{COLLECTIVE_PATTERN}', 1)"
        self.con.execute(
            f"INSERT INTO collectives BY NAME SELECT r.slice, l.op, l.dtype FROM n_rest r JOIN (SELECT "
            f"label, {case_text(op, COLLECTIVES, f'lower({op})')} AS op, "
            f"nullif(regexp_extract(l.name, '{DTYPE_PATTERN}', 1), '') AS dtype FROM n_label l "
            f"WHERE regexp_matches(l.name, '{COLLECTIVE_PATTERN}')) l ON l.label = r.label "
            "WHERE r.kind = 'kernel' ORDER BY r.slice"
        )

    def issues(self) -> None:
        """What was noticed of launches, grids and graphs."""
        self.writer.issue(
            "correlation-repeated",
            self.repeated,
            "GPU records whose correlation id stands on several API calls of their process: the latest "
            "to start "
            "counts as the launch",
        )
        self.writer.issue(
            "bad-grid",
            self.count("SELECT sum(bad_grid) FROM n_gpu_index"),
            "kernels whose grid or block has a size below 1: that size is unknown here",
        )
        self.writer.issue(
            "graph-opaque",
            self.count("SELECT sum(records) FROM n_gpu_index WHERE stage = 'n_graph'"),
            "CUDA graph launches were recorded as a whole: their kernels are not in this report; record with "
            "--cuda-graph-trace=node",
        )

    def slices(self) -> None:
        """Let the writer put n_on_thread and n_rest together, names and kinds as text."""
        self.writer.deliver_slices("n_on_thread", "n_rest", "n_label")
