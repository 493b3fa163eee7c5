"""Which process, GPU and track a record belongs to.

* Agents are HSA node numbers that count CPU agents first; a device's ordinal is the number among GPUs, from
  the tool's agent table where it has one. Without one the GPUs of the run are counted in the order of their
  node numbers and the issue ``device_ordinal_guessed`` says so.
* A GPU track is the stream a record was enqueued on, or the HSA queue where no stream is known or where one
  GPU has more than ``MAX_STREAMS`` streams (PyTorch runs have hundreds with one dispatch each).
"""

from __future__ import annotations

import duckdb

from profrun.collectors.rocprof.staging import Staging

MAX_STREAMS = 64
NO_AGENT = -1
"""Agent of records that name none, in a process without a known GPU."""


def _leave_out_idle(staging: Staging) -> None:
    """Drop processes that did nothing on a GPU where others did, and say so."""
    con = staging.con
    idle = con.execute(
        "SELECT p.proc, p.pid, (SELECT count(*) FROM amd_host h WHERE h.proc = p.proc) FROM amd_process p "
        "WHERE NOT EXISTS (FROM amd_gpu g WHERE g.proc = p.proc) "
        "AND NOT EXISTS (FROM amd_host h WHERE h.proc = p.proc AND h.kind IN ('range', 'step')) "
        "AND EXISTS (FROM amd_gpu)"
    ).fetchall()
    if idle:
        staging.writer.issue(
            "idle_processes",
            len(idle),
            "processes without GPU work or ranges were left out",
            f"pid {idle[0][1]} with {idle[0][2]} API calls",
        )
        for proc, _, _ in idle:
            for table in ("amd_host", "amd_process", "amd_agent", "amd_counter", "amd_alloc", "amd_overhead"):
                con.execute(f"DELETE FROM {table} WHERE proc = ?", [proc])


def settle_processes(staging: Staging) -> None:
    """Fill ``processes``: those that did something, with their ranks."""
    con, issue = staging.con, staging.writer.issue
    _leave_out_idle(staging)
    known = _scalar(con, "SELECT count(*) FROM amd_process WHERE rank IS NOT NULL")
    total = _scalar(con, "SELECT count(*) FROM amd_process")
    if total > 1 and not known:
        issue(
            "rank_guessed",
            total,
            "no rank was recorded; processes are ranked in the order of their process ids",
        )
        con.execute(
            "UPDATE amd_process SET rank = r.n, guessed = true FROM "
            "(SELECT proc, row_number() OVER (ORDER BY pid, proc) - 1 AS n FROM amd_process) r "
            "WHERE r.proc = amd_process.proc"
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
        "INSERT INTO processes BY NAME SELECT row_number() OVER (ORDER BY proc) - 1 AS process, pid, "
        f"coalesce(rank, 0) AS rank, guessed OR (rank IS NULL AND {total} > 1) AS rank_guessed, host, name "
        "FROM amd_process ORDER BY proc"
    )
    con.execute(
        "CREATE TEMP TABLE amd_proc AS SELECT proc, (row_number() OVER (ORDER BY proc) - 1)::INTEGER AS "
        "process FROM amd_process"
    )


def _homeless(staging: Staging) -> None:
    """Every GPU record needs a GPU: one that names none goes to the process's first, and is counted."""
    lost = staging.con.execute("SELECT count(*), min(direction) FROM amd_gpu WHERE agent IS NULL").fetchone()
    if lost and lost[0]:
        staging.writer.issue(
            "gpu_unknown", lost[0], "records that name no GPU stand on the first of their process", lost[1]
        )
        staging.con.execute(
            "UPDATE amd_gpu SET agent = coalesce((SELECT min(a.agent) FROM amd_agent a WHERE a.gpu "
            "AND a.proc = amd_gpu.proc), (SELECT min(o.agent) FROM amd_gpu o WHERE o.proc = amd_gpu.proc), "
            f"{NO_AGENT}) WHERE agent IS NULL"
        )


def _guess_ordinals(staging: Staging) -> None:
    """GPUs without a known ordinal are counted in the order of their node numbers."""
    con = staging.con
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
            "AS n FROM (SELECT DISTINCT agent FROM amd_agent WHERE gpu AND ordinal IS NULL)) r "
            "WHERE r.agent = amd_agent.agent AND gpu AND ordinal IS NULL"
        )


