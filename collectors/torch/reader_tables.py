"""From staged kineto events to the trace's tables: ids, nesting, launches and side tables, in SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profrun.collectors.reading import TIME_LIMIT_NS
from profrun.collectors.torch.reader_stage import FILE_BITS
from profrun.contract.step_names import ANY_STEP
from profrun.traces.nest import KIND_ORDER, nest_sorted
from profrun.traces.schema import SLICE_KINDS
from profrun.traces.writer import TraceWriter

if TYPE_CHECKING:
    import duckdb

_OWN_NAME = "coalesce(nullif(text, ''), 'unnamed')"
_KERNEL_NAME = rf"regexp_replace({_OWN_NAME}, '( \[clone \.kd\]| \(\.kd\)|\.kd)$', '')"
_NAMES = f"""
CREATE TYPE k_names AS ENUM (
  WITH e AS (SELECT text FROM k_text WHERE number IN (SELECT name FROM k_core))
  SELECT {_OWN_NAME} FROM e UNION SELECT {_KERNEL_NAME} FROM e UNION SELECT 'unnamed' ORDER BY 1);
CREATE TABLE k_name AS SELECT number AS name, {_OWN_NAME}::k_names AS own,
  ({_KERNEL_NAME})::k_names AS kernel, regexp_matches(text, '{ANY_STEP}') AS step
FROM k_text WHERE number IN (SELECT name FROM k_core)
"""
_FEW_NAMES = 1 << 14
"""Parquet takes these as its dictionary as they are, and repeats them in each group of 122,880 rows."""


def slices(con: duckdb.DuckDBPyConnection, host_tracks: int) -> tuple[int, str | None]:
    """Make ``k_slice`` of ``k_core`` and ``k_track``: sorted, with ids; ``k_beside`` and ``k_launch``.

    The narrower its rows the less of a large file is sorted on disk: the slice is the place of a row, and the
    file is in the number of its event. ``k_core`` is gone afterwards.

    Returns:
        Slices that overlap without nesting, and the name of one.
    """
    rank = " ".join(f"WHEN '{kind}' THEN {place}" for place, kind in enumerate(KIND_ORDER))
    con.execute("SET preserve_insertion_order = true")
    con.execute(_NAMES)  # sorted and joined as numbers; in the names' order, so that min(name) stays the same
    con.execute("CREATE TYPE k_kinds AS ENUM (" + ", ".join(f"'{kind}'" for kind in SLICE_KINDS) + ")")
    con.execute(
        f"""
        CREATE TABLE k_sorted AS
        SELECT e."row",
          CASE WHEN l.host AND l.kind IN ('op', 'range') AND n.step THEN 'step'::k_kinds
            ELSE l.kind::k_kinds END AS kind,
          coalesce(CASE WHEN l.kind = 'kernel' THEN n.kernel ELSE n.own END, 'unnamed'::k_names) AS name,
          e.ts + l.shift AS ts_ns,
          CASE WHEN e.dur BETWEEN 0 AND {TIME_LIMIT_NS} THEN e.dur ELSE 0 END AS dur_ns,
          l.track, e.corr
        FROM k_core e JOIN k_track l USING (owner) LEFT JOIN k_name n ON n.name = e.name
        WHERE abs(e.ts) < {TIME_LIMIT_NS}
        ORDER BY l.track, ts_ns, dur_ns DESC, CASE kind {rank} ELSE 99 END, e.tie
        """
    )
    con.execute("DROP VIEW k_core; DROP TABLE IF EXISTS c_core")
    con.execute(
        f'CREATE VIEW k_slice AS SELECT rowid AS slice, *, ("row" >> {FILE_BITS})::INTEGER AS src '
        "FROM k_sorted"
    )
    crossing = nest_sorted(con, "k_slice", f"track < {host_tracks}", "k_nest")
    con.execute(_launches(con))
    con.execute(
        f"""
        CREATE TABLE k_beside AS SELECT parent, depth, NULL::BIGINT AS launch FROM k_nest UNION ALL
        SELECT NULL, NULL, launch FROM (
          SELECT s.slice, l.launch FROM k_slice s LEFT JOIN k_launch l USING (slice)
          WHERE s.track >= {host_tracks} ORDER BY s.slice)
        """
    )
    return crossing


def rows(con: duckdb.DuckDBPyConnection) -> str:
    """Query of the slices table, in order: ``k_beside`` has a row for each slice, host slices first."""
    few = con.execute(f"SELECT len(enum_range(NULL::k_names)) < {_FEW_NAMES}").fetchone()
    name = "name" if few and few[0] else "name::VARCHAR AS name"
    return (
        f"SELECT slice, kind, {name}, ts_ns, dur_ns, track, parent, depth, corr AS correlation, launch "
        "FROM k_slice POSITIONAL JOIN k_beside"
    )


def _launches(con: duckdb.DuckDBPyConnection) -> str:
    """The statement that makes ``k_launch``; in a file of several ranks, a part takes the file's place."""
    split = con.execute("SELECT count(DISTINCT part) > count(DISTINCT src) FROM k_track").fetchone()
    if split and split[0]:
        home = "JOIN (SELECT DISTINCT track, part FROM k_track) h ON h.track = s.track"
        return _LAUNCH.format(part="h.part", home=home)
    return _LAUNCH.format(part="s.src", home="")


