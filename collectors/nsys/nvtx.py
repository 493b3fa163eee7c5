"""NVTX: names, domains, steps; push/pop on the thread, start/end on tracks of their own.

nsys stores no nesting: a push/pop range is only (thread, start, end). ``traces.nest`` rebuilds it together
with the API calls of the thread. Names are ``text`` or the string of ``textId``, both in one table.
"""

from __future__ import annotations

import duckdb

from profrun.collectors.nsys.build import Builder
from profrun.collectors.nsys.identity import Origin
from profrun.collectors.nsys.names import (
    NVTX_MARK,
    NVTX_PUSH_POP,
    NVTX_START_END,
)
from profrun.contract.step_names import ANY_STEP, OWN_STEP
from profrun.contract.steps import RUN_RANGE


def reopen(con: duckdb.DuckDBPyConnection) -> None:
    """Ranges that nsys itself closed are open: their stop in n_nvtx becomes NULL. Needs n_origin.

    nsys loses the last records of a program that is killed or leaves through ``os._exit``. A range whose end
    is lost gets the end of the session ("Profiling has stopped"), seconds after the program's end: measured
    with nsys 2024.2.3. A range that ends in exactly that nanosecond was closed so.
    """
    con.execute(
        "UPDATE n_nvtx SET stop = NULL FROM n_origin o WHERE o.src = n_nvtx.src AND stop = o.stopped "
        f"AND event IN ({NVTX_PUSH_POP}, {NVTX_START_END})"
    )


def stage(build: Builder, origins: list[Origin]) -> None:
    """n_range: marks and ranges with their names; those open at the end end with the last record.

    The range of the run ends with the session where nothing was recorded in it. Needs n_python_mark
    (``python_stacks.stage``), whose marks are no ranges.
    """
    con = build.con
    name = "coalesce(r.text, s.value)"
    con.execute(
        "CREATE TABLE n_last AS SELECT src, max(stop) AS stop FROM ("
        "SELECT src, stop FROM n_call_index WHERE what = 'api' UNION ALL "
        "SELECT src, stop FROM n_gpu_index WHERE stage = 'n_kernel' UNION ALL "
        "SELECT src, stop FROM n_nvtx_index) GROUP BY src"
    )
    con.execute(
        "CREATE TABLE n_range AS SELECT r.src, r.gtid, r.event, r.start, r.stop IS NULL AND r.event <> "
        f"{NVTX_MARK} AS unfinished, CASE WHEN r.event = {NVTX_MARK} THEN r.start "
        f"ELSE coalesce(r.stop, CASE WHEN {name} = '{RUN_RANGE}' AND e.stop <= r.start THEN o.stopped END, "
        "e.stop) END AS stop, coalesce(r.domain, 0) AS domain, "
        "coalesce(r.text, s.value, 'unnamed range') AS name, "
        f"(r.stop IS NOT NULL OR {name} = '{RUN_RANGE}') AND r.event <> {NVTX_MARK} "
        f"AND regexp_matches(coalesce(r.text, s.value, ''), '{ANY_STEP}') AS step "
        "FROM n_nvtx r LEFT JOIN n_string s ON s.src = r.src AND s.id = r.text_id "
        "LEFT JOIN n_last e ON e.src = r.src LEFT JOIN n_origin o ON o.src = r.src "
        f"WHERE r.event IN ({NVTX_MARK}, {NVTX_PUSH_POP}, {NVTX_START_END}) AND r.start IS NOT NULL "
        f"AND NOT (r.event = {NVTX_MARK} AND r.text IS NULL AND r.text_id IS NULL "
        "AND (r.src, r.gtid, r.start) IN (SELECT (src, gtid, start) FROM n_python_mark))"
    )

    _unended_steps(build, origins)
    for item in origins:
        _run_without_range(build, item)