def settle_agents(staging: Staging) -> None:
    """Give every copy its GPU, complete the agents, fill ``devices``."""
    con = staging.con
    con.execute(
        "UPDATE amd_gpu SET agent = CASE direction WHEN 'HtoD' THEN dst WHEN 'DtoH' THEN src WHEN 'HtoH' "
        "THEN NULL ELSE coalesce(dst, src) END WHERE what <> 'kernel' AND agent IS NULL"
    )
    con.execute(
        "UPDATE amd_gpu SET agent = NULL FROM amd_agent a WHERE a.proc = amd_gpu.proc AND a.agent = "
        "amd_gpu.agent AND NOT a.gpu"
    )
    _homeless(staging)
    con.execute(
        "INSERT INTO amd_agent (proc, agent, gpu, name) SELECT DISTINCT g.proc, g.agent, true, NULL FROM "
        "amd_gpu g WHERE g.agent IS NOT NULL AND NOT EXISTS "
        "(FROM amd_agent a WHERE a.proc = g.proc AND a.agent = g.agent)"
    )
    con.execute(
        "UPDATE amd_gpu SET direction = 'PtoP' WHERE direction = 'DtoD' AND src <> dst AND what = 'memcpy'"
    )
    _guess_ordinals(staging)
    con.execute(
        "CREATE TABLE amd_device AS SELECT proc, agent, any_value(a ORDER BY a.agent) AS a, "
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


NONE = -(2**63)
"""Stands for NULL in the keys of tracks, so that joins need no NULL-safe comparison."""
_FREE = "kind IN ('range', 'step') AND coalesce(tid, 0) = 0"
HOST_KIND = f"CASE WHEN {_FREE} THEN 'range' ELSE 'thread' END"
"""SQL over amd_host: kind of a row's track. Start/stop ranges have no thread and a track of their own."""
HOST_KEY = f"CASE WHEN {_FREE} THEN {NONE} ELSE coalesce(tid, {NONE}) END"
AGENT_KEY = f"coalesce(agent, {NONE})"


def gpu_kind(staging: Staging) -> str:
    """SQL over amd_gpu: kind of a row's track."""
    on_stream = "false" if staging.by_queue else "stream IS NOT NULL AND agent IS NOT NULL"
    return f"CASE WHEN {on_stream} THEN 'stream' WHEN what <> 'kernel' THEN 'copy' ELSE 'queue' END"


def gpu_key(staging: Staging) -> str:
    """SQL over amd_gpu: native id of a row's track."""
    kind = gpu_kind(staging)
    return f"coalesce(CASE {kind} WHEN 'stream' THEN stream WHEN 'queue' THEN queue END, {NONE})"


def settle_tracks(staging: Staging) -> None:
    """Fill ``tracks``, and amd_track, which says a record's track by process, agent, kind and key."""
    con = staging.con
    most = con.execute(
        "SELECT count(DISTINCT stream) AS n FROM amd_gpu WHERE stream IS NOT NULL GROUP BY proc, agent "
        "ORDER BY n DESC LIMIT 1"
    ).fetchone()
    staging.by_queue = bool(most and most[0] > MAX_STREAMS)
    if staging.by_queue and most:
        staging.writer.issue(
            "streams_as_queues",
            most[0],
            f"one GPU has more than {MAX_STREAMS} streams: the tracks of its work are HSA queues instead",
        )
    con.execute(
        "CREATE TEMP TABLE amd_track AS SELECT (row_number() OVER (ORDER BY proc, part, agent_key, "
        "track_kind, native_key, track_name) - 1)::INTEGER AS track, * FROM ("
        f"SELECT DISTINCT 0 AS part, proc, {NONE} AS agent_key, {HOST_KIND} AS track_kind, "
        f"{HOST_KEY} AS native_key, NULL::VARCHAR AS track_name FROM amd_host UNION ALL "
        f"SELECT DISTINCT 1, proc, {NONE}, 'range', {NONE}, 'runtime' FROM amd_overhead UNION ALL "
        f"SELECT DISTINCT 2, proc, {AGENT_KEY}, {gpu_kind(staging)}, {gpu_key(staging)}, NULL FROM amd_gpu "
        f"UNION ALL SELECT DISTINCT 3, proc, {AGENT_KEY}, 'counter', {NONE}, name FROM amd_counter)"
    )
    con.execute(
        f"INSERT INTO tracks SELECT track, track_kind, process, device, nullif(native_key, {NONE}), "
        "coalesce(track_name, CASE track_kind WHEN 'range' THEN 'ranges without a thread' "
        f"WHEN 'copy' THEN 'copies' ELSE track_kind || coalesce(' ' || nullif(native_key, {NONE}), '') END) "
        "FROM amd_track t JOIN amd_proc USING (proc) "
        "LEFT JOIN amd_device d ON d.proc = t.proc AND d.agent = t.agent_key ORDER BY track"
    )


def _scalar(con: duckdb.DuckDBPyConnection, query: str) -> int:
    row = con.execute(query).fetchone()
    return int(row[0]) if row and row[0] is not None else 0
