"""An index of the large staging tables: few rows, made in one pass over each.

Tracks, processes, names, counts of odd records and the end of the recording come from these tables, so that
calls and kernels themselves are read again only to become slices.
"""

from __future__ import annotations

from profrun.collectors.nsys.names import (
    COPY_DIRECTIONS,
    MEMORY_KINDS,
    NO_ERROR,
    NO_STREAM,
    SYNC_TYPES,
    UVM_COPY_KINDS,
    case,
)
from profrun.traces.writer import TraceWriter

GPU_TABLES: dict[str, tuple[str, tuple[str, ...]]] = {
    "n_kernel": ("kernel", ("demangled", "short", "mangled")),
    "n_memcpy": ("memcpy", ("kind", "src_kind", "dst_kind")),
    "n_memset": ("memset", ("mem_kind",)),
    "n_sync": ("sync", ("type",)),
    "n_graph": ("range", ("graph",)),
}
"""Staging tables of the GPU in the order of their slice ids: kind of slice, columns that make its name."""

OWNER = ("src", "gpid", "device", "context", "stream")
"""Columns of a GPU record that say its track."""

_UVM = ", ".join(str(kind) for kind in UVM_COPY_KINDS)
_ODD = (
    "count(*) AS records, count(*) FILTER (stop < start) AS negative, "
    "count(*) FILTER (stop IS NULL) AS open_ended"
)


def index_records(writer: TraceWriter) -> None:
    """Create n_call_index, n_nvtx_index, n_gpu_index and n_gpu_work.

    * n_call_index: calls of API and libraries and the profiler's own work, by file, thread and name;
    * n_nvtx_index: NVTX records by file, thread, kind and domain;
    * n_gpu_index: GPU records by file, track and what names them (``k1`` to ``k3``, see ``GPU_TABLES``), with
      the process ``p`` and device they are counted to;
    * n_gpu_work: the distinct (src, p, device, context, stream, what) of all GPU records.
    """
    con = writer.con
    con.execute(
        "CREATE TABLE n_call_index AS "
        f"SELECT 'api' AS what, src, gtid, name_id, {_ODD}, max(stop) AS stop, "
        f"count(*) FILTER (ret NOT IN {NO_ERROR}) AS failed "
        "FROM n_api GROUP BY ALL UNION ALL "
        f"SELECT 'lib', src, gtid, name_id, {_ODD}, NULL, 0 FROM n_lib GROUP BY ALL UNION ALL "
        f"SELECT 'overhead', src, gtid, name_id, {_ODD}, NULL, 0 FROM n_overhead GROUP BY ALL"
    )
    con.execute(
        "CREATE TABLE n_nvtx_index AS SELECT src, gtid, event, coalesce(domain, 0) AS domain, "
        "count(*) AS records, max(greatest(start, coalesce(stop, start))) AS stop FROM n_nvtx GROUP BY ALL"
    )
    con.execute(f"CREATE TABLE n_gpu_index AS {_gpu_index()}")
    con.execute(
        "CREATE TABLE n_gpu_work AS SELECT DISTINCT src, p, ordinal AS device, track_context AS context, "
        "track_stream AS stream, what FROM n_gpu_index"
    )


def _gpu_index() -> str:
    """Records without globalPid (minimal exports) belong to the only process of their file that called CUDA;
    those without a device to device 0."""
    parts = []
    for table, (_, keys) in GPU_TABLES.items():
        three = [*keys, "NULL", "NULL"][:3]
        uvm = f"kind IN ({_UVM})" if table == "n_memcpy" else "false"
        bad = "count(*) FILTER (least(grid_x, grid_y, grid_z, block_x, block_y, block_z) < 1)"
        parts.append(
            f"SELECT '{table}' AS stage, {', '.join(OWNER)}, "
            + ", ".join(f"{key}::BIGINT AS k{number}" for number, key in enumerate(three, 1))
            + f", coalesce({uvm}, false) AS uvm, {_ODD}, max(stop) AS stop, "
            f"{bad if table == 'n_kernel' else '0'} AS bad_grid FROM {table} GROUP BY ALL"
        )
    track = "CASE WHEN uvm OR stage = 'n_sync' THEN -1 ELSE coalesce({}, -1) END AS track_{}"
    return (
        "WITH only_one AS (SELECT src, min(gtid >> 24) AS p FROM n_call_index WHERE what = 'api' "
        "GROUP BY src HAVING count(DISTINCT gtid >> 24) = 1) "
        "SELECT g.*, coalesce(g.gpid >> 24, o.p, 0) AS p, coalesce(g.device, 0) AS ordinal, "
        "CASE WHEN uvm THEN 'uvm' WHEN stage = 'n_sync' THEN 'sync' ELSE 'stream' END AS what, "
        f"{track.format('context', 'context')}, {track.format('stream', 'stream')} "
        f"FROM ({' UNION ALL '.join(parts)}) g LEFT JOIN only_one o ON o.src = g.src"
    )


def gpu_name() -> str:
    """SQL over n_gpu_index and its strings d, s, m (by k1, k2, k3): what a record's slice is called."""
    direction = case("k1", COPY_DIRECTIONS, "'unknown'")
    kind = {key: case(key, MEMORY_KINDS, "NULL") for key in ("k1", "k2", "k3")}
    shown = {key: f"coalesce(upper({kind[key]}[1]) || {kind[key]}[2:], 'Unknown')" for key in kind}
    any_stream = f"g.stream IS NULL OR g.stream = {NO_STREAM}"
    stream = f"CASE WHEN {any_stream} THEN '' ELSE ' (stream ' || g.stream || ')' END"
    return (
        "CASE stage WHEN 'n_kernel' THEN coalesce(d.value, s.value, m.value, 'unknown kernel') "
        f"WHEN 'n_memcpy' THEN CASE WHEN uvm THEN 'Unified memory migration ' || {direction} "
        f"ELSE 'Memcpy ' || {direction} || ' (' || {shown['k2']} || ' -> ' || {shown['k3']} || ')' END "
        f"WHEN 'n_memset' THEN 'Memset (' || {shown['k1']} || ')' "
        f"WHEN 'n_sync' THEN {case('k1', SYNC_TYPES, chr(39) + 'Sync' + chr(39))} || {stream} "
        "ELSE 'CUDA graph ' || coalesce(k1::VARCHAR, '') END"
    )
