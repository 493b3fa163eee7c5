"""The large tables of a rocpd database, straight from SQLite into the staging tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import duckdb

from profrun.collectors.rocprof.names import direction_sql
from profrun.collectors.rocprof.sqlite import Database
from profrun.collectors.rocprof.staging import Staging

MARKER_CALL = r"^roctx[A-Z]\w*$"
"""A marker row that bears the name of a ROCTX function and no text of the user."""


_LOADERS = 2  # SQLite is read on one thread a table; the engine's own threads take the rows
_TEXTS = ("string", "display_name", "kernel_name", "type", "level", "message")


def _types(columns: Iterable[str]) -> dict[str, str]:
    return {
        name: "VARCHAR" if name in _TEXTS else "DOUBLE" if name == "value" else "BIGINT" for name in columns
    }


@dataclass(frozen=True)
class Part:
    """One process's set of tables.

    Attributes:
        database: where they are.
        guid: the process's guid.
        suffix: what follows the plain name, '' when rows are told apart by their guid column.
    """

    database: Database
    guid: str
    suffix: str

    def columns(self, table: str) -> frozenset[str]:
        """Columns of a table given by its plain name, empty when it is not there."""
        return self.database.columns(table + self.suffix)

    def column(self, table: str, column: str, alias: str = "") -> str:
        """SQL for a column or NULL, named as the column."""
        there = column in self.columns(table)
        return f'{alias}"{column}"' if there else f'NULL AS "{column}"'

    def relation(self, table: str) -> str:
        """SQL for the rows of this process in a table."""
        if self.suffix:
            return f'"{table}{self.suffix}"'
        guid = self.guid.replace("'", "''")
        return f"(SELECT * FROM \"{table}\" WHERE guid = '{guid}')"

    def select(self, table: str, columns: tuple[str, ...], event: bool = True) -> str:
        """SELECT of columns that may be missing, with the event's category and correlation id (stack_id)."""
        parts = [self.column(table, name, "F.") for name in columns]
        if not event or "event_id" not in self.columns(table) or not self.columns("rocpd_event"):
            parts += ["NULL AS stack_id", "NULL AS category_id"]
            return f"SELECT {', '.join(parts)} FROM {self.relation(table)} F"
        parts += [self.column("rocpd_event", name, "E.") for name in ("stack_id", "category_id")]
        return (
            f"SELECT {', '.join(parts)} FROM {self.relation(table)} F "
            f"LEFT JOIN {self.relation('rocpd_event')} E ON E.id = F.event_id"
        )


def read(staging: Staging, part: Part, processes: Mapping[int, int]) -> None:
    """Stage everything but processes and agents. ``processes``: id of rocpd_info_process -> staged number."""
    con = staging.con
    con.execute("CREATE TEMP TABLE rocpd_map (id BIGINT, proc INTEGER)")
    con.executemany("INSERT INTO rocpd_map VALUES (?, ?)", list(processes.items()))
    _dimension(staging, part, "rocpd_string", ("id", "string"), "id BIGINT, string VARCHAR")
    _names(staging, "rocpd_string", "string")
    _dimension(staging, part, "rocpd_info_thread", ("id", "tid"), "id BIGINT, tid BIGINT")
    _dimension(
        staging,
        part,
        "rocpd_info_kernel_symbol",
        ("id", "display_name", "kernel_name", "group_segment_size", "arch_vgpr_count", "accum_vgpr_count"),
        "id BIGINT, display_name VARCHAR, kernel_name VARCHAR, group_segment_size BIGINT, arch_vgpr_count "
        "BIGINT, accum_vgpr_count BIGINT",
    )
    _names(staging, "rocpd_info_kernel_symbol", "coalesce(nullif(display_name, ''), kernel_name)")
    default = next(iter(processes.values()))
    _fetch_large(staging, part)
    _kernels(staging, part, default)
    _copies(staging, part, default)
    _regions(staging, part, default)
    _samples(staging, part, default)
    _allocations(staging, part, default)
    _counters(staging, part, default)
    for table in ("rocpd_map", "rocpd_string", "rocpd_info_thread", "rocpd_info_kernel_symbol"):
        con.execute(f"DROP TABLE {table}")


def _names(staging: Staging, table: str, column: str) -> None:
    """Make a dimension's texts known as names; its new column ``key`` holds their ids."""
    first = staging.name_ids(f"SELECT count(*) FROM {table}")
    staging.con.execute(f"ALTER TABLE {table} ADD COLUMN key BIGINT")
    staging.con.execute(f"UPDATE {table} SET key = {first} + rowid")
    staging.con.execute(f"INSERT INTO amd_name SELECT key, {column} FROM {table}")