_LAUNCH = """
CREATE TABLE k_launch AS
WITH threads AS (SELECT count(*) AS n FROM tracks WHERE kind = 'thread'),
gpu AS (SELECT s.slice, {part} AS part, s.corr, g.xid FROM k_slice s {home} LEFT JOIN k_gpu g USING ("row")
        WHERE s.kind IN ('kernel', 'memcpy', 'memset', 'sync') AND s.track >= (SELECT n FROM threads)),
api AS (SELECT {part} AS part, s.corr, arg_min(s.slice, s.ts_ns) AS slice FROM k_slice s {home}
        WHERE s.kind = 'api' AND s.corr > 0 GROUP BY 1, 2),
op AS (SELECT {part} AS part, o.xid, min(s.slice) AS slice
       FROM k_op o JOIN k_slice s USING ("row") {home}
       WHERE o.xid > 0 AND s.track < (SELECT n FROM threads)
       GROUP BY 1, 2)
SELECT gpu.slice, coalesce(api.slice, op.slice) AS launch, api.slice IS NULL AS by_op
FROM gpu LEFT JOIN api ON gpu.part = api.part AND gpu.corr = api.corr
LEFT JOIN op ON gpu.part = op.part AND gpu.xid = op.xid
WHERE coalesce(api.slice, op.slice) IS NOT NULL
"""


def _side(columns: str, table: str, where: str) -> str:
    """Select the side table's rows: ``s`` is the slice, ``e`` its row in a table of arguments."""
    rows = f'{table} e JOIN k_slice s USING ("row")'
    return f"SELECT s.slice, {columns} FROM {rows} WHERE {where} ORDER BY s.slice"


def _triple(column: str) -> str:
    return f"len({column}) = 3 AND list_min({column}) >= 1"


def kernels(con: duckdb.DuckDBPyConnection) -> None:
    """Fill ``kernels``, grids in blocks.

    NVIDIA's grids are blocks already. On AMD ``hipExtModuleLaunchKernel`` takes work-items, so its grids are
    divided by the block; the first rocprofiler-sdk backend swapped grid and block and counted work-items
    (no block holds more than 1024 threads, so a product beyond that in a file proves the swap). There the
    dynamic shared memory stands only on the launch.
    """
    con.execute(
        """
        CREATE TABLE k_launcher AS SELECT l.slice, a.name AS api, e.grid, e.block, e.smem
        FROM k_launch l JOIN k_slice a ON a.slice = l.launch LEFT JOIN k_gpu e ON e."row" = a."row"
        WHERE a.kind = 'api' AND a.src IN (SELECT src FROM k_vendor WHERE vendor = 'amd')
        """
    )
    con.execute(
        """
        CREATE TABLE k_swapped AS SELECT DISTINCT s.src FROM k_gpu e JOIN k_slice s USING ("row")
        JOIN k_vendor v USING (src)
        WHERE v.vendor = 'amd' AND len(e.block) = 3
          AND e.block[1]::HUGEINT * e.block[2] * e.block[3] > 1024
        """
    )
    blocks = ", ".join(
        f"TRY_CAST(CASE WHEN items THEN (g[{axis}]::HUGEINT + b[{axis}] - 1) // b[{axis}] "
        f"ELSE g[{axis}] END AS BIGINT)"
        for axis in (1, 2, 3)
    )
    con.execute(
        f"""
        INSERT INTO kernels (slice, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers, smem,
                             smem_dynamic, est_occupancy, graph, graph_node)
        WITH raw AS (
          SELECT s.slice, v.vendor = 'amd' AS amd, s.src IN (SELECT src FROM k_swapped) AS swapped,
            l.api,
            CASE WHEN {_triple("e.grid")} THEN e.grid WHEN {_triple("l.grid")} THEN l.grid END AS g,
            CASE WHEN {_triple("e.block")} THEN e.block WHEN {_triple("l.block")} THEN l.block END AS b,
            e.registers, e.smem, l.smem AS smem_dynamic, e.occupancy, e.graph, e.graph_node
          FROM k_slice s JOIN k_gpu e USING ("row") JOIN k_vendor v ON v.src = s.src
          LEFT JOIN k_launcher l ON l.slice = s.slice WHERE s.kind = 'kernel'),
        sides AS (SELECT * EXCLUDE (g, b), CASE WHEN swapped THEN b ELSE g END AS g,
                         CASE WHEN swapped THEN g ELSE b END AS b,
                         swapped OR (amd AND api = 'hipExtModuleLaunchKernel') AS items FROM raw)
        SELECT slice, {blocks}, TRY_CAST(b[1] AS INTEGER), TRY_CAST(b[2] AS INTEGER),
          TRY_CAST(b[3] AS INTEGER), TRY_CAST(registers AS INTEGER), smem, smem_dynamic,
          CASE WHEN occupancy BETWEEN 0 AND 100 THEN occupancy / 100 END,
          nullif(graph, 0), CASE WHEN graph > 0 THEN graph_node END
        FROM sides ORDER BY slice
        """
    )


