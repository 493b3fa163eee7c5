"""From staged AMD records to the trace's tables: the rules that hold for every AMD tool.

* Blocks are ``ceil(grid / workgroup)`` in each dimension where the tool counted work-items.
* A launch is the API call with the record's correlation id in the same process; HIP before HSA before others.
  One call may launch many kernels (HIP graphs). Id 0 means none.
* Registers are what a work-item occupies: architected plus accumulation VGPRs, which share one file on every
  GPU but gfx908, where only the architected ones are counted.
* Records that end before they start, or start before 0, are dropped and counted.
"""

from __future__ import annotations

from typing import Any

import duckdb

from profrun.collectors.rocprof.lanes import settle_agents, settle_lanes, settle_processes
from profrun.collectors.rocprof.names import STEP, clean_kernel_sql
from profrun.collectors.rocprof.staging import Staging
from profrun.traces.nest import nest

_OPS = (
    ("allreduce", "allreduce"),
    ("allgather", "allgather"),
    ("reducescatter", "reducescatter"),
    ("alltoall", "alltoall"),
    ("broadcast", "broadcast"),
    ("bcast", "broadcast"),
    ("sendrecv", "sendrecv"),
    ("reduce", "reduce"),
    ("gather", "gather"),
    ("scatter", "scatter"),
    ("send", "send"),
    ("recv", "recv"),
)


def build(staging: Staging, source: str, *, clock: str = "boottime", **meta: Any) -> None:
    """Turn staged records into tables; ``meta`` are further keys of meta.json."""
    writer = staging.writer
    writer.meta.update({"source": source, "vendor": "amd", "collector": "rocprof", "clock": clock, **meta})
    _running_memory(staging)
    if not any(_any(staging.con, f"FROM {table}") for table in ("amd_host", "amd_gpu", "amd_counter")):
        writer.issue("no_records", 1, "the files hold no record: no GPU work, or the profiler was not on")
    settle_processes(staging)
    _drop_bad(staging)
    settle_agents(staging)
    settle_lanes(staging)
    host = _host_slices(staging)
    _gpu_slices(staging, host)
    _side_tables(staging, host)
    _counters(staging)
    for table in ("amd_proc", "amd_device", "amd_track", "amd_gpu_lane", "amd_host_lane", "amd_launch"):
        staging.con.execute(f"DROP TABLE {table}")
    staging.drop()


def _drop_bad(staging: Staging) -> None:
    con, issue = staging.con, staging.writer.issue
    for table, what in (("amd_host", "host"), ("amd_gpu", "GPU"), ("amd_overhead", "runtime")):
        for code, rule, why in (
            ("no_time", "start IS NULL OR stop IS NULL", "without a time"),
            ("negative_time", "start < 0", "before time 0"),
            ("ends_before_start", "stop < start", "that end before they start"),
        ):
            found = con.execute(f"SELECT count(*), any_value(name) FROM {table} WHERE {rule}").fetchone()
            if found and found[0]:
                issue(code, found[0], f"{what} records {why} were dropped", found[1])
                con.execute(f"DELETE FROM {table} WHERE {rule}")
    # row numbers become slice ids, so they have to be without gaps
    for table in ("amd_host", "amd_gpu", "amd_overhead"):
        con.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS FROM {table}")
    nameless = con.execute("SELECT count(*) FROM amd_gpu WHERE coalesce(name, '') = ''").fetchone()
    issue("no_name", nameless[0] if nameless else 0, "GPU records without a name are called 'unknown'")


def _host_slices(staging: Staging) -> int:
    """Insert host slices with nesting; returns the first id after theirs (ids: row numbers)."""
    con = staging.con
    con.execute(f"UPDATE amd_host SET kind = 'step' WHERE kind = 'range' AND regexp_matches(name, '{STEP}')")
    con.execute(
        "INSERT INTO slices (slice, kind, name, ts_ns, dur_ns, track, correlation) "
        "SELECT h.rowid, h.kind, coalesce(nullif(h.name, ''), 'unknown'), h.start, h.stop - h.start, "
        "t.track, "
        "nullif(h.corr, 0) FROM amd_host h JOIN amd_host_lane l ON l.n = h.rowid JOIN amd_track t "
        "ON t.part = 0 AND t.proc = l.proc AND t.kind = l.kind AND t.id IS NOT DISTINCT FROM l.id"
    )
    crossing, example = nest(con)
    staging.writer.issue(
        "crossing_slices", crossing, "host slices of one thread overlap without nesting", example
    )
    con.execute(
        "CREATE TEMP TABLE amd_launch AS SELECT h.proc, h.corr, h.rowid AS slice FROM amd_host h "
        "WHERE h.kind = 'api' AND h.corr <> 0 "
        "QUALIFY row_number() OVER (PARTITION BY h.proc, h.corr ORDER BY h.prio, h.start, h.rowid) = 1"
    )
    found = con.execute("SELECT coalesce(max(rowid), -1) + 1 FROM amd_host").fetchone()
    return int(found[0]) if found else 0