def _dimension(staging: Staging, part: Part, table: str, columns: tuple[str, ...], ddl: str) -> None:
    staging.con.execute(f"CREATE TEMP TABLE {table} ({ddl})")
    if "id" in part.columns(table):
        select = ", ".join(part.column(table, name) for name in columns)
        query = f"SELECT {select} FROM {part.relation(table)}"
        part.database.copy(query, staging.con, "rocpd_raw", _types(columns))
        staging.con.execute(f"INSERT INTO {table} SELECT * FROM rocpd_raw")
        staging.con.execute("DROP TABLE rocpd_raw")


def _raw(
    staging: Staging, part: Part, table: str, columns: tuple[str, ...], target: str, insert: str
) -> None:
    """Copy a fact table as rocpd_raw and run ``INSERT INTO target BY NAME`` with ``insert`` over it."""
    if not {"start", "end"} <= part.columns(table) and "timestamp" not in part.columns(table):
        return
    if table in _LARGE:
        staging.con.execute(f"ALTER TABLE raw_{table} RENAME TO rocpd_raw")
    else:
        _fetch(staging.con, part, table, columns)
    try:  # joins do not keep an order, and ids are numbers of rows
        staging.con.execute(f"INSERT INTO {target} BY NAME {insert} ORDER BY r.rowid")
    finally:
        staging.con.execute("DROP TABLE rocpd_raw")


def _fetch(
    con: duckdb.DuckDBPyConnection, part: Part, table: str, columns: tuple[str, ...], into: str = "rocpd_raw"
) -> None:
    types = _types((*columns, "stack_id", "category_id"))
    part.database.copy(part.select(table, columns), con, into, types)


_SIZES = tuple(f"{what}_size_{axis}" for what in ("grid", "workgroup") for axis in "xyz")
_LARGE = {
    "rocpd_kernel_dispatch": (
        *("pid", "agent_id", "queue_id", "stream_id", "kernel_id", "dispatch_id", "start", "end", *_SIZES),
        *("group_segment_size", "private_segment_size", "graph_exec_id", "graph_node_id"),
    ),
    "rocpd_region": ("pid", "tid", "start", "end", "name_id", "event_id"),
}
"""Tables that hold nearly all rows, and what is read of them."""


def _fetch_large(staging: Staging, part: Part) -> None:
    """Copy the large tables and the ROCTX texts side by side, as raw_ and their name."""

    def fetch(table: str) -> None:
        with staging.con.cursor() as con:
            if table in _LARGE:
                _fetch(con, part, table, _LARGE[table], f"raw_{table}")
            else:
                _fetch_messages(con, part)

    there = [table for table in _LARGE if {"start", "end"} <= part.columns(table)]
    with ThreadPoolExecutor(_LOADERS) as pool:
        list(pool.map(fetch, [*there, "rocpd_event"]))


def _from(default: int) -> tuple[str, str]:
    """SQL for the process number, and the joins every fact needs."""
    return f"coalesce(m.proc, {default}) AS proc", "LEFT JOIN rocpd_map m ON m.id = r.pid"


def _kernels(staging: Staging, part: Part, default: int) -> None:
    proc, join = _from(default)
    _raw(
        staging,
        part,
        "rocpd_kernel_dispatch",
        _LARGE["rocpd_kernel_dispatch"],
        "amd_gpu",
        f"SELECT {proc}, 'kernel' AS what, r.agent_id AS agent, queue_id AS queue, stream_id AS stream, "
        's.key AS name, start, "end" AS stop, stack_id AS '
        "corr, "
        "dispatch_id AS dispatch, 'items' AS unit, grid_size_x AS gx, grid_size_y AS gy, grid_size_z AS gz, "
        "workgroup_size_x AS wx, workgroup_size_y AS wy, workgroup_size_z AS wz, s.arch_vgpr_count AS vgpr, "
        "s.accum_vgpr_count AS accum, s.group_segment_size AS lds_static, r.group_segment_size AS lds_total, "
        "private_segment_size AS scratch, graph_exec_id AS graph, graph_node_id AS graph_node "
        f"FROM rocpd_raw r {join} LEFT JOIN rocpd_info_kernel_symbol s ON s.id = r.kernel_id",
    )


