"""Everything that runs on a thread: API calls, library calls, NVTX push/pop, nested into each other.

The rows of all threads are sorted once, (thread, start, longer first, outer kind first), into n_host; a row's
slice id is its place there, so ``traces.nest`` gives parents as ids and nothing is joined again.
"""

from __future__ import annotations

import duckdb

from profrun.collectors.nsys.build import Builder
from profrun.collectors.nsys.names import API_VERSION_PATTERN, NO_ERROR, NVTX_START_END
from profrun.traces.nest import KIND_ORDER, nest_sorted


def host(build: Builder) -> None:
    """n_host: calls and ranges, sorted. Needs n_range (``nvtx.stage``), n_call_index and n_thread_track."""
    _names(build)
    _sorted(build)
    build.take("n_host")
    build.unplaced += build.count(
        "SELECT (SELECT count(*) FROM n_api) + (SELECT count(*) FROM n_lib) + "
        f"(SELECT count(*) FROM n_range WHERE event <> {NVTX_START_END}) - (SELECT count(*) FROM n_host)"
    )
    build.failed = _failed(build)
    build.con.execute("DROP TABLE n_api; DROP TABLE n_lib")


def _failed(build: Builder) -> tuple[int, str | None]:
    """How many calls returned an error, and the first of them."""
    count = build.count("SELECT sum(failed) FROM n_call_index")
    if not count:
        return 0, None
    row = build.con.execute(
        "SELECT n.name || ' returned ' || r.ret FROM n_api r LEFT JOIN n_call_name n ON n.what = 'api' AND "
        f"n.src = r.src AND n.name_id IS NOT DISTINCT FROM r.name_id WHERE r.ret NOT IN {NO_ERROR} "
        "ORDER BY r.rowid LIMIT 1"
    ).fetchone()
    return count, row[0] if row else None


def _names(build: Builder) -> None:
    """n_label(label, name): calls by string id, then ranges by their place in n_range; n_call_name(what, src,
    name_id, label) is the map of calls."""
    build.con.execute(
        "CREATE TABLE n_call_name AS SELECT row_number() OVER (ORDER BY u.what, u.src, u.name_id) - 1 AS "
        "label, u.*, CASE what WHEN 'lib' THEN coalesce(s.value, 'library call') ELSE "
        f"coalesce(regexp_replace(s.value, '{API_VERSION_PATTERN}', '\\1'), 'unknown API call') END AS name "
        "FROM (SELECT DISTINCT what, src, name_id FROM n_call_index WHERE what <> 'overhead') u "
        "LEFT JOIN n_string s ON s.src = u.src AND s.id = u.name_id"
    )
    build.calls = build.count("SELECT count(*) FROM n_call_name")
    build.con.execute(
        "CREATE TABLE n_label AS SELECT label::INTEGER AS label, name FROM n_call_name UNION ALL "
        f"SELECT {build.calls} + rowid, name FROM n_range"
    )


def _sorted(build: Builder) -> None:
    span = "r.start + t.shift AS ts, greatest(coalesce(r.stop, r.start) - r.start, 0) AS dur"
    joined = "JOIN n_thread_track t ON t.src = r.src AND t.gtid = r.gtid"
    rank = {kind: number for number, kind in enumerate(KIND_ORDER)}
    calls = [
        f"SELECT t.track, {span}, {rank[kind]}::TINYINT AS rank, n.label::INTEGER AS label, {corr} AS corr, "
        f"t.proc FROM n_{what} r {joined} LEFT JOIN n_call_name n ON n.what = '{what}' AND n.src = r.src "
        "AND n.name_id IS NOT DISTINCT FROM r.name_id"
        for what, kind, corr in (("api", "api", "nullif(r.corr, 0)"), ("lib", "range", "NULL"))
    ]
    ranges = (
        f"SELECT t.track, {span}, CASE WHEN r.step THEN {rank['step']} ELSE {rank['range']} END, "
        f"{build.calls} + r.rowid, NULL, t.proc FROM n_range r {joined} WHERE r.event <> {NVTX_START_END}"
    )
    build.con.execute(
        f"CREATE TABLE n_host AS {' UNION ALL '.join([*calls, ranges])} ORDER BY 1, 2, 3 DESC, 4, 5, 6"
    )


def nest(con: duckdb.DuckDBPyConnection) -> tuple[int, str | None]:
    """n_on_thread: n_host with parent and depth. Any cursor may run it beside what only reads n_host.

    Returns:
        Slices that overlap another without being nested in it, and the name of one.
    """
    con.execute(
        "CREATE VIEW n_nest AS SELECT rowid AS slice, label AS name, track, ts AS ts_ns, dur AS dur_ns "
        "FROM n_host"
    )
    crossing, label = nest_sorted(con, "n_nest", "true", "n_nested")
    con.execute(
        f"CREATE TABLE n_on_thread AS SELECT {_kind('h.rank')}::n_kind AS kind, h.label, h.ts, h.dur, "
        "h.track, h.corr, n.parent, n.depth FROM n_host h POSITIONAL JOIN n_nested n"
    )
    if not crossing:
        return 0, None
    row = con.execute(f"SELECT name FROM n_label WHERE label = {label}").fetchone()
    return crossing, row[0] if row else None


def crossed(build: Builder, crossing: int, name: str | None) -> None:
    """Say what ``nest`` found."""
    build.writer.issue(
        "overlapping-ranges",
        crossing,
        "host records that start inside another of their thread and end after it (NVTX domains push and pop "
        "on their own): each is the child of the nearest that holds it whole",
        name,
    )


def _kind(column: str) -> str:
    when = " ".join(f"WHEN {number} THEN '{kind}'" for number, kind in enumerate(KIND_ORDER))
    return f"CASE {column} {when} END"