def _gpu_slices(staging: Staging, first: int) -> None:
    """Insert kernels, copies and fills as slices ``first + rowid``, then the runtime's own work."""
    con = staging.con
    name = clean_kernel_sql("g.name")
    con.execute(
        "INSERT INTO slices (slice, kind, name, ts_ns, dur_ns, track, correlation, launch) "
        f"SELECT {first} + g.rowid, g.what, coalesce(nullif({name}, ''), 'unknown'), g.start, g.stop - "
        f"g.start, "
        "t.track, nullif(g.corr, 0), k.slice FROM amd_gpu g JOIN amd_gpu_lane l ON l.n = g.rowid "
        "JOIN amd_track t ON t.part = 2 AND t.proc = l.proc AND t.agent IS NOT DISTINCT FROM l.agent "
        "AND t.kind = l.kind AND t.id IS NOT DISTINCT FROM l.id "
        "LEFT JOIN amd_launch k ON k.proc = g.proc AND k.corr = g.corr"
    )
    con.execute(
        "INSERT INTO slices (slice, kind, name, ts_ns, dur_ns, track) "
        "SELECT (SELECT coalesce(max(slice), -1) + 1 FROM slices) + row_number() OVER (ORDER BY o.rowid) - "
        "1, 'overhead', "
        "coalesce(o.name, 'unknown'), o.start, o.stop - o.start, t.track FROM amd_overhead o "
        "JOIN amd_track t ON t.part = 1 AND t.proc = o.proc"
    )
    lost = con.execute(
        "SELECT count(*), any_value(name) FROM slices WHERE kind IN ('kernel', 'memcpy', 'memset') AND "
        "launch IS NULL"
    ).fetchone()
    if lost and lost[0] and _any(con, "FROM amd_launch"):
        staging.writer.issue(
            "no_launch", lost[0], "GPU records whose API call was not recorded have no launch", lost[1]
        )


def _side_tables(staging: Staging, first: int) -> None:
    con = staging.con
    con.execute("CREATE TEMP TABLE amd_rows AS SELECT rowid AS n, * FROM amd_gpu")
    blocks = ", ".join(
        f"CASE unit WHEN 'items' THEN CASE WHEN g{a} >= 0 AND w{a} > 0 THEN (g{a} + w{a} - 1) // w{a} END "
        f"WHEN 'blocks' THEN g{a} END"
        for a in "xyz"
    )
    threads = ", ".join(
        f"CASE WHEN unit <> 'product' AND w{a} > 0 THEN try_cast(w{a} AS INTEGER) END" for a in "xyz"
    )
    con.execute(
        "INSERT INTO kernels (slice, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers, "
        "smem_static, "
        f"smem_dynamic, smem, graph, graph_node, scratch) SELECT {first} + n, {blocks}, {threads}, "
        "try_cast(CASE WHEN d.a.arch = 'gfx908' THEN vgpr ELSE vgpr + coalesce(accum, 0) END AS INTEGER), "
        "lds_static, CASE WHEN lds_total >= lds_static THEN lds_total - lds_static END, coalesce(lds_total, "
        "lds_static), "
        "nullif(graph, 0), graph_node, scratch FROM amd_rows r LEFT JOIN amd_device d "
        "ON d.proc = r.proc AND d.agent = r.agent WHERE what = 'kernel'"
    )
    con.execute(
        "INSERT INTO copies (slice, direction, bytes, src_kind, dst_kind, managed) "
        f"SELECT {first} + n, coalesce(direction, 'unknown'), bytes, "
        "CASE direction WHEN 'HtoD' THEN 'host' WHEN 'HtoH' THEN 'host' WHEN 'DtoH' THEN 'device' WHEN "
        "'DtoD' THEN "
        "'device' WHEN 'PtoP' THEN 'device' END, CASE direction WHEN 'HtoD' THEN 'device' WHEN 'HtoH' THEN "
        "'host' "
        "WHEN 'DtoH' THEN 'host' WHEN 'DtoD' THEN 'device' WHEN 'PtoP' THEN 'device' WHEN 'memset' THEN "
        "'device' END, "
        "NULL FROM amd_rows WHERE what <> 'kernel'"
    )
    no_bytes = con.execute("SELECT count(*) FROM copies WHERE bytes IS NULL").fetchone()
    staging.writer.issue(
        "no_bytes", no_bytes[0] if no_bytes else 0, "copies whose size the tool does not write"
    )
    _collectives(con)
    _metrics(staging, first)
    con.execute("DROP TABLE amd_rows")