def _copies(staging: Staging, part: Part, default: int) -> None:
    proc, join = _from(default)
    columns = (
        "pid",
        "start",
        "end",
        "name_id",
        "src_agent_id",
        "dst_agent_id",
        "size",
        "queue_id",
        "stream_id",
    )
    way = direction_sql("n.string")
    _raw(
        staging,
        part,
        "rocpd_memory_copy",
        columns,
        "amd_gpu",
        f"SELECT {proc}, CASE {way} WHEN 'memset' THEN 'memset' ELSE 'memcpy' END AS what, {way} AS "
        f"direction, "
        'n.key AS name, start, "end" AS stop, stack_id AS corr, size AS bytes, src_agent_id AS src, '
        "dst_agent_id AS dst, queue_id AS queue, stream_id AS stream "
        f"FROM rocpd_raw r {join} LEFT JOIN rocpd_string n ON n.id = r.name_id",
    )


def _regions(staging: Staging, part: Part, default: int) -> None:
    proc, join = _from(default)
    _messages(staging, part)
    text = "coalesce(nullif(t.message, ''), n.string)"
    marker = (
        f"(starts_with(coalesce(c.string, ''), 'MARKER') AND NOT regexp_matches({text}, '{MARKER_CALL}'))"
    )
    _raw(
        staging,
        part,
        "rocpd_region",
        _LARGE["rocpd_region"],
        "amd_host",
        f"SELECT {proc}, coalesce(h.tid, r.tid) AS tid, CASE WHEN {marker} THEN 'range' ELSE 'api' END AS "
        f"kind, "
        f'CASE WHEN {marker} THEN coalesce(t.key, n.key) ELSE n.key END AS name, start, "end" AS stop, '
        f"stack_id AS corr, "
        "CASE WHEN starts_with(c.string, 'HIP') THEN 0 WHEN starts_with(c.string, 'HSA') THEN 1 ELSE 2 END "
        f"AS prio FROM rocpd_raw r {join} LEFT JOIN rocpd_info_thread h ON h.id = r.tid "
        "LEFT JOIN rocpd_string n ON n.id = r.name_id LEFT JOIN rocpd_string c ON c.id = r.category_id "
        "LEFT JOIN rocpd_message t ON t.event_id = r.event_id",
    )


def _messages(staging: Staging, part: Part) -> None:
    """ROCTX texts: the key 'message' of an event's extdata."""
    staging.con.execute(
        "CREATE OR REPLACE TEMP TABLE rocpd_message (event_id BIGINT, message VARCHAR, key BIGINT)"
    )
    if {"id", "extdata"} <= part.columns("rocpd_event"):
        staging.con.execute("INSERT INTO rocpd_message SELECT id, message, NULL FROM raw_rocpd_event")
        staging.con.execute("ALTER TABLE rocpd_message DROP COLUMN key")
        _names(staging, "rocpd_message", "message")
        staging.con.execute("DROP TABLE raw_rocpd_event")


def _fetch_messages(con: duckdb.DuckDBPyConnection, part: Part) -> None:
    if not {"id", "extdata"} <= part.columns("rocpd_event"):
        return
    part.database.copy(
        "SELECT id, CAST(json_extract(extdata, '$.message') AS TEXT) AS message FROM "
        f"{part.relation('rocpd_event')} WHERE extdata IS NOT NULL AND extdata <> '{{}}' AND "
        f"json_valid(extdata) AND json_extract(extdata, '$.message') <> ''",
        con,
        "raw_rocpd_event",
        _types(("id", "message")),
    )


def _samples(staging: Staging, part: Part, default: int) -> None:
    """Instants on a track: ROCTX marks become ranges of no duration, others are counted."""
    if not part.columns("rocpd_track") or "timestamp" not in part.columns("rocpd_sample"):
        return
    query = part.select("rocpd_sample", ("track_id", "timestamp", "event_id"))
    track = ", ".join(part.column("rocpd_track", name) for name in ("id", "pid", "tid", "name_id"))
    part.database.copy(
        f"SELECT S.timestamp, S.event_id, S.stack_id, S.category_id, T.pid, T.tid, T.name_id FROM ({query}) "
        f"S LEFT JOIN (SELECT {track} FROM {part.relation('rocpd_track')}) T ON T.id = S.track_id",
        staging.con,
        "rocpd_raw",
        _types(("timestamp", "event_id", "stack_id", "category_id", "pid", "tid", "name_id")),
    )
    proc, join = _from(default)
    staging.con.execute(
        f"INSERT INTO amd_host BY NAME SELECT {proc}, coalesce(h.tid, r.tid) AS tid, 'range' AS kind, "
        "coalesce(t.key, n.key) AS name, timestamp AS start, timestamp AS stop, "
        f"stack_id AS corr, 9 AS prio FROM rocpd_raw r {join} LEFT JOIN rocpd_info_thread h ON h.id = r.tid "
        "LEFT JOIN rocpd_string n ON n.id = r.name_id LEFT JOIN rocpd_string c ON c.id = r.category_id "
        "LEFT JOIN rocpd_message t ON t.event_id = r.event_id WHERE starts_with(c.string, 'MARKER')"
    )
    other = staging.con.execute(
        "SELECT count(*), any_value(c.string) FROM rocpd_raw r LEFT JOIN rocpd_string c ON c.id = "
        "r.category_id WHERE NOT starts_with(coalesce(c.string, ''), 'MARKER')"
    ).fetchone()
    if other:
        staging.writer.issue("samples_not_read", other[0], "samples that are not ROCTX marks", other[1])
    staging.con.execute("DROP TABLE rocpd_raw")


