"""One row per dispatch, counters as further columns: CSV of rocprof v1 and v2, pmc_perf.csv of
rocprof-compute.

* rocprof v1, ``results.csv``: KernelName, gpu-id, grd, wgr, BeginNs, EndNs, then counters;
* rocprof v2, file plugin: Kernel_Name, GPU_ID, Queue_ID, PID, Grid_Size, Start_Timestamp, then counters;
* rocprof-compute, ``pmc_perf.csv``: over v1 and v2 wide, without or with times; over rocprofv3 one row per
  counter, with times. Of several passes of one dispatch the earliest one's times are taken.

Grids and workgroups are products of three dimensions, so ``kernels`` has no grid; the products are kept as
the metrics Grid_Size and Workgroup_Size. Where a file has no times, kernels stand in dispatch order as
instants.
Counters of one row may come from several runs of the kernel.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from profrun.collectors.reading import Progress, Source
from profrun.collectors.rocprof.build import build
from profrun.collectors.rocprof.csvfile import Header, header, load, rows, unreadable
from profrun.collectors.rocprof.folder import expand, knows
from profrun.collectors.rocprof.staging import Staging
from profrun.errors import InputError
from profrun.traces.writer import TraceWriter

_KNOWN = frozenset(
    (
        *(
            "index",
            "dispatch_id",
            "kernelname",
            "kernel_name",
            "gpu-id",
            "gpu_id",
            "queue-id",
            "queue_id",
            "queue-index",
        ),
        *(
            "pid",
            "tid",
            "grd",
            "grid_size",
            "wgr",
            "workgroup_size",
            "lds",
            "lds_per_workgroup",
            "scr",
            "scratch_per_workitem",
            "vgpr",
        ),
        *("arch_vgpr", "accum_vgpr", "sgpr", "wave_size", "sig", "obj"),
        *(
            "dispatchns",
            "beginns",
            "endns",
            "completens",
            "durationns",
            "start_timestamp",
            "end_timestamp",
            "correlation_id",
            "xcc_index",
        ),
        *("kernel_id", "counter_name", "counter_value"),
    )
)
_AT_ONCE = 64  # more counters than this are turned into rows in Python: DuckDB needs hundreds of MB
_START, _STOP = ("beginns", "start_timestamp"), ("endns", "end_timestamp")


def flavour(columns: Header | None) -> str | None:
    """Value of ``meta.source`` for a header, None when it is no such table."""
    if columns is None:
        return None
    if columns.has("index", "kernelname", "gpu-id"):
        return "rocprofv1-csv"
    if columns.has("kernel_name", "gpu_id", "grid_size", "lds_per_workgroup"):
        return "rocprofv2-csv" if columns.has("queue_id", "pid") else "rocprof-compute"
    return None


def is_statistics(columns: Header | None) -> bool:
    """Is it one of v1's tables of totals (results.stats.csv, results.hip_stats.csv, ...)?"""
    return columns is not None and columns.names == (
        "name",
        "calls",
        "totaldurationns",
        "averagens",
        "percentage",
    )


class WideReader:
    """Reads tables with one row a dispatch."""

    name = "rocprof-csv"

    def accepts(self, source: Source) -> bool:
        """Has it the header of such a table, or of the totals beside one?"""
        if source.path.is_dir():
            return knows(self, source)
        columns = header(source)
        return flavour(columns) is not None or is_statistics(columns)

    def read(self, sources: Sequence[Source], writer: TraceWriter, progress: Progress) -> None:
        """Fill the writer from all files of a run."""
        sources = expand(self, sources)
        staging = Staging(writer)
        found = "rocprof-csv"
        read = 0
        for number, source in enumerate(sources):
            columns = header(source)
            kind = flavour(columns)
            if columns is None or kind is None:
                writer.issue(
                    "statistics_not_read", 1, "tables of totals are not part of a trace", source.path.name
                )
                continue
            _read(staging, source, columns, kind)
            found = kind
            read += 1
            progress(number + 1, len(sources))
        if not read:
            raise InputError(
                f"{sources[0].path.name} holds only totals",
                why="rocprof writes the records themselves to results.csv, results.json and results.db",
                fix="give one of those",
            )
        build(staging, found)


def counters(columns: Header) -> list[str]:
    """Columns that hold counters: not the known ones, nor their copies from other passes (Wave_Size_1)."""
    return [
        name
        for name in columns.names
        if name not in _KNOWN and re.sub(r"[_.]\d+$", "", name) not in _KNOWN and name != "column"
    ]


def _pids(staging: Staging, c: Header, name: str) -> dict[int, int]:
    """Register the processes of csv_raw: pid -> staged number, also as table csv_pid."""
    con = staging.con
    if not c.has("pid"):
        staging.writer.issue("pid_unknown", 1, "no file says the process id: it stands as 0", name)
    pids = con.execute(
        f"SELECT DISTINCT coalesce({c.int('pid')}, 0) AS pid FROM csv_raw ORDER BY pid"
    ).fetchall()
    procs = {pid: staging.process(pid) for (pid,) in pids}
    con.execute("CREATE TEMP TABLE csv_pid (csv_key BIGINT, proc INTEGER)")
    if procs:
        con.executemany("INSERT INTO csv_pid VALUES (?, ?)", list(procs.items()))
    return procs


