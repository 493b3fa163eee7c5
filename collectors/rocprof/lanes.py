"""Which process, GPU and lane a record belongs to.

* Agents are HSA node numbers that count CPU agents first; a device's ordinal is the number among GPUs, from
  the tool's agent table where it has one. Without one the GPUs of the run are counted in the order of their
  node numbers and the issue ``device_ordinal_guessed`` says so.
* A GPU lane is the stream a record was enqueued on, or the HSA queue where no stream is known or where one
  GPU has more than ``MAX_STREAMS`` streams (PyTorch runs have hundreds with one dispatch each).
"""

from __future__ import annotations

import duckdb

from profrun.collectors.rocprof.staging import Staging

MAX_STREAMS = 64


def settle_processes(staging: Staging) -> None:
    """Fill ``processes``; drop processes that did nothing on a GPU where others did, and say so."""
    con, issue = staging.con, staging.writer.issue
    idle = con.execute(
        "SELECT p.proc, p.pid, (SELECT count(*) FROM amd_host h WHERE h.proc = p.proc) FROM amd_process p "
        "WHERE NOT EXISTS (FROM amd_gpu g WHERE g.proc = p.proc) "
        "AND NOT EXISTS (FROM amd_host h WHERE h.proc = p.proc AND h.kind IN ('range', 'step')) "
        "AND EXISTS (FROM amd_gpu)"
    ).fetchall()
    if idle:
        issue(
            "idle_processes",
            len(idle),
            "processes without GPU work or ranges were left out",
            f"pid {idle[0][1]} with {idle[0][2]} API calls",
        )
        for proc, _, _ in idle:
            for table in ("amd_host", "amd_process", "amd_agent", "amd_counter", "amd_alloc", "amd_overhead"):
                con.execute(f"DELETE FROM {table} WHERE proc = ?", [proc])
    known = _scalar(con, "SELECT count(*) FROM amd_process WHERE rank IS NOT NULL")
    total = _scalar(con, "SELECT count(*) FROM amd_process")
    if total > 1 and not known:
        issue(
            "rank_guessed",
            total,
            "no rank was recorded; processes are ranked in the order of their process ids",
        )
        con.execute(
            "UPDATE amd_process SET rank = r.n FROM (SELECT proc, row_number() OVER (ORDER BY pid, proc) - 1 "
            "AS n FROM amd_process) r WHERE r.proc = amd_process.proc"
        )
    nodes = _scalar(con, "SELECT count(DISTINCT node) FROM amd_process")
    if nodes > 1:
        issue(
            "clocks_not_aligned",
            nodes,
            "processes of several hosts: each host's clock counts from its own boot, so times of different "
            "hosts cannot be compared",
        )
    con.execute(
        "INSERT INTO processes SELECT row_number() OVER (ORDER BY proc) - 1, pid, coalesce(rank, 0), host, "
        "name "
        "FROM amd_process ORDER BY proc"
    )
    con.execute(
        "CREATE TEMP TABLE amd_proc AS SELECT proc, (row_number() OVER (ORDER BY proc) - 1)::INTEGER AS "
        "process "
        "FROM amd_process"
    )


def settle_agents(staging: Staging) -> None:
    """Give every copy its GPU, complete the agents, fill ``devices``."""
    con = staging.con
    con.execute(
        "UPDATE amd_gpu SET agent = CASE direction WHEN 'HtoD' THEN dst WHEN 'DtoH' THEN src WHEN 'HtoH' "
        "THEN NULL "
        "ELSE coalesce(dst, src) END WHERE what <> 'kernel' AND agent IS NULL"
    )
    con.execute(
        "INSERT INTO amd_agent (proc, agent, gpu, name) SELECT DISTINCT g.proc, g.agent, true, NULL FROM "
        "amd_gpu g "
        "WHERE g.agent IS NOT NULL AND NOT EXISTS "
        "(FROM amd_agent a WHERE a.proc = g.proc AND a.agent = g.agent)"
    )
    con.execute(
        "UPDATE amd_gpu SET agent = NULL FROM amd_agent a WHERE a.proc = amd_gpu.proc AND a.agent = "
        "amd_gpu.agent "
        "AND NOT a.gpu AND amd_gpu.what <> 'kernel'"
    )
    con.execute(
        "UPDATE amd_gpu SET direction = 'PtoP' WHERE direction = 'DtoD' AND src <> dst AND what = 'memcpy'"
    )
    guessed = con.execute(
        "SELECT count(DISTINCT agent), min(agent) FROM amd_agent WHERE gpu AND ordinal IS NULL"
    ).fetchone()
    if guessed and guessed[0]:
        staging.writer.issue(
            "device_ordinal_guessed",
            guessed[0],
            "no agent table was given: GPUs are numbered in the order of their HSA node numbers",
            f"node {guessed[1]} is taken as GPU 0",
        )
        con.execute(
            "UPDATE amd_agent SET ordinal = r.n FROM (SELECT agent, row_number() OVER (ORDER BY agent) - 1 "
            "AS n "
            "FROM (SELECT DISTINCT agent FROM amd_agent WHERE gpu AND ordinal IS NULL)) r "
            "WHERE r.agent = amd_agent.agent AND gpu AND ordinal IS NULL"
        )
    con.execute(
        "CREATE TEMP TABLE amd_device AS SELECT proc, agent, any_value(a ORDER BY a.agent) AS a, "
        "(row_number() OVER (ORDER BY proc, min(ordinal), agent) - 1)::INTEGER AS device FROM amd_agent a "
        "WHERE gpu AND (EXISTS (FROM amd_gpu g WHERE g.proc = a.proc AND g.agent = a.agent) "
        "OR EXISTS (FROM amd_counter c WHERE c.proc = a.proc AND c.agent = a.agent)) GROUP BY proc, agent"
    )
    con.execute(
        "INSERT INTO devices (device, process, vendor, ordinal, name, arch, sm_count, warp_size, "
        "max_threads_per_sm, "
        "smem_per_sm, memory_bytes, uuid) SELECT device, process, 'amd', a.ordinal, coalesce(a.name, "
        "'unknown'), a.arch, "
        "a.cu, a.wave, a.threads, a.lds, a.memory, a.uuid FROM amd_device d JOIN amd_proc USING (proc) "
        "ORDER BY device"
    )