def copies(con: duckdb.DuckDBPyConnection) -> None:
    """Fill ``copies``; kineto states direction and memory kinds only in the name."""
    kind = (
        "CASE {0} "
        + " ".join(
            f"WHEN '{name}' THEN '{kind}'"
            for name, kind in (
                ("pageable", "pageable"),
                ("pinned", "pinned"),
                ("host", "host"),
                ("device", "device"),
                ("array", "array"),
                ("managed", "managed"),
                ("device static", "device"),
                ("managed static", "managed"),
            )
        )
        + " ELSE CASE WHEN {0} <> '' THEN 'unknown' END END"
    )
    source = r"lower(regexp_extract(s.name, '\((.+) -> (.+)\)', 1))"
    target = r"lower(regexp_extract(s.name, '\((.+) -> (.+)\)', 2))"
    letters = r"regexp_extract(s.name, '\b([HDAP])to([HDAP])\b', {})"
    direction = (
        "CASE WHEN s.kind = 'memset' THEN 'memset' "
        "WHEN s.name ILIKE '%HostToDevice%' THEN 'HtoD' WHEN s.name ILIKE '%DeviceToHost%' THEN 'DtoH' "
        "WHEN s.name ILIKE '%DeviceToDevice%' THEN 'DtoD' WHEN s.name ILIKE '%HostToHost%' THEN 'HtoH' "
        f"WHEN {letters.format(1)} = 'P' THEN 'PtoP' "
        f"WHEN {letters.format(1)} IN ('H', 'D', 'A') AND {letters.format(2)} IN ('H', 'D', 'A') THEN "
        f"replace({letters.format(1)}, 'A', 'D') || 'to' || replace({letters.format(2)}, 'A', 'D') "
        "ELSE 'unknown' END"
    )
    con.execute(
        "INSERT INTO copies (slice, direction, bytes, src_kind, dst_kind) "
        + _side(
            f"{direction}, e.bytes, CASE WHEN s.kind = 'memcpy' THEN {kind.format(source)} END, "
            f"CASE WHEN s.kind = 'memcpy' THEN {kind.format(target)} "
            r"ELSE " + kind.format(r"lower(regexp_extract(s.name, '\((.+)\)', 1))") + " END",
            "k_gpu",
            "s.kind IN ('memcpy', 'memset')",
        )
    )


def ops(con: duckdb.DuckDBPyConnection, rank: str) -> None:
    """Fill ``ops``; the forward op of a backward one comes from the flow arrows.

    ``rank``: SQL over ``k_other e`` of ``k_track.rank`` (``Divided.key``).
    """
    con.execute(_BACKWARD.format(rank=rank))
    con.execute(
        "INSERT INTO ops (slice, shapes, dtypes, sequence, backward_of, external_id) "
        "SELECT s.slice, d.text, t.text, CASE WHEN e.seq >= 0 THEN e.seq END, b.forward, e.xid "
        'FROM k_op e JOIN k_slice s USING ("row") LEFT JOIN k_text d ON d.number = e.dims '
        "LEFT JOIN k_text t ON t.number = e.types LEFT JOIN k_backward b ON b.slice = s.slice "
        "WHERE s.kind = 'op' ORDER BY s.slice"
    )


