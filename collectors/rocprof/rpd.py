"""RPD (rocmProfileData, schema 2): the older databases whose tables also begin with rocpd_.

``rocpd_api`` holds host calls, ``rocpd_op`` GPU work, ``rocpd_api_ops`` which call caused which work. Launch
sizes are what the HIP call was given: blocks, but work-items for hipExtModuleLaunchKernel and
hipHccModuleLaunchKernel. ``gpuId`` counts CPU agents first; the monitor's ``deviceId`` does not.
"""

from __future__ import annotations

from collections.abc import Sequence

from profrun.collectors.reading import Progress, Source
from profrun.collectors.rocprof.build import build
from profrun.collectors.rocprof.folder import expand, knows
from profrun.collectors.rocprof.names import direction_sql
from profrun.collectors.rocprof.sqlite import Database
from profrun.collectors.rocprof.staging import Staging
from profrun.errors import InputError
from profrun.traces.writer import TraceWriter

SCHEMA = "2"
_ITEMS = ("hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel")
_TABLES: dict[str, dict[str, str]] = {
    "rocpd_string": {"id": "BIGINT", "string": "VARCHAR"},
    "rocpd_api": dict.fromkeys(("id", "pid", "tid", "start", "end", "apiName_id", "args_id"), "BIGINT"),
    "rocpd_op": dict.fromkeys(
        ("id", "gpuId", "queueId", "start", "end", "description_id", "opType_id"), "BIGINT"
    ),
    "rocpd_api_ops": {"api_id": "BIGINT", "op_id": "BIGINT"},
    "rocpd_kernelapi": {
        "api_ptr_id": "BIGINT",
        "stream": "VARCHAR",
        **dict.fromkeys(
            ("gridX", "gridY", "gridZ", "workgroupX", "workgroupY", "workgroupZ", "groupSegmentSize"),
            "BIGINT",
        ),
        "privateSegmentSize": "BIGINT",
        "kernelName_id": "BIGINT",
    },
    "rocpd_copyapi": {"api_ptr_id": "BIGINT", "stream": "VARCHAR", "size": "BIGINT"},
    "rocpd_monitor": {
        "deviceType": "VARCHAR",
        "deviceId": "BIGINT",
        "monitorType": "VARCHAR",
        "start": "BIGINT",
        "value": "VARCHAR",
    },
}


class RpdReader:
    """Reads RPD databases."""

    name = "rpd"

    def accepts(self, source: Source) -> bool:
        """Has it RPD's tables?"""
        if source.path.is_dir():
            return knows(self, source)
        return {"rocpd_api", "rocpd_op", "rocpd_string"} <= source.sqlite_tables

    def read(self, sources: Sequence[Source], writer: TraceWriter, progress: Progress) -> None:
        """Fill the writer from all databases of a run."""
        sources = expand(self, sources)
        staging = Staging(writer)
        for number, source in enumerate(sources):
            with Database(source.path) as database:
                _check_version(database)
                _read(staging, database)
            progress(number + 1, len(sources))
        build(staging, self.name, clock="monotonic")


def _check_version(database: Database) -> None:
    rows: list[tuple[object, ...]] = []
    if {"tag", "value"} <= database.columns("rocpd_metadata"):
        rows = database.rows("SELECT value FROM rocpd_metadata WHERE tag = 'schema_version'")
    if rows and str(rows[0][0]) != SCHEMA:
        raise InputError(
            f"{database.path.name} has RPD schema {rows[0][0]}, this profrun reads {SCHEMA}",
            fix="record again with a rocmProfileData that writes schema 2",
        )


