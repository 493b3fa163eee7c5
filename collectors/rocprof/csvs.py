"""CSV families of rocprofv3, ROCm 6.2 to 7.x, and of ``rocpd convert``: all files given are one run.

The kind of a file is in its header, in any case and any quoting. Files of one process share a folder and what
stands before the last words of their name; the process id is in the API and counter files, else in that
prefix. Copies have no byte count in any version: ``bytes`` is NULL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from profrun.collectors.beside import rank_of
from profrun.collectors.reading import Progress, Source
from profrun.collectors.rocprof.build import build
from profrun.collectors.rocprof.csvfile import Header, header, load, unreadable
from profrun.collectors.rocprof.folder import expand, knows
from profrun.collectors.rocprof.names import direction_sql
from profrun.collectors.rocprof.rocpd_facts import MARKER_CALL
from profrun.collectors.rocprof.staging import Staging
from profrun.errors import InputError
from profrun.traces.writer import TraceWriter

_SIGNS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("kernel", ("kernel_name", "start_timestamp", "end_timestamp", "grid_size_x", "workgroup_size_x")),
    ("counter", ("counter_name", "counter_value", "kernel_name", "dispatch_id", "queue_id")),
    ("api", ("domain", "function", "start_timestamp", "end_timestamp")),
    ("copy", ("direction", "source_agent_id", "destination_agent_id", "start_timestamp")),
    ("allocation", ("operation", "allocation_size", "address", "end_timestamp")),
    ("scratch", ("kind", "operation", "alloc_flags", "start_timestamp")),
    ("agent", ("node_id", "logical_node_id", "agent_type")),
    ("statistics", ("name", "calls", "totaldurationns", "minns")),
    ("pc sampling", ("sample_timestamp", "exec_mask", "instruction")),
)
_SUFFIX = re.compile(r"_(\w+_(trace|info|stats|collection)|counter_collection|pc_sampling\w*)\.csv(\.gz)?$")
GPU_KEY = 1_000_000
"""Added to the number in 'GPU 3': with ``--agent-index type-relative`` it is the ordinal, not a node."""


def kind_of(columns: Header | None) -> str | None:
    """What a file of this header holds, None when it is not rocprofv3's."""
    if columns is None:
        return None
    return next((kind for kind, names in _SIGNS if columns.has(*names)), None)


@dataclass
class _Group:
    """Files of one process."""

    label: str
    files: dict[str, list[tuple[Source, Header]]] = field(default_factory=dict)


class CsvReader:
    """Reads CSV families of rocprofv3."""

    name = "rocprofv3-csv"

    def accepts(self, source: Source) -> bool:
        """Has it the header of one of rocprofv3's tables?"""
        if source.path.is_dir():
            return knows(self, source)
        return kind_of(header(source)) is not None

    def read(self, sources: Sequence[Source], writer: TraceWriter, progress: Progress) -> None:
        """Fill the writer from all files of a run."""
        sources = expand(self, sources)
        staging = Staging(writer)
        groups: dict[str, _Group] = {}
        for source in sources:
            columns = header(source)
            kind = kind_of(columns)
            if columns is None or kind is None:
                continue
            label = str(source.path.parent / _SUFFIX.sub("", source.path.name))
            files = groups.setdefault(label, _Group(label)).files
            files.setdefault(kind, []).append((source, columns))
        if not any(kind in _READ for group in groups.values() for kind in group.files):
            raise InputError(
                f"{sources[0].path.name} holds no records",
                why="it is a table of totals, samples or agents",
                fix="give the *_trace.csv or *_counter_collection.csv files of the run",
            )
        for number, group in enumerate(groups.values()):
            _read_group(staging, group)
            progress(number + 1, len(groups))
        build(staging, self.name)


def _read_group(staging: Staging, group: _Group) -> None:
    for kind, code in (("statistics", "statistics_not_read"), ("pc sampling", "pc_samples_not_read")):
        files = group.files.get(kind, [])
        staging.writer.issue(
            code,
            len(files),
            f"files of {kind} are not part of a trace",
            files[0][0].path.name if files else None,
        )
    kinds = [
        kind for kind in ("api", "kernel", "counter", "copy", "allocation", "scratch") if kind in group.files
    ]
    if not kinds:
        return
    default = _processes(staging, group)
    for source, columns in group.files.get("agent", []):
        _agents(staging, source, columns)
    for kind in kinds:
        for source, columns in group.files[kind]:
            load(staging, source, columns)
            _READ[kind](staging, columns, default, source.path.name)
            staging.con.execute("DROP TABLE csv_raw")
    for table in ("csv_pid", "csv_thread", "csv_agent"):
        staging.con.execute(f"DROP TABLE {table}")


