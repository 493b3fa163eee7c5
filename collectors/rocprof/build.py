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

from profrun.collectors.rocprof.lanes import (
    AGENT_KEY,
    HOST_KEY,
    HOST_KIND,
    gpu_key,
    gpu_kind,
    settle_agents,
    settle_lanes,
    settle_processes,
)
from profrun.collectors.rocprof.names import STEP, clean_kernel_sql
from profrun.collectors.rocprof.staging import Staging
from profrun.traces.nest import nest
from profrun.traces.schema import TABLES

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


_ENDS = (
    ("HtoD", ("host", "device")),
    ("DtoH", ("device", "host")),
    ("DtoD", ("device", "device")),
    ("PtoP", ("device", "device")),
    ("HtoH", ("host", "host")),
    ("memset", ("", "device")),
)
"""Memory at both ends of a copy; the tools do not say more of host memory."""


def build(staging: Staging, source: str, *, clock: str = "boottime", **meta: Any) -> None:
    """Turn staged records into tables; ``meta`` are further keys of meta.json."""
    writer = staging.writer
    writer.meta.update({"source": source, "vendor": "amd", "collector": "rocprof", "clock": clock, **meta})
    _running_memory(staging)
    staging.names_done()
    if not any(_any(staging.con, f"FROM {table}") for table in ("amd_host", "amd_gpu", "amd_counter")):
        writer.issue("no_records", 1, "the files hold no record: no GPU work, or the profiler was not on")
    settle_processes(staging)
    _drop_bad(staging)
    settle_agents(staging)
    settle_lanes(staging)
    _label_names(staging)
    host = _host_slices(staging)
    _gpu_slices(staging, host)
    _side_tables(staging, host)
    _counters(staging)
    for table in ("amd_proc", "amd_device", "amd_track", "amd_launch"):
        staging.con.execute(f"DROP TABLE {table}")
    staging.drop()
    _deliver(staging)


def _drop_bad(staging: Staging) -> None:
    """Drop and count records that have no place on a time axis; row numbers become slice ids, without "
    "gaps."""
    con, issue = staging.con, staging.writer.issue
    rules = (
        ("no_time", "start IS NULL OR stop IS NULL", "without a time"),
        ("negative_time", "start < 0", "before time 0"),
        ("ends_before_start", "stop < start", "that end before they start"),
    )
    for table, what in (("amd_host", "host"), ("amd_gpu", "GPU"), ("amd_overhead", "runtime")):
        counts = ", ".join(f"count(*) FILTER ({rule}), min(name) FILTER ({rule})" for _, rule, _ in rules)
        found = con.execute(f"SELECT {counts}, count(*), max(rowid) FROM {table}").fetchone() or ()
        for number, (code, rule, why) in enumerate(rules):
            count, name = found[2 * number : 2 * number + 2]
            if count:
                issue(code, count, f"{what} records {why} were dropped", _text(con, name))
                con.execute(f"DELETE FROM {table} WHERE {rule}")
        if any(found[0:6:2]) or (found[-1] is not None and found[-1] + 1 != found[-2]):
            con.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS FROM {table}")
    nameless = con.execute(
        "SELECT count(*) FROM amd_gpu g LEFT JOIN amd_name n ON n.id = g.name WHERE coalesce(n.name, '') = ''"
    ).fetchone()
    issue("no_name", nameless[0] if nameless else 0, "GPU records without a name are called 'unknown'")


def _text(con: duckdb.DuckDBPyConnection, name: int | None) -> str | None:
    row = con.execute("SELECT name FROM amd_name WHERE id = ?", [name]).fetchone()
    return str(row[0]) if row and row[0] is not None else None


def _label_names(staging: Staging) -> None:
    """Table amd_label(label, key, name): what a slice is called. Until the end slices hold the key: 'h12' on
    the host (name 12 as it is), 'g12' on a GPU (name 12 without the tools' suffixes). Label 0: 'unknown'."""
    clean = clean_kernel_sql("name")
    staging.con.execute(
        "CREATE TABLE amd_label AS SELECT row_number() OVER () - 1 AS label, * FROM ("
        "SELECT '' AS key, 'unknown' AS name UNION ALL "
        "SELECT 'h' || id, name FROM amd_name WHERE name <> '' "
        f"UNION ALL SELECT 'g' || id, {clean} FROM amd_name WHERE {clean} <> '')"
    )


def _deliver(staging: Staging) -> None:
    """Sort the slices while their names are labels, and let the writer put the names in on the way out.

    Sorting rows with names of thousands of characters does not fit the memory limit.
    """
    con = staging.con
    con.execute(
        "CREATE TABLE amd_sorted AS SELECT s.* EXCLUDE (name), coalesce(l.label, 0)::INTEGER AS label "
        "FROM slices s LEFT JOIN amd_label l ON l.key = s.name ORDER BY track, ts_ns, dur_ns DESC, slice"
    )
    con.execute("CREATE OR REPLACE " + TABLES["slices"].ddl().removeprefix("CREATE "))
    staging.writer.deliver(
        "slices",
        f"SELECT slice, kind, {staging.writer.names('amd_label')} AS name, ts_ns, dur_ns, track, parent, "
        "depth, correlation, launch FROM amd_sorted",
    )