def settle_lanes(staging: Staging) -> None:
    """Fill ``tracks`` and the lane of every staged record (tables amd_host_lane, amd_gpu_lane, amd_track)."""
    con = staging.con
    most = con.execute(
        "SELECT count(DISTINCT stream) AS n FROM amd_gpu WHERE stream IS NOT NULL GROUP BY proc, agent "
        "ORDER BY n DESC LIMIT 1"
    ).fetchone()
    by_queue = bool(most and most[0] > MAX_STREAMS)
    if by_queue and most:
        staging.writer.issue(
            "streams_as_queues",
            most[0],
            f"one GPU has more than {MAX_STREAMS} streams: GPU lanes are HSA queues instead",
        )
    stream = "NULL::BIGINT" if by_queue else "stream"
    con.execute(
        f"CREATE TEMP TABLE amd_gpu_lane AS SELECT rowid AS n, proc, agent, "
        f"CASE WHEN {stream} IS NOT NULL AND agent IS NOT NULL THEN 'stream' WHEN what <> 'kernel' THEN "
        f"'copy' "
        f"ELSE 'queue' END AS kind, "
        f"CASE WHEN {stream} IS NOT NULL AND agent IS NOT NULL THEN {stream} WHEN what <> 'kernel' THEN NULL "
        f"ELSE queue END AS id FROM amd_gpu"
    )
    con.execute(
        "CREATE TEMP TABLE amd_host_lane AS SELECT rowid AS n, proc, NULL::BIGINT AS agent, "
        "CASE WHEN kind IN ('range', 'step') AND coalesce(tid, 0) = 0 THEN 'range' ELSE 'thread' END AS "
        "kind, "
        "CASE WHEN kind IN ('range', 'step') AND coalesce(tid, 0) = 0 THEN NULL ELSE tid END AS id FROM "
        "amd_host"
    )
    con.execute(
        "CREATE TEMP TABLE amd_track AS SELECT (row_number() OVER (ORDER BY proc, part, agent NULLS FIRST, "
        "kind, id, "
        "name) - 1)::INTEGER AS track, * FROM ("
        "SELECT DISTINCT 0 AS part, proc, agent, kind, id, NULL::VARCHAR AS name FROM amd_host_lane UNION "
        "ALL "
        "SELECT DISTINCT 1, proc, NULL::BIGINT, 'range', NULL::BIGINT, 'runtime' FROM amd_overhead UNION ALL "
        "SELECT DISTINCT 2, proc, agent, kind, id, NULL FROM amd_gpu_lane UNION ALL "
        "SELECT DISTINCT 3, proc, agent, 'counter', NULL::BIGINT, name FROM amd_counter)"
    )
    con.execute(
        "INSERT INTO tracks SELECT track, kind, process, device, id, coalesce(name, CASE kind "
        "WHEN 'range' THEN 'ranges without a thread' WHEN 'copy' THEN 'copies' "
        "ELSE kind || coalesce(' ' || id, '') END) "
        "FROM amd_track t JOIN amd_proc USING (proc) LEFT JOIN amd_device d ON d.proc = t.proc AND d.agent "
        "= t.agent "
        "ORDER BY track"
    )


def _scalar(con: duckdb.DuckDBPyConnection, query: str) -> int:
    row = con.execute(query).fetchone()
    return int(row[0]) if row and row[0] is not None else 0
