"""Lanes: one track for every thread, stream and other row on which nsys puts records."""

from __future__ import annotations

from profrun.traces.writer import TraceWriter

_TID = "16777215"  # the low 24 bits of a globalTid


def gpu_work(writer: TraceWriter) -> None:
    """Create n_gpu_work: the distinct (src, p, device, context, stream, what) of all GPU records.

    Records without globalPid (minimal exports) belong to the only process of their file that called CUDA.
    """
    con = writer.con
    for table in ("n_kernel", "n_memcpy", "n_memset", "n_sync", "n_graph"):
        con.execute(
            f"UPDATE {table} SET gpid = coalesce((SELECT min(a.gtid >> 24) FROM n_api a WHERE a.src = "
            f"{table}.src "
            "HAVING count(DISTINCT a.gtid >> 24) = 1), 0) << 24 WHERE gpid IS NULL"
        )
        con.execute(f"UPDATE {table} SET device = 0 WHERE device IS NULL")
    con.execute(
        "CREATE TABLE n_gpu_work AS SELECT DISTINCT src, gpid >> 24 AS p, device, coalesce(context, -1) "
        "AS context, "
        "coalesce(stream, -1) AS stream, what FROM ("
        "SELECT src, gpid, device, context, stream, 'stream' AS what FROM n_kernel UNION ALL "
        "SELECT src, gpid, device, context, stream, 'stream' FROM n_memset UNION ALL "
        "SELECT src, gpid, device, context, stream, 'stream' FROM n_graph UNION ALL "
        "SELECT src, gpid, device, CASE WHEN uvm THEN -1 ELSE context END, CASE WHEN uvm THEN -1 ELSE "
        "stream END, "
        "CASE WHEN uvm THEN 'uvm' ELSE 'stream' END FROM (SELECT *, kind IN (11, 12, 13) AS uvm FROM "
        "n_memcpy) "
        "UNION ALL SELECT src, gpid, device, -1, -1, 'sync' FROM n_sync)"
    )


def lanes(writer: TraceWriter) -> None:
    """Fill ``tracks`` and the maps n_thread_track(src, gtid, track), n_gpu_track, n_lane (ranges, "
    "overhead)."""
    con = writer.con
    con.execute(
        "CREATE TABLE n_lane_seen AS "
        f"SELECT DISTINCT m.process, 'thread' AS what, gtid & {_TID} AS a, NULL::BIGINT AS b, "
        f"NULL::BIGINT AS c "
        "FROM (SELECT src, gtid FROM n_api UNION ALL SELECT src, gtid FROM n_lib UNION ALL "
        "SELECT src, gtid FROM n_nvtx WHERE event IN (34, 59)) h "
        "JOIN n_proc m ON m.src = h.src AND m.p = h.gtid >> 24 UNION ALL "
        "SELECT DISTINCT m.process, w.what, d.device, w.context, w.stream FROM n_gpu_work w "
        "JOIN n_proc m ON m.src = w.src AND m.p = w.p "
        "JOIN n_dev d ON d.process = m.process AND d.ordinal = w.device UNION ALL "
        "SELECT DISTINCT m.process, 'nvtx', coalesce(h.domain, 0), NULL, NULL FROM n_nvtx h "
        "JOIN n_proc m ON m.src = h.src AND m.p = h.gtid >> 24 WHERE h.event = 60 UNION ALL "
        "SELECT DISTINCT m.process, 'overhead', NULL, NULL, NULL FROM n_overhead h "
        "JOIN n_proc m ON m.src = h.src AND m.p = h.gtid >> 24"
    )
    con.execute(
        "CREATE TABLE n_lane AS SELECT row_number() OVER (ORDER BY process, CASE what WHEN 'thread' THEN 0 "
        "WHEN 'nvtx' THEN 1 WHEN 'overhead' THEN 2 ELSE 3 END, a, what, b, c) - 1 AS track, * FROM "
        "n_lane_seen"
    )
    _fill_tracks(writer)
    con.execute(
        "CREATE TABLE n_thread_track AS SELECT h.src, h.gtid, l.track FROM ("
        "SELECT DISTINCT src, gtid FROM n_api UNION SELECT DISTINCT src, gtid FROM n_lib UNION "
        "SELECT DISTINCT src, gtid FROM n_nvtx WHERE event IN (34, 59)) h "
        "JOIN n_proc m ON m.src = h.src AND m.p = h.gtid >> 24 "
        f"JOIN n_lane l ON l.process = m.process AND l.what = 'thread' AND l.a = h.gtid & {_TID}"
    )
    con.execute(
        "CREATE TABLE n_gpu_track AS SELECT w.*, l.track FROM n_gpu_work w "
        "JOIN n_proc m ON m.src = w.src AND m.p = w.p "
        "JOIN n_dev d ON d.process = m.process AND d.ordinal = w.device "
        "JOIN n_lane l ON l.process = m.process AND l.what = w.what AND l.a = d.device "
        "AND l.b = w.context AND l.c = w.stream"
    )


def _fill_tracks(writer: TraceWriter) -> None:
    con = writer.con
    con.execute(
        "CREATE TABLE n_thread_name AS SELECT m.process, "
        f"t.gtid & {_TID} AS tid, any_value(s.value) AS name FROM n_thread t "
        "JOIN n_proc m ON m.src = t.src AND m.p = t.gtid >> 24 "
        "JOIN n_string s ON s.src = t.src AND s.id = t.name_id GROUP BY 1, 2"
    )
    con.execute(
        "CREATE TABLE n_contexts AS SELECT a, c, count(DISTINCT b) AS contexts FROM n_lane "
        "WHERE what = 'stream' GROUP BY a, c"
    )
    con.execute(
        "INSERT INTO tracks BY NAME SELECT l.track, "
        "CASE l.what WHEN 'thread' THEN 'thread' WHEN 'stream' THEN 'stream' WHEN 'uvm' THEN 'copy' "
        "ELSE 'range' END AS kind, l.process, "
        "CASE WHEN l.what IN ('stream', 'uvm', 'sync') THEN l.a END AS device, "
        "CASE l.what WHEN 'thread' THEN l.a WHEN 'stream' THEN nullif(l.c, -1) END AS native_id, "
        "CASE l.what WHEN 'thread' THEN n.name WHEN 'uvm' THEN 'unified memory' WHEN 'sync' THEN "
        "'synchronisation' "
        "WHEN 'overhead' THEN 'profiler overhead' WHEN 'nvtx' THEN 'NVTX start/end ranges' "
        "ELSE 'stream ' || l.c || CASE WHEN x.contexts > 1 THEN ' (context ' || l.b || ')' ELSE '' END "
        "END AS name "
        "FROM n_lane l LEFT JOIN n_thread_name n ON l.what = 'thread' AND n.process = l.process AND "
        "n.tid = l.a "
        "LEFT JOIN n_contexts x ON l.what = 'stream' AND x.a = l.a AND x.c = l.c ORDER BY l.track"
    )