def _processes(staging: Staging, group: _Group) -> int:
    """Register the group's processes; tables csv_pid and csv_thread say which row is whose."""
    con = staging.con
    con.execute("CREATE TEMP TABLE csv_pid (pid BIGINT, proc INTEGER)")
    con.execute("CREATE TEMP TABLE csv_thread (tid BIGINT, proc INTEGER)")
    con.execute("CREATE TEMP TABLE csv_agent (text VARCHAR, agent BIGINT)")
    con.execute("CREATE TEMP TABLE csv_ids (pid BIGINT, tid BIGINT)")
    for kind in ("api", "counter"):
        for source, columns in group.files.get(kind, []):
            load(staging, source, columns)
            con.execute(
                f"INSERT INTO csv_ids SELECT DISTINCT {columns.int('process_id')}, "
                f"{columns.int('thread_id')} FROM csv_raw"
            )
            con.execute("DROP TABLE csv_raw")
    con.execute("DELETE FROM issues WHERE code = 'csv_row_not_read'")  # these files are read again below
    pids = con.execute(
        "SELECT pid, count(*) AS n FROM csv_ids WHERE pid IS NOT NULL GROUP BY pid ORDER BY n DESC, pid"
    ).fetchall()
    prefix = re.search(r"(\d+)$", group.label)
    if not pids:
        pids = [(int(prefix.group(1)) if prefix and len(prefix.group(1)) < 11 else 0, 0)]
        if not prefix:
            staging.writer.issue(
                "pid_unknown",
                1,
                "no file says the process id: it stands as 0",
                group.label.rpartition("/")[2],
            )
    default = -1
    for pid, _ in pids:
        proc = staging.process(pid, rank=rank_of(Path(group.label)))
        default = proc if default < 0 else default
        con.execute("INSERT INTO csv_pid VALUES (?, ?)", [pid, proc])
    con.execute(
        "INSERT INTO csv_thread SELECT tid, min(proc) FROM csv_ids JOIN csv_pid USING (pid) "
        "WHERE tid > 0 GROUP BY tid"
    )
    con.execute("DROP TABLE csv_ids")
    return default


def _agents(staging: Staging, source: Source, columns: Header) -> None:
    """Agents by both names a record may have: 'Agent <logical node>' (7.x) and '<node>' (6.x)."""
    load(staging, source, columns)
    c, con = columns, staging.con
    rows = con.execute(
        f"SELECT {c.int('node_id')} AS node, {c.int('logical_node_id')} AS logical, {c.text('agent_type')} "
        f"AS kind, "
        f"{c.int('logical_node_type_id')} AS ordinal, {c.text('name')} AS arch, {c.text('product_name')} AS "
        f"product, "
        f"{c.int('cu_count')} AS cu, {c.int('wave_front_size')} AS wave, {c.int('max_waves_per_simd')} AS "
        f"waves, {c.int('simd_per_cu')} AS simds, {c.int('lds_size_in_kb')} AS lds FROM csv_raw ORDER BY node"
    ).fetchall()
    con.execute("DROP TABLE csv_raw")
    procs = [proc for (proc,) in con.execute("SELECT proc FROM csv_pid").fetchall()]
    gpus = 0
    for node, logical, kind, ordinal, arch, product, cu, wave, waves, simds, lds in rows:
        if node is None or logical is None:
            continue
        gpu = str(kind).upper() in ("GPU", "2")
        place = (ordinal if ordinal is not None else gpus) if gpu else None
        gpus += gpu
        con.execute(
            "INSERT INTO csv_agent VALUES (?, ?), (?, ?)", [f"Agent {logical}", node, str(node), node]
        )
        if gpu:
            con.execute("INSERT INTO csv_agent VALUES (?, ?)", [f"GPU {place}", node])
        threads = waves * simds * wave if waves and simds and wave else None
        for proc in procs:
            staging.agent(
                proc,
                node,
                gpu,
                place,
                arch=arch,
                name=product or arch,
                cu=cu or None,
                wave=wave or None,
                threads=threads,
                lds=lds * 1024 if lds else None,
            )


