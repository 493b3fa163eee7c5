"""Everything that runs on a thread: API calls, library calls, NVTX push/pop, nested into each other.

The rows of all threads are sorted once, (thread, start, longer first, outer kind first), into n_host; a row's
slice id is its place there, so ``traces.nest.nesting`` gives parents as ids and nothing is joined again.
"""

from __future__ import annotations

import numpy as np

from profrun.collectors.nsys.build import Builder
from profrun.collectors.nsys.names import API_VERSION_PATTERN, NVTX_START_END
from profrun.traces.nest import KIND_ORDER, nesting

_CHUNK_ROWS = 2_000_000


def host(build: Builder) -> None:
    """Fill host slices with parent and depth. Needs n_range (``nvtx.stage``), n_thread_track and n_origin."""
    _names(build)
    _sorted(build)
    _nest(build)
    build.con.execute(
        "INSERT INTO slices (slice, kind, name, ts_ns, dur_ns, track, parent, depth, correlation) "
        f"SELECT {build.next} + h.rowid, {_kind('h.rank')}, n.name, h.ts, h.dur, h.track, i.parent, "
        f"i.depth, h.corr "
        "FROM n_host h JOIN n_nested i ON i.rowid = h.rowid JOIN n_name n ON n.no = h.no"
    )
    build.next += build.count("SELECT count(*) FROM n_host")
    build.unplaced += build.count(
        "SELECT (SELECT count(*) FROM n_api) + (SELECT count(*) FROM n_lib) + "
        f"(SELECT count(*) FROM n_range WHERE event <> {NVTX_START_END}) - (SELECT count(*) FROM n_host)"
    )


def _names(build: Builder) -> None:
    """n_name(no, name): calls by string id, ranges by their place in n_range; n_call_name is the map."""
    build.con.execute(
        "CREATE TABLE n_call_name AS SELECT row_number() OVER (ORDER BY what, src, name_id) - 1 AS no, "
        "* FROM ("
        "SELECT 'api' AS what, u.src, u.name_id, coalesce(regexp_replace(s.value, "
        f"'{API_VERSION_PATTERN}', '\\1'), 'unknown API call') AS name "
        "FROM (SELECT DISTINCT src, name_id FROM n_api) u "
        "LEFT JOIN n_string s ON s.src = u.src AND s.id = u.name_id UNION ALL "
        "SELECT 'lib', u.src, u.name_id, coalesce(s.value, 'library call') "
        "FROM (SELECT DISTINCT src, name_id FROM n_lib) u "
        "LEFT JOIN n_string s ON s.src = u.src AND s.id = u.name_id)"
    )
    calls = build.count("SELECT count(*) FROM n_call_name")
    build.con.execute(
        "CREATE TABLE n_name AS SELECT no::BIGINT AS no, name FROM n_call_name UNION ALL "
        f"SELECT {calls} + rowid, name FROM n_range"
    )


def _sorted(build: Builder) -> None:
    calls = build.count("SELECT count(*) FROM n_call_name")
    span = "r.start + o.shift AS ts, greatest(coalesce(r.stop, r.start) - r.start, 0) AS dur"
    joined = "JOIN n_origin o ON o.src = r.src JOIN n_thread_track t ON t.src = r.src AND t.gtid = r.gtid"
    rank = {kind: number for number, kind in enumerate(KIND_ORDER)}
    named = (
        "LEFT JOIN n_call_name n ON n.what = '{what}' AND n.src = r.src "
        "AND n.name_id IS NOT DISTINCT FROM r.name_id"
    )
    build.con.execute(
        f"CREATE TABLE n_host AS SELECT t.track, {span}, {rank['api']}::TINYINT AS rank, n.no::BIGINT AS no, "
        f"nullif(r.corr, 0) AS corr, r.src, r.gtid >> 24 AS p FROM n_api r {joined} "
        f"{named.format(what='api')} "
        f"UNION ALL SELECT t.track, {span}, {rank['range']}, n.no, NULL, r.src, r.gtid >> 24 FROM n_lib "
        f"r {joined} "
        f"{named.format(what='lib')} UNION ALL SELECT t.track, {span}, "
        f"CASE WHEN r.step THEN {rank['step']} ELSE {rank['range']} END, {calls} + r.rowid, NULL, "
        f"r.src, r.gtid >> 24 "
        f"FROM n_range r {joined} WHERE r.event <> {NVTX_START_END} ORDER BY 1, 2, 3 DESC, 4, 5, 6"
    )


def _nest(build: Builder) -> None:
    """n_nested(parent, depth), row for row beside n_host; whole threads at a time, to bound memory."""
    con = build.con
    con.execute("CREATE TABLE n_nested (parent BIGINT, depth INTEGER)")
    sizes = con.execute("SELECT track, count(*) FROM n_host GROUP BY track ORDER BY track").fetchall()
    crossing, example = 0, None
    start, rows = 0, 0
    for number, (_, count) in enumerate(sizes):
        rows += count
        if rows < _CHUNK_ROWS and number + 1 < len(sizes):
            continue
        found = con.execute(
            f"SELECT track, ts, dur FROM n_host WHERE rowid >= {start} AND rowid < {start + rows} ORDER "
            f"BY rowid"
        ).fetchnumpy()
        nested = nesting(*(np.asarray(found[name], dtype=np.int64) for name in ("track", "ts", "dur")))
        base = build.next + start
        parent = np.ma.masked_array(nested.parent + base, mask=nested.parent < 0)
        con.register("nested_arrays", {"parent": parent, "depth": nested.depth})
        con.execute("INSERT INTO n_nested SELECT parent, depth FROM nested_arrays")
        con.unregister("nested_arrays")
        crossing += nested.overlaps.size
        if example is None and nested.overlaps.size:
            example = start + int(nested.overlaps[0])
        start, rows = start + rows, 0
    name = None
    if example is not None:
        row = con.execute(
            "SELECT n.name FROM n_host h JOIN n_name n USING (no) WHERE h.rowid = ?", [example]
        ).fetchone()
        name = row[0] if row else None
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