def _unended_steps(build: Builder, origins: list[Origin]) -> None:
    """The step that was open when the program ended was closed by its exit: the hook did not count it."""
    pid = "(gtid >> 24) & 16777215"
    where = [
        f"(src = {item.src} AND {pid} = {number} AND try_cast(name[{len(OWN_STEP) + 1}:] AS BIGINT) > {last})"
        for item in origins
        for number, last in item.last_step.items()
    ]
    if not where:
        return
    unended = f"step AND starts_with(name, '{OWN_STEP}') AND ({' OR '.join(where)})"
    build.writer.issue(
        "step-unended",
        build.count(f"SELECT count(*) FROM n_range WHERE {unended}"),
        "step ranges that the end of the program closed: they count as ranges, not as steps",
    )
    build.con.execute(f"UPDATE n_range SET step = false WHERE {unended}")


def _run_without_range(build: Builder, item: Origin) -> None:
    """The run of a program that emits no range, because the hook does not reach it: as timed from outside."""
    if item.run is None or item.epoch_ns is None:
        return
    if build.count(f"SELECT count(*) FROM n_range WHERE step AND src = {item.src}"):
        return
    pid, ts_ns, dur_ns = item.run
    start = ts_ns - item.epoch_ns
    build.con.execute(  # on the main thread of the process, else of the first one that used a GPU
        "INSERT INTO n_range BY NAME SELECT h.src, h.gtid, $event AS event, greatest($start, 0) AS start, "
        "false AS unfinished, "
        "greatest(least($start + $dur, greatest(e.stop, $stopped)), $start, 0) AS stop, 0 AS domain, "
        "$name AS name, true AS step FROM n_thread_track h LEFT JOIN n_last e ON e.src = h.src "
        "WHERE h.src = $src ORDER BY (h.gtid >> 24) & 16777215 <> $pid, "
        "(h.src, h.gtid >> 24) NOT IN (SELECT (src, p) FROM n_gpu_work WHERE p IS NOT NULL), "
        "h.gtid & 16777215 <> (h.gtid >> 24) & 16777215, h.gtid LIMIT 1",
        {
            "event": NVTX_PUSH_POP,
            "start": start,
            "dur": dur_ns,
            "name": RUN_RANGE,
            "src": item.src,
            "pid": pid,
            "stopped": item.stopped_ns,
        },
    )
    build.writer.issue(
        "run-timed-outside",
        build.count(f"SELECT count(*) FROM n_range WHERE step AND src = {item.src}"),
        "the report holds no range over the run: the program is not in Python, imports no GPU framework, or "
        "its ranges were lost; the one step is the program as timed from outside, up to the end of the "
        "recording",
        item.path.name,
    )


def record_issues(build: Builder, origins: list[Origin]) -> None:
    """What was open at the end, without a thread, or lost."""
    con, writer = build.con, build.writer
    left = "n_range WHERE unfinished AND NOT step"
    example = con.execute(f"SELECT name FROM {left} ORDER BY start LIMIT 1").fetchone()
    writer.issue(
        "range-unfinished",
        build.count(f"SELECT count(*) FROM {left}"),
        "ranges that were open when the recording ended, or whose end was lost: they end with its last "
        "record, and none counts as a step",
        example[0] if example else None,
    )
    writer.issue(
        "run-cut",
        build.count("SELECT count(*) FROM n_range WHERE unfinished AND step"),
        "the recording ended before the run did: the one step, which is the run, ends with the last record, "
        "or with the recording where nothing else was recorded",
        RUN_RANGE,
    )
    writer.issue(
        "nvtx-without-thread",
        build.count("SELECT sum(records) FROM n_nvtx_index WHERE gtid IS NULL AND event IN (34, 59, 60)"),
        "NVTX records that name no thread were left out",
    )
    _lost(build, origins)


def _lost(build: Builder, origins: list[Origin]) -> None:
    """The hook counted the ranges it emitted: a report with none of them lost them all."""
    for item in origins:
        if not item.emitted:
            continue
        held = build.count(
            f"SELECT count(*) FROM n_range WHERE src = {item.src} AND event = {NVTX_PUSH_POP} AND domain = 0"
        )
        if held == 0:
            build.writer.issue(
                "ranges-lost",
                item.emitted,
                "the workload emitted NVTX ranges and the report holds none: this nsys does not "
                "understand the "
                "emitter (nvtx 0.2.12 and later under nsys 2024.2 and before), or none fell in the window",
                item.path.name,
            )