def _agent(columns: Header, name: str) -> str:
    """SQL for an agent's key: by the agent table, else the number in it."""
    text = columns.text(name)
    number = f"try_cast(nullif(regexp_extract({text}, '(\\d+)$', 1), '') AS BIGINT)"
    return (
        f"coalesce((SELECT min(a.agent) FROM csv_agent a WHERE a.text = {text}), "
        f"{number} + CASE WHEN starts_with(upper({text}), 'GPU') THEN {GPU_KEY} ELSE 0 END)"
    )


def _times(staging: Staging, c: Header, name: str) -> None:
    unreadable(staging, [c.int("start_timestamp"), c.int("end_timestamp")], name)


def _relative_agents(staging: Staging, default: int) -> None:
    """'GPU 3' says the ordinal itself."""
    staging.con.execute(
        "INSERT INTO amd_agent (proc, agent, gpu, ordinal) SELECT DISTINCT proc, agent, true, "
        f"(agent - {GPU_KEY})::INTEGER FROM amd_gpu g WHERE agent BETWEEN {GPU_KEY} AND {2 * GPU_KEY} AND "
        f"NOT EXISTS (FROM amd_agent a WHERE a.proc = g.proc AND a.agent = g.agent)"
    )


def _kernel(staging: Staging, c: Header, default: int, name: str) -> None:
    _times(staging, c, name)
    sizes = ", ".join(
        f"{c.int(f'{what}_size_{axis}')} AS {short}{axis}"
        for what, short in (("grid", "g"), ("workgroup", "w"))
        for axis in "xyz"
    )
    staging.insert(
        "amd_gpu",
        f"SELECT coalesce(t.proc, {default}) AS proc, 'kernel' AS what, "
        f"{_agent(c, 'agent_id')} AS agent, {c.int('queue_id')} AS queue, {c.int('stream_id')} AS stream, "
        f"{c.text('kernel_name')} AS name, {c.int('start_timestamp')} AS start, {c.int('end_timestamp')} AS "
        f"stop, "
        f"{c.int('correlation_id')} AS corr, {c.int('dispatch_id')} AS dispatch, 'items' AS unit, {sizes}, "
        f"{c.int('vgpr_count', 'arch_vgpr_count')} AS vgpr, {c.int('accum_vgpr_count')} AS accum, "
        f"{c.int('lds_block_size', 'group_segment_size')} AS lds_total, "
        f"{c.int('scratch_size', 'private_segment_size')} AS scratch, {c.int('graph_exec_id')} AS graph, "
        f"{c.int('graph_node_id')} AS graph_node "
        f"FROM csv_raw r LEFT JOIN csv_thread t ON t.tid = {c.int('thread_id')}",
        "r.rowid",
    )
    _relative_agents(staging, default)


def _counter(staging: Staging, c: Header, default: int, name: str) -> None:
    """One row per dispatch and counter: metrics, and the kernels where no kernel trace has them."""
    con = staging.con
    unreadable(staging, [c.int("dispatch_id"), f"try_cast({c.text('counter_value')} AS DOUBLE)"], name)
    proc = f"coalesce((SELECT p.proc FROM csv_pid p WHERE p.pid = {c.int('process_id')}), {default})"
    con.execute(
        f"INSERT INTO amd_metric BY NAME SELECT {proc} AS proc, {c.int('dispatch_id')} AS dispatch, "
        f"{c.text('counter_name')} AS name, try_cast({c.text('counter_value')} AS DOUBLE) AS value, '1' AS "
        f"unit FROM csv_raw"
    )
    untimed = not c.has("start_timestamp", "end_timestamp")
    order = f"row_number() OVER (ORDER BY {c.int('dispatch_id')}) - 1"
    start = order if untimed else c.int("start_timestamp")
    stop = order if untimed else c.int("end_timestamp")
    con.execute(
        f"CREATE TEMP TABLE csv_new AS SELECT {proc} AS proc, 'kernel' AS what, {_agent(c, 'agent_id')} AS "
        f"agent, "
        f"{c.int('queue_id')} AS queue, {c.text('kernel_name')} AS name, {start} AS start, {stop} AS stop, "
        f"{c.int('correlation_id')} AS corr, {c.int('dispatch_id')} AS dispatch, 'product' AS unit, "
        f"{c.int('grid_size')} AS gx, {c.int('workgroup_size')} AS wx, {c.int('vgpr_count')} AS vgpr, "
        f"{c.int('accum_vgpr_count')} AS accum, {c.int('lds_block_size')} AS lds_total, "
        f"{c.int('scratch_size')} AS scratch "
        f"FROM csv_raw QUALIFY row_number() OVER (PARTITION BY {c.int('process_id')}, {c.int('dispatch_id')} "
        f"ORDER BY {c.int('start_timestamp')}) = 1"
    )
    staging.insert(
        "amd_gpu",
        "SELECT * FROM csv_new n WHERE NOT EXISTS (FROM amd_gpu g "
        "WHERE g.proc = n.proc AND g.dispatch = n.dispatch)",
        "n.proc, n.dispatch, n.start",
    )
    if untimed:
        found = con.execute("SELECT count(*), any_value(name) FROM csv_new").fetchone()
        if found:
            staging.writer.issue(
                "no_timeline",
                found[0],
                "kernels without times stand in dispatch order, without durations",
                found[1],
            )
    con.execute("DROP TABLE csv_new")
    staging.writer.meta["replayed"] = True
    _relative_agents(staging, default)