def _allocations(staging: Staging, part: Part, default: int) -> None:
    proc, join = _from(default)
    columns = ("pid", "type", "level", "agent_id", "address", "size", "start", "end")
    if not {"type", "start", "end"} <= part.columns("rocpd_memory_allocate"):
        return
    _fetch(staging.con, part, "rocpd_memory_allocate", columns)
    staging.con.execute(
        f'INSERT INTO amd_alloc BY NAME SELECT {proc}, agent_id AS agent, address, size AS bytes, "end" AS '
        f"stop, CASE WHEN type = 'FREE' THEN 'free' ELSE 'alloc' END AS op "
        f"FROM rocpd_raw r {join} WHERE coalesce(level, 'REAL') = 'REAL' AND type IN ('ALLOC', 'FREE')"
    )
    staging.insert(
        "amd_overhead",
        f"SELECT {proc}, 'scratch memory ' || lower(type) AS name, start, "
        f"\"end\" AS stop FROM rocpd_raw r {join} WHERE level = 'SCRATCH'",
    )
    rest = staging.con.execute(
        "SELECT count(*), any_value(type || ' ' || level) FROM rocpd_raw WHERE NOT (level = 'SCRATCH' OR "
        "(coalesce(level, 'REAL') = 'REAL' AND type IN ('ALLOC', 'FREE')))"
    ).fetchone()
    if rest:
        staging.writer.issue("allocations_not_read", rest[0], "virtual and moved allocations", rest[1])
    staging.con.execute("DROP TABLE rocpd_raw")


def _counters(staging: Staging, part: Part, default: int) -> None:
    """Counters of a dispatch, summed over instances (shader engines, XCCs) as the tool's own view does."""
    table = "rocpd_pmc_event"
    if not {"event_id", "pmc_id", "value"} <= part.columns(table) or not part.columns(
        "rocpd_kernel_dispatch"
    ):
        return
    of_dispatch = "P.sample_id IS NULL" if "sample_id" in part.columns(table) else "1"
    part.database.copy(
        "SELECT K.pid, K.dispatch_id, P.pmc_id, CAST(sum(P.value) AS REAL) AS value "
        f"FROM {part.relation(table)} P JOIN {part.relation('rocpd_kernel_dispatch')} K ON K.event_id = "
        f"P.event_id WHERE {of_dispatch} GROUP BY 1, 2, 3",
        staging.con,
        "rocpd_raw",
        _types(("pid", "dispatch_id", "pmc_id", "value")),
    )
    names = ", ".join(part.column("rocpd_info_pmc", name) for name in ("id", "name", "units"))
    staging.con.execute("CREATE TEMP TABLE rocpd_pmc (id BIGINT, name VARCHAR, unit VARCHAR)")
    if "id" in part.columns("rocpd_info_pmc"):
        for row in part.database.rows(f"SELECT {names} FROM {part.relation('rocpd_info_pmc')}"):
            staging.con.execute("INSERT INTO rocpd_pmc VALUES (?, ?, ?)", [row[0], row[1], row[2] or None])
    proc, join = _from(default)
    staging.con.execute(
        f"INSERT INTO amd_metric BY NAME SELECT {proc}, dispatch_id AS dispatch, p.name, value, p.unit "
        f"FROM rocpd_raw r {join} LEFT JOIN rocpd_pmc p ON p.id = r.pmc_id"
    )
    if staging.con.execute("SELECT count(*) FROM rocpd_raw").fetchone() != (0,):
        staging.writer.meta["replayed"] = True  # counter collection runs kernels one after another
    staging.con.execute("DROP TABLE rocpd_raw")
    staging.con.execute("DROP TABLE rocpd_pmc")
