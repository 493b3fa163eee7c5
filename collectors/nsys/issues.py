"""GPU metrics as counters, and everything odd as rows of ``issues``; nothing is left out in silence."""

from __future__ import annotations

from profrun.collectors.nsys.build import Builder
from profrun.collectors.nsys.identity import Origin
from profrun.collectors.nsys.names import (
    EVENT_BACKTRACE,
    NVTX_DOMAIN,
    NVTX_MARK,
    NVTX_PUSH_POP,
    NVTX_START_END,
)
from profrun.collectors.nsys.source import Export
from profrun.collectors.nsys.tables import LEFT_OUT

_WARNING, _ERROR = 2, 3  # DIAGNOSTIC_EVENT.severity
_MOST_DIAGNOSTICS = 20


def counters(build: Builder) -> None:
    """GPU_METRICS samples: a counter track per GPU (its number in the low byte of typeId), values as sampled.

    Names that end in '[Throughput %]' or hold '%' are percentages, all others pure numbers.
    """
    con = build.con
    if not build.count("SELECT count(*) FROM n_metric"):
        return
    con.execute(
        "CREATE TABLE n_metric_track AS SELECT src, gpu, row_number() OVER (ORDER BY src, gpu) - 1 + "
        "(SELECT count(*) FROM tracks) AS track FROM (SELECT DISTINCT src, type_id & 255 AS gpu FROM "
        "n_metric)"
    )
    if not build.count("SELECT count(*) FROM processes"):
        con.execute("INSERT INTO processes (process, pid, rank) VALUES (0, 0, 0)")
    con.execute(
        "INSERT INTO tracks BY NAME SELECT l.track, 'counter' AS kind, coalesce((SELECT min(process) "
        "FROM n_proc m "
        "WHERE m.src = l.src), 0) AS process, (SELECT min(d.device) FROM n_dev d JOIN n_dev_gpu g USING "
        "(device) "
        "WHERE d.src = l.src AND g.gpu = l.gpu) AS device, 'GPU ' || l.gpu || ' metrics' AS name FROM "
        "n_metric_track l"
    )
    con.execute(
        "INSERT INTO counters BY NAME SELECT l.track, r.ts + o.shift AS ts_ns, "
        "coalesce(i.name, 'metric ' || r.metric_id) AS name, r.value::DOUBLE AS value, "
        "CASE WHEN contains(i.name, '%') THEN '%' ELSE '1' END AS unit FROM n_metric r "
        "JOIN n_origin o ON o.src = r.src JOIN n_metric_track l ON l.src = r.src AND l.gpu = r.type_id & 255 "
        "LEFT JOIN (SELECT src, type_id, metric_id, any_value(name) AS name FROM n_metric_info GROUP BY "
        "ALL) i "
        "ON i.src = r.src AND i.type_id = r.type_id AND i.metric_id = r.metric_id "
        "WHERE r.ts IS NOT NULL AND r.value IS NOT NULL"
    )


def record_issues(build: Builder, exports: list[Export], origins: list[Origin]) -> None:
    """Issues of all kinds, and the parts of meta that follow from the records."""
    _launches(build)
    _times(build)
    _left_out(build, exports)
    diagnostics = _diagnostics(build, exports)
    gpu = build.count("SELECT count(*) FROM n_gpu_work")
    build.writer.meta["vendor"] = "nvidia" if gpu else "none"
    if not gpu:
        api = build.count("SELECT count(*) FROM n_call_index WHERE what = 'api'")
        why = (
            "CUDA calls were traced but no work on the GPU: another profiler holds CUPTI, or the window "
            "was empty"
            if api
            else "the program used no CUDA, CUDA was not traced (--trace), or tracing was blocked"
        )
        build.writer.issue("no-gpu-records", 1, f"the report holds no GPU activity: {why}", diagnostics)
    _meta(build, origins)


def _launches(build: Builder) -> None:
    build.writer.issue(
        "kernel-without-launch",
        build.count("SELECT count(*) FROM n_rest WHERE kind = 'kernel' AND launch IS NULL"),
        "kernels whose launch call was not recorded (it came before the window, or from a process that "
        "was not "
        "traced): they belong to no step or range",
    )
    build.writer.issue(
        "copy-without-launch",
        build.count(
            "SELECT count(*) FROM n_rest s JOIN copies c USING (slice) WHERE s.launch IS NULL AND NOT "
            "c.managed"
        ),
        "copies and memsets whose call was not recorded",
    )
    build.writer.issue(
        "managed-migrations",
        build.count("SELECT count(*) FROM copies WHERE managed"),
        "unified-memory migrations: they are no copies that the program asked for",
    )
    build.writer.issue("api-error", build.failed[0], "CUDA calls that returned an error", build.failed[1])