def _host_slices(staging: Staging) -> int:
    """Insert host slices with nesting; returns the first id after theirs (ids: row numbers)."""
    con = staging.con
    con.execute(
        "UPDATE amd_host SET kind = 'step' WHERE kind = 'range' AND name IN "
        f"(SELECT id FROM amd_name WHERE regexp_matches(name, '{STEP}'))"
    )
    con.execute(
        "INSERT INTO slices (slice, kind, name, ts_ns, dur_ns, track, correlation) "
        "SELECT h.rowid, h.kind, coalesce('h' || h.name, ''), h.start, h.stop - h.start, t.track, "
        "nullif(h.corr, 0) FROM amd_host h JOIN amd_track t "
        f"ON t.part = 0 AND t.proc = h.proc AND t.lane = {HOST_KIND} AND t.lane_key = {HOST_KEY}"
    )
    crossing, example = nest(con)
    if crossing:
        example = _text(con, int(example[1:])) if example else None
        staging.writer.issue(
            "crossing_slices", crossing, "host slices of one thread overlap without nesting", example
        )
    calls = "kind = 'api' AND corr <> 0"
    con.execute(
        "CREATE TEMP TABLE amd_launch AS WITH call AS MATERIALIZED (SELECT proc, corr, min(rowid) AS slice, "
        f"count(*) AS calls FROM amd_host WHERE {calls} GROUP BY proc, corr) "
        "SELECT proc, corr, slice FROM call WHERE calls = 1 UNION ALL "
        "SELECT proc, corr, arg_min(h.rowid, (h.prio, h.start, h.rowid)) FROM amd_host h "
        f"JOIN (SELECT proc, corr FROM call WHERE calls > 1) USING (proc, corr) WHERE {calls} GROUP BY ALL"
    )
    found = con.execute("SELECT coalesce(max(rowid), -1) + 1 FROM amd_host").fetchone()
    return int(found[0]) if found else 0


def _gpu_slices(staging: Staging, first: int) -> None:
    """Insert kernels, copies and fills as slices ``first + rowid``, then the runtime's own work."""
    con = staging.con
    con.execute(
        "INSERT INTO slices (slice, kind, name, ts_ns, dur_ns, track, correlation, launch) "
        f"SELECT {first} + g.rowid, g.what, coalesce('g' || g.name, ''), g.start, g.stop - g.start, "
        "t.track, nullif(g.corr, 0), k.slice FROM amd_gpu g "
        f"JOIN amd_track t ON t.part = 2 AND t.proc = g.proc AND t.lane_agent = {AGENT_KEY} "
        f"AND t.lane = {gpu_kind(staging)} AND t.lane_key = {gpu_key(staging)} "
        "LEFT JOIN amd_launch k ON k.proc = g.proc AND k.corr = g.corr"
    )
    con.execute(
        "INSERT INTO slices (slice, kind, name, ts_ns, dur_ns, track) "
        "SELECT (SELECT coalesce(max(slice), -1) + 1 FROM slices) + row_number() OVER (ORDER BY o.rowid) "
        "- 1, 'overhead', coalesce('h' || o.name, ''), o.start, o.stop - o.start, t.track FROM amd_overhead "
        "o JOIN amd_track t ON t.part = 1 AND t.proc = o.proc"
    )
    lost = con.execute(
        "SELECT count(*), min(name) FROM slices WHERE kind IN ('kernel', 'memcpy', 'memset') "
        "AND launch IS NULL"
    ).fetchone()
    if lost and lost[0] and _any(con, "FROM amd_launch"):
        name = _text(con, int(lost[1][1:])) if lost[1] else None
        staging.writer.issue(
            "no_launch", lost[0], "GPU records whose API call was not recorded have no launch", name
        )


