"""From staged AMD records to the trace's tables: the rules that hold for every AMD tool.

* Blocks are ``ceil(grid / workgroup)`` in each dimension where the tool counted work-items.
* A launch is the API call with the record's correlation id in the same process; HIP before HSA before others.
  One call may launch many kernels (HIP graphs). Id 0 means none.
* Registers are what a work-item occupies: architected plus accumulation VGPRs, which share one file on every
  GPU but gfx908, where only the architected ones are counted.
* Records that end before they start, or start before 0, are dropped and counted.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import duckdb

from profrun.collectors.rocprof import slices
from profrun.collectors.rocprof.staging import Staging
from profrun.collectors.rocprof.tracks import (
    AGENT_KEY,
    settle_agents,
    settle_processes,
    settle_tracks,
)
from profrun.traces.meta import TraceMeta

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
    writer.meta.update({"source": source, "vendor": "amd", "collector": "rocprof", "clock": clock})
    writer.meta.update(cast("TraceMeta", meta))
    _running_memory(staging)
    staging.names_done()
    if not any(_any(staging.con, f"FROM {table}") for table in ("amd_host", "amd_gpu", "amd_counter")):
        writer.issue("no_records", 1, "the files hold no record: no GPU work, or the profiler was not on")
    settle_processes(staging)
    _drop_bad(staging)
    settle_agents(staging)
    settle_tracks(staging)
    slices.label_names(staging)
    _slices(staging)
    _side_tables(staging)
    _counters(staging)
    for table in ("amd_proc", "amd_track", "amd_call", "amd_nested"):
        staging.con.execute(f"DROP TABLE {table}")
    staging.drop(*slices.KEPT)


def _slices(staging: Staging) -> None:
    """Tables amd_on_thread and amd_rest, what was noticed of them, and the kernels' sizes."""
    threads, calls = slices.host(staging)
    with ThreadPoolExecutor(1) as pool, staging.con.cursor() as cursor:
        nesting = pool.submit(slices.nest, cursor, threads)  # one thread of Python, beside the engine's own
        slices.rest(staging, threads, calls)
        _kernels(staging, calls)
        crossing, example = nesting.result()
    staging.con.execute("DROP VIEW amd_nest")
    slices.deliver(staging)
    issue = staging.writer.issue
    issue("crossing_slices", crossing, "host slices of one thread overlap without nesting", example)
    lost, name = slices.without_launch(staging, calls)
    issue("no_launch", lost, "GPU records whose API call was not recorded have no launch", name)


def _drop_bad(staging: Staging) -> None:
    """Drop and count records that have no place on a time axis; row numbers become slice ids, without
    gaps."""
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
            con.execute(f"CREATE OR REPLACE TABLE {table} AS FROM {table}")
    nameless = con.execute(
        "SELECT count(*) FROM amd_gpu g LEFT JOIN amd_name n ON n.id = g.name WHERE coalesce(n.name, '') = ''"
    ).fetchone()
    issue("no_name", nameless[0] if nameless else 0, "GPU records without a name are called 'unknown'")


def _text(con: duckdb.DuckDBPyConnection, name: int | None) -> str | None:
    row = con.execute("SELECT name FROM amd_name WHERE id = ?", [name]).fetchone()
    return str(row[0]) if row and row[0] is not None else None


def _kernels(staging: Staging, first: int) -> None:
    """Let the writer write the kernels' sizes at once; nothing changes amd_gpu from here on."""
    blocks = ", ".join(
        f"CASE WHEN g{a} > 0 AND unit = 'items' AND w{a} > 0 THEN (g{a} - 1) // w{a} + 1 "
        f"WHEN g{a} > 0 AND unit = 'blocks' THEN g{a} END AS grid_{a}"
        for a in "xyz"
    )
    threads = ", ".join(
        f"CASE WHEN unit <> 'product' AND w{a} > 0 THEN try_cast(w{a} AS INTEGER) END AS block_{a}"
        for a in "xyz"
    )
    registers = "CASE WHEN d.a.arch = 'gfx908' THEN vgpr ELSE vgpr + coalesce(accum, 0) END"
    staging.writer.deliver(
        "kernels",
        f"SELECT {first} + r.rowid AS slice, {blocks}, {threads}, try_cast({registers} AS INTEGER) AS "
        "registers, lds_static AS smem_static, CASE WHEN lds_total >= lds_static THEN lds_total - lds_static "
        "END AS smem_dynamic, coalesce(lds_total, lds_static) AS smem, NULL::DOUBLE AS est_occupancy, "
        "nullif(graph, 0) AS graph, graph_node, scratch FROM amd_gpu r LEFT JOIN amd_device d "
        "ON d.proc = r.proc AND d.agent = r.agent WHERE what = 'kernel' ORDER BY r.rowid",
        begin=True,
    )


def _side_tables(staging: Staging) -> None:
    con = staging.con
    found = con.execute("SELECT count(*) FROM amd_call").fetchone()
    first = int(found[0]) if found else 0
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
        "WITH RECURSIVE named AS (SELECT label, name FROM amd_label WHERE NOT host "
        "AND regexp_matches(name, '^(void )?(nccl|rccl|msccl)', 'i')), "
        "found AS (SELECT r.slice, n.name, r.launch FROM amd_rest r JOIN named n USING (label) "
        "WHERE r.kind = 'kernel'), "
        "up AS (SELECT slice, launch AS at FROM found WHERE launch IS NOT NULL UNION ALL "
        "SELECT u.slice, n.parent FROM up u JOIN amd_nested n ON n.rowid = u.at WHERE n.parent IS NOT NULL), "
        "call AS (SELECT u.slice, min(l.name) AS name FROM up u JOIN amd_call c ON c.rowid = u.at "
        "JOIN amd_label l USING (label) WHERE c.kind = 'api' AND l.name LIKE 'nccl%' GROUP BY u.slice) "
        f"SELECT slice, CASE {cases} ELSE 'unknown' END FROM (SELECT f.slice, "
        "f.name || ' ' || coalesce(c.name, '') AS text FROM found f LEFT JOIN call c USING (slice)) "
        "ORDER BY slice"
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
        f"c JOIN amd_track t ON t.part = 3 AND t.proc = c.proc AND t.agent_key = {AGENT_KEY} "
        "AND t.track_name = c.name WHERE c.ts IS NOT NULL AND c.value IS NOT NULL"
    )


def _any(con: duckdb.DuckDBPyConnection, query: str) -> bool:
    return con.execute(f"SELECT EXISTS ({query})").fetchone() == (True,)