def _read(staging: Staging, database: Database) -> None:
    con = staging.con
    for table, types in _TABLES.items():
        known = database.columns(table)
        columns = ", ".join(f'"{name}"' if name in known else f'NULL AS "{name}"' for name in types)
        rows = f'FROM "{table}"' if known else "WHERE 0"
        database.copy(f"SELECT {columns} {rows}", con, table.replace("rocpd_", "rpd_"), types)
    pids = [pid for (pid,) in con.execute("SELECT DISTINCT pid FROM rpd_api ORDER BY pid").fetchall()]
    con.execute("CREATE TEMP TABLE rpd_pid (pid BIGINT, proc INTEGER)")
    procs = [(pid, staging.process(pid if pid is not None else 0)) for pid in pids or [0]]
    con.executemany("INSERT INTO rpd_pid VALUES (?, ?)", procs)
    _host(staging)
    _gpu(staging, procs[0][1])
    con.execute(
        f"INSERT INTO amd_counter BY NAME SELECT {procs[0][1]} AS proc, start AS ts, "
        "monitorType || ' ' || upper(deviceType) || ' ' || deviceId AS name, try_cast(value AS DOUBLE) AS "
        "value, "
        "CASE monitorType WHEN 'sclk' THEN 'MHz' WHEN 'mclk' THEN 'MHz' WHEN 'power' THEN 'W' ELSE '1' END "
        "AS unit FROM rpd_monitor"
    )
    for table in ("rpd_pid", *(name.replace("rocpd_", "rpd_") for name in _TABLES)):
        con.execute(f"DROP TABLE {table}")


def _host(staging: Staging) -> None:
    staging.insert(
        "amd_host",
        "SELECT p.proc, a.tid, CASE WHEN n.string = 'UserMarker' THEN 'range' ELSE 'api' END AS kind, "
        "CASE WHEN n.string = 'UserMarker' THEN t.string ELSE n.string END AS name, "
        'a.start, a."end" AS stop, a.id AS corr, 0 AS prio FROM rpd_api a '
        "LEFT JOIN rpd_pid p ON p.pid IS NOT DISTINCT FROM a.pid "
        "LEFT JOIN rpd_string n ON n.id = a.apiName_id LEFT JOIN rpd_string t ON t.id = a.args_id",
        "a.rowid",
    )


def _gpu(staging: Staging, default: int) -> None:
    items = ", ".join(f"'{name}'" for name in _ITEMS)
    way = direction_sql("y.string")
    copies = f"{way} <> 'unknown' OR y.string LIKE 'Copy%'"
    what = f"CASE WHEN {way} = 'memset' THEN 'memset' WHEN {copies} THEN 'memcpy' ELSE 'kernel' END"
    staging.insert(
        "amd_gpu",
        f"SELECT coalesce(p.proc, {default}) AS proc, {what} AS what, o.gpuId AS agent, "
        "o.queueId AS queue, try_cast(coalesce(k.stream, c.stream) AS BIGINT) AS stream, "
        f"CASE {what} WHEN 'kernel' THEN coalesce(nullif(d.string, ''), kn.string, y.string) ELSE y.string "
        f"END AS name, "
        f'o.start, o."end" AS stop, l.api_id AS corr, {way} AS direction, '
        "CASE WHEN l.ops = 1 THEN c.size END AS bytes, "
        f"CASE WHEN n.string IN ({items}) THEN 'items' ELSE 'blocks' END AS unit, k.gridX AS gx, k.gridY AS "
        f"gy, k.gridZ AS gz, k.workgroupX AS wx, k.workgroupY AS wy, k.workgroupZ AS wz, "
        "k.groupSegmentSize AS lds_total, k.privateSegmentSize AS scratch "
        "FROM rpd_op o LEFT JOIN (SELECT op_id, min(api_id) AS api_id, any_value(ops) AS ops FROM "
        "(SELECT *, count(*) OVER (PARTITION BY api_id) AS ops FROM rpd_api_ops) GROUP BY op_id) l ON "
        "l.op_id = o.id "
        "LEFT JOIN rpd_api a ON a.id = l.api_id LEFT JOIN rpd_pid p ON p.pid IS NOT DISTINCT FROM a.pid "
        "LEFT JOIN rpd_kernelapi k ON k.api_ptr_id = l.api_id LEFT JOIN rpd_copyapi c ON c.api_ptr_id = "
        "l.api_id "
        "LEFT JOIN rpd_string y ON y.id = o.opType_id LEFT JOIN rpd_string d ON d.id = o.description_id "
        "LEFT JOIN rpd_string n ON n.id = a.apiName_id LEFT JOIN rpd_string kn ON kn.id = k.kernelName_id",
        "o.rowid",
    )
