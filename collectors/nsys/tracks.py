"""The tracks of an nsys recording: one for every thread, stream and other row on which nsys puts records."""

from __future__ import annotations

from profrun.traces.writer import TraceWriter

_TID = "16777215"  # the low 24 bits of a globalTid
_THREADS = (
    "SELECT src, gtid FROM n_call_index WHERE what <> 'overhead' UNION ALL "
    "SELECT src, gtid FROM n_nvtx_index WHERE event IN (34, 59)"
)


def fill_tracks(writer: TraceWriter) -> None:
    """Fill ``tracks`` and the maps n_thread_track and n_gpu_track (track by record), n_track (all tracks)."""
    con = writer.con
    con.execute(
        "CREATE TABLE n_track_key AS "
        f"SELECT DISTINCT m.process, 'thread' AS what, gtid & {_TID} AS a, NULL::BIGINT AS b, "
        f"NULL::BIGINT AS c "
        f"FROM ({_THREADS}) h "
        "JOIN n_proc m ON m.src = h.src AND m.p = h.gtid >> 24 UNION ALL "
        "SELECT DISTINCT m.process, w.what, d.device, w.context, w.stream FROM n_gpu_work w "
        "JOIN n_proc m ON m.src = w.src AND m.p = w.p "
        "JOIN n_dev d ON d.process = m.process AND d.ordinal = w.device UNION ALL "
        "SELECT DISTINCT m.process, 'nvtx', h.domain, NULL, NULL FROM n_nvtx_index h "
        "JOIN n_proc m ON m.src = h.src AND m.p = h.gtid >> 24 WHERE h.event = 60 UNION ALL "
        "SELECT DISTINCT m.process, 'overhead', NULL, NULL, NULL FROM n_call_index h "
        "JOIN n_proc m ON m.src = h.src AND m.p = h.gtid >> 24 WHERE h.what = 'overhead'"
    )
    con.execute(
        "CREATE TABLE n_track AS SELECT row_number() OVER (ORDER BY process, CASE what WHEN 'thread' THEN 0 "
        "WHEN 'nvtx' THEN 1 WHEN 'overhead' THEN 2 ELSE 3 END, a, what, b, c) - 1 AS track, * FROM "
        "n_track_key"
    )
    _insert_tracks(writer)
    con.execute(
        "CREATE TABLE n_thread_track AS SELECT h.src, h.gtid, l.track::INTEGER AS track, m.number AS proc, "
        f"o.shift FROM (SELECT DISTINCT src, gtid FROM ({_THREADS})) h "
        "JOIN n_proc m ON m.src = h.src AND m.p = h.gtid >> 24 JOIN n_origin o ON o.src = h.src "
        f"JOIN n_track l ON l.process = m.process AND l.what = 'thread' AND l.a = h.gtid & {_TID}"
    )
    con.execute(
        "CREATE TABLE n_gpu_track AS SELECT w.*, l.track::INTEGER AS track, m.number AS proc, o.shift "
        "FROM n_gpu_work w "
        "JOIN n_proc m ON m.src = w.src AND m.p = w.p JOIN n_origin o ON o.src = w.src "
        "JOIN n_dev d ON d.process = m.process AND d.ordinal = w.device "
        "JOIN n_track l ON l.process = m.process AND l.what = w.what AND l.a = d.device "
        "AND l.b = w.context AND l.c = w.stream"
    )


def _insert_tracks(writer: TraceWriter) -> None:
    con = writer.con
    con.execute(
        "CREATE TABLE n_thread_name AS SELECT m.process, "
        f"t.gtid & {_TID} AS tid, any_value(s.value) AS name FROM n_thread t "
        "JOIN n_proc m ON m.src = t.src AND m.p = t.gtid >> 24 "
        "JOIN n_string s ON s.src = t.src AND s.id = t.name_id GROUP BY 1, 2"
    )
    con.execute(
        "CREATE TABLE n_contexts AS SELECT a, c, count(DISTINCT b) AS contexts FROM n_track "
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
        "FROM n_track l LEFT JOIN n_thread_name n ON l.what = 'thread' AND n.process = l.process AND "
        "n.tid = l.a "
        "LEFT JOIN n_contexts x ON l.what = 'stream' AND x.a = l.a AND x.c = l.c ORDER BY l.track"
    )