def _side_tables(staging: Staging, first: int) -> None:
    con = staging.con
    blocks = ", ".join(
        f"CASE WHEN g{a} > 0 AND unit = 'items' AND w{a} > 0 THEN (g{a} - 1) // w{a} + 1 "
        f"WHEN g{a} > 0 AND unit = 'blocks' THEN g{a} END"
        for a in "xyz"
    )
    threads = ", ".join(
        f"CASE WHEN unit <> 'product' AND w{a} > 0 THEN try_cast(w{a} AS INTEGER) END" for a in "xyz"
    )
    con.execute(
        "INSERT INTO kernels (slice, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers, "
        "smem_static, "
        f"smem_dynamic, smem, graph, graph_node, scratch) SELECT {first} + r.rowid, {blocks}, {threads}, "
        "try_cast(CASE WHEN d.a.arch = 'gfx908' THEN vgpr ELSE vgpr + coalesce(accum, 0) END AS INTEGER), "
        "lds_static, CASE WHEN lds_total >= lds_static THEN lds_total - lds_static END, coalesce(lds_total, "
        "lds_static), nullif(graph, 0), graph_node, scratch FROM amd_gpu r LEFT JOIN amd_device d "
        "ON d.proc = r.proc AND d.agent = r.agent WHERE what = 'kernel' ORDER BY r.rowid"
    )
    source, target = (
        "CASE direction "
        + " ".join(f"WHEN '{way}' THEN '{kinds[end]}'" for way, kinds in _ENDS if kinds[end])
        + " END"
        for end in (0, 1)
    )
    con.execute(
        "INSERT INTO copies (slice, direction, bytes, src_kind, dst_kind, managed) "
        f"SELECT {first} + rowid, coalesce(direction, 'unknown'), bytes, {source}, {target}, NULL "
        "FROM amd_gpu WHERE what <> 'kernel'"
    )
    no_bytes = con.execute("SELECT count(*) FROM copies WHERE bytes IS NULL").fetchone()
    staging.writer.issue(
        "no_bytes", no_bytes[0] if no_bytes else 0, "copies whose size the tool does not write"
    )
    _collectives(con)
    _metrics(staging, first)


def _metrics(staging: Staging, first: int) -> None:
    con = staging.con
    con.execute(
        "CREATE TEMP TABLE amd_dispatch AS SELECT proc, dispatch, min(rowid) AS n FROM amd_gpu "
        "WHERE what = 'kernel' AND dispatch IS NOT NULL GROUP BY ALL"
    )
    con.execute(
        f"INSERT INTO metrics SELECT {first} + d.n, m.name, m.value, coalesce(m.unit, '1') FROM amd_metric m "
        "JOIN amd_dispatch d USING (proc, dispatch) WHERE isfinite(m.value) AND m.name IS NOT NULL"
    )
    lost = con.execute(
        "SELECT count(*), any_value(m.name) FROM amd_metric m LEFT JOIN amd_dispatch d USING (proc, "
        "dispatch) WHERE d.n IS NULL OR NOT coalesce(isfinite(m.value), false) OR m.name IS NULL"
    ).fetchone()
    if lost:
        staging.writer.issue("metric_not_placed", lost[0], "counters without a dispatch or a value", lost[1])
    for column, name in (("gx", "Grid_Size"), ("wx", "Workgroup_Size")):
        con.execute(
            f"INSERT INTO metrics SELECT {first} + rowid, '{name}', {column}, 'work-item' FROM amd_gpu "
            f"WHERE unit = 'product' AND what = 'kernel' AND {column} IS NOT NULL"
        )
    con.execute("DROP TABLE amd_dispatch")


def _collectives(con: duckdb.DuckDBPyConnection) -> None:
    """RCCL kernels: the operation is in the kernel's name or is the RCCL call round the launch."""
    cases = " ".join(f"WHEN contains(lower(text), '{key}') THEN '{value}'" for key, value in _OPS)
    con.execute(
        "INSERT INTO collectives (slice, op) "
        "WITH RECURSIVE named AS (SELECT key, name FROM amd_label WHERE key[1] = 'g' "
        "AND regexp_matches(name, '^(void )?(nccl|rccl|msccl)', 'i')), "
        "found AS (SELECT s.slice, n.name, s.launch FROM slices s JOIN named n ON n.key = s.name "
        "WHERE s.kind = 'kernel'), "
        "up AS (SELECT slice, launch AS at FROM found WHERE launch IS NOT NULL UNION ALL "
        "SELECT u.slice, s.parent FROM up u JOIN slices s ON s.slice = u.at WHERE s.parent IS NOT NULL), "
        "call AS (SELECT u.slice, min(l.name) AS name FROM up u JOIN slices s ON s.slice = u.at "
        "JOIN amd_label l ON l.key = s.name WHERE s.kind = 'api' AND l.name LIKE 'nccl%' GROUP BY u.slice) "
        f"SELECT slice, CASE {cases} ELSE 'unknown' END FROM (SELECT f.slice, "
        "f.name || ' ' || coalesce(c.name, '') AS text FROM found f LEFT JOIN call c USING (slice))"
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
        f"c JOIN amd_track t ON t.part = 3 AND t.proc = c.proc AND t.lane_agent = {AGENT_KEY} "
        "AND t.lane_name = c.name WHERE c.ts IS NOT NULL AND c.value IS NOT NULL"
    )


def _any(con: duckdb.DuckDBPyConnection, query: str) -> bool:
    return con.execute(f"SELECT EXISTS ({query})").fetchone() == (True,)