def _metrics(staging: Staging, first: int) -> None:
    con = staging.con
    con.execute(
        "CREATE TEMP TABLE amd_dispatch AS SELECT proc, dispatch, min(n) AS n FROM amd_rows "
        "WHERE what = 'kernel' AND dispatch IS NOT NULL GROUP BY ALL"
    )
    con.execute(
        f"INSERT INTO metrics SELECT {first} + d.n, m.name, m.value, coalesce(m.unit, '1') FROM amd_metric m "
        "JOIN amd_dispatch d USING (proc, dispatch) WHERE m.value IS NOT NULL AND m.name IS NOT NULL"
    )
    lost = con.execute(
        "SELECT count(*), any_value(m.name) FROM amd_metric m LEFT JOIN amd_dispatch d USING (proc, "
        "dispatch) "
        "WHERE d.n IS NULL OR m.value IS NULL OR m.name IS NULL"
    ).fetchone()
    if lost:
        staging.writer.issue("metric_not_placed", lost[0], "counters without a dispatch or a value", lost[1])
    for column, name in (("gx", "Grid_Size"), ("wx", "Workgroup_Size")):
        con.execute(
            f"INSERT INTO metrics SELECT {first} + n, '{name}', {column}, 'work-item' FROM amd_rows "
            f"WHERE unit = 'product' AND what = 'kernel' AND {column} IS NOT NULL"
        )
    con.execute("DROP TABLE amd_dispatch")


def _collectives(con: duckdb.DuckDBPyConnection) -> None:
    """RCCL kernels: the operation is in the kernel's name or is the RCCL call round the launch."""
    cases = " ".join(f"WHEN contains(lower(text), '{key}') THEN '{value}'" for key, value in _OPS)
    con.execute(
        "INSERT INTO collectives (slice, op) "
        "WITH RECURSIVE found AS (SELECT slice, name, launch FROM slices WHERE kind = 'kernel' "
        "AND regexp_matches(name, '^(void )?(nccl|rccl|msccl)', 'i')), "
        "up AS (SELECT slice, launch AS at FROM found WHERE launch IS NOT NULL UNION ALL "
        "SELECT u.slice, s.parent FROM up u JOIN slices s ON s.slice = u.at WHERE s.parent IS NOT NULL), "
        "call AS (SELECT u.slice, min(s.name) AS name FROM up u JOIN slices s ON s.slice = u.at "
        "WHERE s.kind = 'api' AND s.name LIKE 'nccl%' GROUP BY u.slice) "
        f"SELECT slice, CASE {cases} ELSE 'unknown' END FROM "
        "(SELECT f.slice, f.name || ' ' || coalesce(c.name, '') AS text FROM found f LEFT JOIN call c USING "
        "(slice))"
    )


def _running_memory(staging: Staging) -> None:
    """Allocations and frees become a counter of allocated bytes per agent."""
    rows = staging.con.execute(
        "SELECT proc, agent, op, address, bytes, stop FROM amd_alloc ORDER BY proc, stop, rowid"
    ).fetchall()
    live: dict[tuple[int, int], tuple[int | None, int]] = {}
    total: dict[tuple[int, int | None], int] = {}
    samples: dict[int, list[tuple[int | None, int, float]]] = {}
    unknown = 0
    for proc, agent, op, address, size, stop in rows:
        if stop is None or (op == "alloc" and size is None):
            unknown += 1
            continue
        if op == "free":
            if (proc, address) not in live:
                unknown += 1
                continue
            agent, size = live.pop((proc, address))
            size = -size
        else:
            live[(proc, address)] = (agent, size)
        total[(proc, agent)] = total.get((proc, agent), 0) + size
        samples.setdefault(proc, []).append((agent, stop, float(total[(proc, agent)])))
    for proc, values in samples.items():
        agents, stops, sizes = zip(*values, strict=True)
        count = len(values)
        staging.add(
            "amd_counter",
            {
                "agent": list(agents),
                "ts": list(stops),
                "name": ["allocated memory"] * count,
                "value": list(sizes),
                "unit": ["byte"] * count,
            },
            proc,
        )
    staging.writer.issue(
        "allocation_unknown", unknown, "frees of unknown addresses, allocations without size or time"
    )


def _counters(staging: Staging) -> None:
    staging.con.execute(
        "INSERT INTO counters SELECT t.track, c.ts, c.name, c.value, coalesce(c.unit, '1') FROM amd_counter "
        "c "
        "JOIN amd_track t ON t.part = 3 AND t.proc = c.proc AND t.agent IS NOT DISTINCT FROM c.agent "
        "AND t.name = c.name WHERE c.ts IS NOT NULL AND c.value IS NOT NULL"
    )


def _any(con: duckdb.DuckDBPyConnection, query: str) -> bool:
    return con.execute(f"SELECT EXISTS ({query})").fetchone() == (True,)