def _api(staging: Staging, c: Header, default: int, name: str) -> None:
    _times(staging, c, name)
    marker = (
        f"(starts_with(upper({c.text('domain')}), 'MARKER') "
        f"AND NOT regexp_matches(coalesce({c.text('function')}, ''), '{MARKER_CALL}'))"
    )
    staging.insert(
        "amd_host",
        f"SELECT coalesce(p.proc, {default}) AS proc, {c.int('thread_id')} AS tid, "
        f"CASE WHEN {marker} THEN 'range' ELSE 'api' END AS kind, {c.text('function')} AS name, "
        f"{c.int('start_timestamp')} AS start, {c.int('end_timestamp')} AS stop, {c.int('correlation_id')} "
        f"AS corr, "
        f"CASE WHEN starts_with({c.text('domain')}, 'HIP') THEN 0 WHEN starts_with({c.text('domain')}, "
        f"'HSA') THEN 1 "
        f"ELSE 2 END AS prio FROM csv_raw r LEFT JOIN csv_pid p ON p.pid = {c.int('process_id')}",
        "r.rowid",
    )


def _copy(staging: Staging, c: Header, default: int, name: str) -> None:
    _times(staging, c, name)
    way = direction_sql(c.text("direction"))
    staging.insert(
        "amd_gpu",
        f"SELECT {default} AS proc, CASE {way} WHEN 'memset' THEN 'memset' ELSE 'memcpy' END "
        f"AS what, {c.text('direction')} AS name, {way} AS direction, {_agent(c, 'source_agent_id')} AS src, "
        f"{_agent(c, 'destination_agent_id')} AS dst, {c.int('stream_id')} AS stream, "
        f"{c.int('correlation_id')} AS corr, {c.int('start_timestamp')} AS start, {c.int('end_timestamp')} "
        f"AS stop FROM csv_raw",
    )


def _allocation(staging: Staging, c: Header, default: int, name: str) -> None:
    unreadable(staging, [c.int("end_timestamp")], name)
    staging.con.execute(
        f"INSERT INTO amd_alloc BY NAME SELECT {default} AS proc, {_agent(c, 'agent_id')} AS agent, "
        f"CASE WHEN contains(upper({c.text('operation')}), 'FREE') THEN 'free' ELSE 'alloc' END AS op, "
        f"try_cast({c.text('address')} AS BIGINT) AS address, {c.int('allocation_size')} AS bytes, "
        f"{c.int('end_timestamp')} AS stop FROM csv_raw"
    )


def _scratch(staging: Staging, c: Header, default: int, name: str) -> None:
    _times(staging, c, name)
    staging.insert(
        "amd_overhead",
        f"SELECT {default} AS proc, lower(replace({c.text('operation')}, '_', ' ')) AS name, "
        f"{c.int('start_timestamp')} AS start, {c.int('end_timestamp')} AS stop FROM csv_raw",
    )


_READ = {
    "api": _api,
    "kernel": _kernel,
    "counter": _counter,
    "copy": _copy,
    "allocation": _allocation,
    "scratch": _scratch,
}