def _read(staging: Staging, source: Source, columns: Header, kind: str) -> None:
    con, c = staging.con, columns
    names = [] if c.has("counter_name", "counter_value") else counters(c)
    many = len(names) > _AT_ONCE
    load(staging, source, columns, only=[name for name in c.names if name not in names] if many else None)
    dispatch = c.int("index", "dispatch_id")
    timed = c.has("beginns", "endns") or c.has("start_timestamp", "end_timestamp")
    needed = [dispatch, *([c.int(*_START), c.int(*_STOP)] if timed else [])]
    unreadable(staging, needed, source.path.name)
    procs = _pids(staging, c, source.path.name)
    order = f"row_number() OVER (ORDER BY {dispatch}) - 1"
    first = "start, stop" if timed else "csv_raw.rowid"  # of several rows of one dispatch
    staging.insert(
        "amd_gpu",
        f"SELECT p.proc, 'kernel' AS what, {c.int('gpu-id', 'gpu_id')} AS agent, "
        f"{c.int('queue-id', 'queue_id')} AS queue, {c.text('kernelname', 'kernel_name')} AS name, "
        f"{c.int(*_START) if timed else order} AS start, {c.int(*_STOP) if timed else order} AS stop, "
        f"{dispatch} AS dispatch, 'product' AS unit, {c.int('grd', 'grid_size')} AS gx, "
        f"{c.int('wgr', 'workgroup_size')} AS wx, {c.int('arch_vgpr', 'vgpr')} AS vgpr, "
        f"{c.int('accum_vgpr')} AS accum, {c.int('lds', 'lds_per_workgroup')} AS lds_total, "
        f"{c.int('scr', 'scratch_per_workitem')} AS scratch "
        f"FROM csv_raw JOIN csv_pid p ON p.csv_key = coalesce({c.int('pid')}, 0) "
        f"QUALIFY row_number() OVER (PARTITION BY p.proc, {dispatch} ORDER BY {first}) = 1",
        "proc, dispatch",
    )
    if not timed:
        found = con.execute("SELECT count(*) FROM amd_gpu").fetchone()
        staging.writer.issue(
            "no_timeline",
            found[0] if found else 0,
            "kernels without times stand in dispatch order, without durations",
        )
    if many:
        _many_metrics(staging, source, c, names, procs)
    else:
        _metrics(staging, c, names, dispatch)
    if kind == "rocprof-compute":
        staging.writer.meta["replayed"] = True
    con.execute("DROP TABLE csv_raw")
    con.execute("DROP TABLE csv_pid")


def _metrics(staging: Staging, c: Header, names: list[str], dispatch: str) -> None:
    con = staging.con
    join = f"JOIN csv_pid p ON p.csv_key = coalesce({c.int('pid')}, 0)"
    if c.has("counter_name", "counter_value"):
        con.execute(
            f"INSERT INTO amd_metric BY NAME SELECT p.proc, {dispatch} AS dispatch, "
            f"{c.text('counter_name')} AS name, "
            f"try_cast({c.text('counter_value')} AS DOUBLE) AS value, '1' AS unit FROM csv_raw {join}"
        )
        return
    if not names:
        return
    staging.writer.meta["replayed"] = True
    original = dict(zip(c.names, c.original, strict=True))
    con.execute("CREATE TEMP TABLE csv_names (lower VARCHAR, name VARCHAR)")
    con.executemany("INSERT INTO csv_names VALUES (?, ?)", [(name, original[name]) for name in names])
    quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    con.execute(
        "INSERT INTO amd_metric BY NAME SELECT proc, dispatch, n.name, "
        "try_cast(nullif(trim(u.value), '') AS DOUBLE) AS value, '1' AS unit FROM "
        f"(UNPIVOT (SELECT p.proc, {dispatch} AS dispatch, {quoted} FROM csv_raw {join}) "
        f"ON {quoted} INTO NAME name VALUE value) u JOIN csv_names n ON n.lower = u.name"
    )
    con.execute("DROP TABLE csv_names")


def _many_metrics(
    staging: Staging, source: Source, c: Header, names: list[str], procs: Mapping[int, int]
) -> None:
    """Counters of a table with more columns than an engine of columns likes (2,700 are usual)."""
    staging.writer.meta["replayed"] = True
    place = {name: number for number, name in enumerate(c.names)}
    wanted = [(c.original[place[name]], place[name]) for name in names]
    dispatch_at = place["dispatch_id"] if "dispatch_id" in place else place["index"]
    columns: dict[str, list[Any]] = {"dispatch": [], "name": [], "value": []}
    for row in rows(source):
        pid = row[place["pid"]] if "pid" in place and len(row) == len(c.names) else "0"
        if len(row) != len(c.names) or not row[dispatch_at].isdecimal() or not pid.isdecimal():
            continue  # load() has counted it
        proc = procs.get(int(pid))
        if proc is None:
            continue
        for name, at in wanted:
            value = _number(row[at])
            if value is not None:
                columns["dispatch"].append(int(row[dispatch_at]))
                columns["name"].append(name)
                columns["value"].append(value)
        staging.add("amd_metric", {**columns, "unit": ["1"] * len(columns["name"])}, proc)
        columns = {"dispatch": [], "name": [], "value": []}


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