_BACKWARD = """
CREATE TABLE k_backward AS
WITH arrow AS (SELECT l.part, e.flow, e.ph, l.track, e.ts + l.shift AS ts FROM k_other e
               JOIN (SELECT DISTINCT src, part, rank, pid, tid, track, shift FROM k_track
                     WHERE host AND kind = 'op') l
                 ON e.src = l.src AND e.pid = l.pid AND e.tid = l.tid AND (e.rank IS NULL OR l.rank = {rank})
               WHERE e.cat = 'fwdbwd'),
     found AS (SELECT a.part, a.flow, a.ph, arg_min(s.slice, (o.seq IS NULL, s.slice)) AS slice
               FROM arrow a JOIN k_slice s ON s.track = a.track AND s.ts_ns = a.ts AND s.kind = 'op'
               JOIN k_op o USING ("row") GROUP BY ALL)
SELECT b.slice, min(f.slice) AS forward FROM found f JOIN found b ON f.part = b.part AND f.flow = b.flow
WHERE f.ph = 's' AND b.ph = 'f' AND f.slice <> b.slice GROUP BY b.slice
"""

_NCCL_OP = (
    "CASE WHEN regexp_matches(s.name, '(?i)^(nccl|rccl|msccl)') THEN "
    "coalesce(nullif(lower(regexp_extract(s.name, "
    "'(?i)(AllReduce|AllGather|ReduceScatter|Broadcast|SendRecv|AllToAll|Reduce|Send|Recv)', 1)), ''), "
    "'unknown') END"
)
_ELEMENT_BYTES = {
    "8": ("byte", "char", "int8", "uint8", "bool", "float8_e4m3fn", "float8_e5m2"),
    "16": ("half", "bfloat16", "float16", "short", "int16", "c10::half", "c10::bfloat16"),
    "32": ("float", "int", "float32", "int32"),
    "64": ("double", "long", "long int", "int64", "float64"),
}


def collectives(con: duckdb.DuckDBPyConnection) -> None:
    """Fill ``collectives`` from the metadata of kernels and of their host ops; without any, from the name."""
    size = (
        "CASE "
        + " ".join(
            f"WHEN lower(e.dtype) IN ({', '.join(repr(name) for name in names)}) THEN {int(bits) // 8}"
            for bits, names in _ELEMENT_BYTES.items()
        )
        + " END"
    )
    columns = (
        f"coalesce(nullif(ltrim(e.coll, '_'), ''), {_NCCL_OP}, 'unknown'), nullif(e.dtype, ''), e.in_nelems, "
        "e.out_nelems, nullif(e.pg, ''), TRY_CAST(e.group_size AS INTEGER), "
        f"TRY_CAST(greatest(e.in_nelems, e.out_nelems)::HUGEINT * {size} AS BIGINT)"
    )
    con.execute(
        "INSERT INTO collectives "
        '(slice, op, dtype, in_elements, out_elements, "group", group_size, bytes) '
        f'SELECT s.slice, {columns} FROM k_slice s LEFT JOIN k_coll e USING ("row") '
        "WHERE (s.kind IN ('op', 'kernel') AND e.coll IS NOT NULL) "
        f"OR (s.kind = 'kernel' AND {_NCCL_OP} IS NOT NULL) ORDER BY s.kind, s.slice"
    )


def counters(writer: TraceWriter, rank: str) -> None:
    """Fill ``counters`` with the allocator's samples of ``k_memory``, on the tracks of ``k_counter``.

    ``rank``: SQL over ``k_memory e`` of ``k_counter.rank`` (``Divided.key``).
    """
    samples = (
        ("e.allocated", "memory allocated"),
        ("e.reserved", "memory reserved"),
        ("e.mem_bytes", "memory change"),
    )
    writer.con.execute(
        "INSERT INTO counters "
        + " UNION ALL ".join(
            f"SELECT c.track, e.ts + c.shift, '{name}', CAST({column} AS DOUBLE), 'byte' FROM k_memory e "
            f"JOIN k_counter c ON e.src = c.src AND c.rank = {rank} "
            "AND e.dev_type IS NOT DISTINCT FROM c.dev_type AND e.dev_id IS NOT DISTINCT FROM c.dev_id "
            f"WHERE {column} IS NOT NULL AND abs(e.ts) < {TIME_LIMIT_NS}"
            for column, name in samples
        )
    )