def _times(build: Builder) -> None:
    negative, open_ended = build.row(
        "SELECT sum(negative), sum(open_ended) FROM (SELECT negative, open_ended FROM n_call_index UNION ALL "
        "SELECT negative, open_ended FROM n_gpu_index)"
    )
    negative += build.count(f"SELECT count(*) FROM n_range WHERE stop < start AND event <> {NVTX_MARK}")
    build.writer.issue("negative-duration", negative, "records that end before they start were given 0 ns")
    build.writer.issue("no-end", open_ended, "records without an end were given 0 ns")
    unplaced = (
        build.unplaced
        + build.next
        - build.count("SELECT (SELECT count(*) FROM n_on_thread) + (SELECT count(*) FROM n_rest)")
    )
    build.writer.issue(
        "record-unplaced",
        unplaced,
        "records without a start, a process or a thread could not be placed and are left out",
    )


def _left_out(build: Builder, exports: list[Export]) -> None:
    for table, what in LEFT_OUT.items():
        count = sum(
            int(item.rows(f'SELECT count(*) FROM "{table}"')[0][0])
            for item in exports
            if table in item.columns
        )
        build.writer.issue("left-out", count, f"{what} ({table}) have no place in this trace format", table)
    doubled = sum(_doubled(build, item, src) for src, item in enumerate(exports))
    build.writer.issue(
        "backtrace-duplicates",
        doubled,
        "rows that --cudabacktrace adds for calls that are there already were left out",
    )
    known = f"({NVTX_MARK}, {NVTX_PUSH_POP}, {NVTX_START_END}, {NVTX_DOMAIN}, 33, 39, 76)"
    build.writer.issue(
        "nvtx-other",
        build.count(f"SELECT sum(records) FROM n_nvtx_index WHERE event NOT IN {known}"),
        "NVTX records of other kinds (names of resources, nvtxt) were left out",
    )


def _doubled(build: Builder, export: Export, src: int) -> int:
    """Rows that --cudabacktrace adds; the file is searched for them only where rows were not read."""
    table = "CUPTI_ACTIVITY_KIND_RUNTIME"
    if "eventClass" not in export.columns.get(table, ()):
        return 0
    read = build.count(f"SELECT sum(records) FROM n_call_index WHERE what = 'api' AND src = {src}")
    if export.most_rows(table) == read:
        return 0
    return int(export.rows(f'SELECT count(*) FROM "{table}" WHERE "eventClass" = {EVENT_BACKTRACE}')[0][0])


def _diagnostics(build: Builder, exports: list[Export]) -> str | None:
    """nsys's own warnings and errors as issues; returns the first."""
    first = None
    for item in exports:
        if not {"severity", "text"} <= set(item.columns.get("DIAGNOSTIC_EVENT", ())):
            continue
        rows = item.rows(
            'SELECT text, count(*), max(severity) FROM "DIAGNOSTIC_EVENT" '
            f"WHERE severity IN ({_WARNING}, {_ERROR}) AND text IS NOT NULL GROUP BY text ORDER BY 3 DESC, 1"
        )
        for text, count, severity in rows[:_MOST_DIAGNOSTICS]:
            line = " ".join(str(text).split())
            first = first or line
            kind = "error" if severity == _ERROR else "warning"
            build.writer.issue(f"nsys-{kind}", count, line[:500])
        rest = sum(int(row[1]) for row in rows[_MOST_DIAGNOSTICS:])
        build.writer.issue("nsys-warning", rest, "more warnings of nsys than are listed here")
    return first


def _meta(build: Builder, origins: list[Origin]) -> None:
    """Launch blocking, versions, world size: only these variables, never the whole environment."""
    meta = build.writer.meta
    environments = [item.environment for item in origins if item.environment is not None]
    if environments:
        meta["launch_blocking"] = any(
            env.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0") for env in environments
        )
    sizes = [env.get("WORLD_SIZE", "") for env in environments]
    extra = {
        "schema_version": origins[0].schema,
        "driver_version": origins[0].driver,
        "world_size": next((int(size) for size in sizes if size.isdigit()), None),
    }
    meta["extra"] = {key: value for key, value in extra.items() if value is not None}
