"""Staged AMD records as slices: what runs on threads, sorted and nested, and everything else, sorted.

Rows of threads are sorted once, (track, start, longer first, outer kind first), into amd_call; a slice's id
is its place there, so ``traces.nest`` gives parents as ids and nothing is joined again. Ranges without a
thread stand behind them, records of GPUs and of the runtime take the ids that follow. The writer puts the
rows of threads (amd_on_thread) and the others (amd_rest) together. Names are numbers (amd_label) until then:
sorting rows with names of thousands of characters does not fit the memory limit.
"""

from __future__ import annotations

import duckdb

from profrun.collectors.rocprof.names import clean_kernel_sql
from profrun.collectors.rocprof.staging import Staging
from profrun.collectors.rocprof.tracks import AGENT_KEY, HOST_KEY, HOST_KIND, gpu_key, gpu_kind
from profrun.contract.step_names import ANY_STEP
from profrun.traces.nest import nest_sorted

KEPT = ("amd_gpu", "amd_device", "amd_on_thread", "amd_rest", "amd_label")
"""Tables that the writer reads when it writes slices and kernels."""

_CALL = "h.kind = 'api' AND h.corr IS NOT NULL"


def label_names(staging: Staging) -> None:
    """Table amd_label(label, host, id, name): what a slice is called. Names of the host as they are, those of
    a GPU without the tools' suffixes. Label 0: 'unknown'."""
    clean = clean_kernel_sql("name")
    staging.con.execute(
        "CREATE TABLE amd_label AS SELECT (row_number() OVER () - 1)::INTEGER AS label, * FROM ("
        "SELECT NULL::BOOLEAN AS host, NULL::BIGINT AS id, 'unknown' AS name UNION ALL "
        "SELECT true, id, name FROM amd_name WHERE name <> '' "
        f"UNION ALL SELECT false, id, {clean} FROM amd_name WHERE {clean} <> '')"
    )


def host(staging: Staging) -> tuple[int, int]:
    """Fill amd_call; returns how many of its rows, the first ones, are on threads, and how many it has."""
    con = staging.con
    con.execute(
        "UPDATE amd_host SET kind = 'step' WHERE kind = 'range' AND name IN "
        f"(SELECT id FROM amd_name WHERE regexp_matches(name, '{ANY_STEP}'))"
    )
    con.execute(
        "CREATE TABLE amd_call AS SELECT h.kind, coalesce(l.label, 0) AS label, h.start AS ts, "
        "h.stop - h.start AS dur, t.track, nullif(h.corr, 0) AS corr, h.proc, h.prio::UTINYINT AS prio, "
        "h.rowid::INTEGER AS place FROM amd_host h JOIN amd_track t ON t.part = 0 AND t.proc = h.proc "
        f"AND t.track_kind = {HOST_KIND} AND t.native_key = {HOST_KEY} "
        "LEFT JOIN amd_label l ON l.host AND l.id = h.name "
        "ORDER BY t.track_kind <> 'thread', t.track, ts, dur DESC, h.kind, place"
    )
    found = con.execute(
        "SELECT count(*) FILTER (track IN (SELECT track FROM tracks WHERE kind = 'thread')), count(*) "
        "FROM amd_call"
    ).fetchone()
    return found or (0, 0)


def nest(con: duckdb.DuckDBPyConnection, threads: int) -> tuple[int, str | None]:
    """Fill amd_on_thread. Any cursor may run it beside what only reads amd_call.

    Returns:
        Slices that overlap another without being nested in it, and the name of one.
    """
    con.execute(
        "CREATE VIEW amd_nest AS SELECT rowid AS slice, label AS name, track, ts AS ts_ns, dur AS dur_ns "
        "FROM amd_call"
    )
    crossing, label = nest_sorted(con, "amd_nest", f"slice < {threads}", "amd_nested")
    con.execute(
        "CREATE TABLE amd_on_thread AS SELECT c.*, n.parent, n.depth FROM (SELECT kind, label, ts, dur, "
        f"track, corr FROM amd_call LIMIT {threads}) c POSITIONAL JOIN amd_nested n"
    )
    if not crossing or label == "0":
        return crossing, None
    row = con.execute(f"SELECT name FROM amd_label WHERE label = {label}").fetchone()
    return crossing, row[0] if row else None


def rest(staging: Staging, threads: int, first: int) -> None:
    """Fill amd_rest: GPU records with their launch as slices ``first + rowid``, then the runtime's own work,
    and ranges without a thread."""
    con = staging.con
    con.execute(f"CREATE TABLE amd_rest AS {_rest(staging, threads, first, 'amd_call h', _CALL)}")
    rows = con.execute(
        "SELECT (SELECT count(*) FROM amd_rest WHERE kind IN ('kernel', 'memcpy', 'memset')), "
        "(SELECT count(*) FROM amd_gpu)"
    ).fetchone()
    if rows and rows[0] > rows[1]:  # several calls have one correlation id: HIP before HSA before others
        once = (
            "(SELECT proc, corr, arg_min(rowid, (prio, ts, place)) AS rowid "
            f"FROM amd_call h WHERE {_CALL} GROUP BY proc, corr) h"
        )
        con.execute(f"CREATE OR REPLACE TABLE amd_rest AS {_rest(staging, threads, first, once, 'true')}")


def _rest(staging: Staging, threads: int, first: int, calls: str, which: str) -> str:
    """SELECT of the rows of amd_rest, sorted. ``calls``: relation h of calls, ``which``: those to look at."""
    return (
        f"SELECT {first} + g.rowid AS slice, g.what::amd_kind AS kind, coalesce(l.label, 0) AS label, "
        "g.start AS ts, g.stop - g.start AS dur, t.track, nullif(g.corr, 0) AS corr, h.rowid AS launch "
        f"FROM amd_gpu g JOIN amd_track t ON t.part = 2 AND t.proc = g.proc AND t.agent_key = {AGENT_KEY} "
        f"AND t.track_kind = {gpu_kind(staging)} AND t.native_key = {gpu_key(staging)} "
        "LEFT JOIN amd_label l ON NOT l.host AND l.id = g.name "
        f"LEFT JOIN {calls} ON h.proc = g.proc AND h.corr = g.corr AND {which} UNION ALL "
        f"SELECT {first} + (SELECT count(*) FROM amd_gpu) + o.rowid, 'overhead'::amd_kind, "
        "coalesce(l.label, 0), o.start, o.stop - o.start, t.track, NULL, NULL FROM amd_overhead o "
        "JOIN amd_track t ON t.part = 1 AND t.proc = o.proc "
        "LEFT JOIN amd_label l ON l.host AND l.id = o.name UNION ALL "
        f"SELECT rowid, kind, label, ts, dur, track, corr, NULL FROM amd_call WHERE rowid >= {threads} "
        "ORDER BY track, ts, dur DESC, slice"
    )


def without_launch(staging: Staging, first: int) -> tuple[int, str | None]:
    """GPU records whose API call was not recorded, and the name of one; none where no call was recorded."""
    con = staging.con
    found = con.execute(
        "SELECT count(*), min(coalesce(g.name::VARCHAR, '')) FROM amd_rest r JOIN amd_gpu g "
        f"ON g.rowid = r.slice - {first} WHERE r.kind IN ('kernel', 'memcpy', 'memset') "
        f"AND r.launch IS NULL AND EXISTS (FROM amd_call h WHERE {_CALL})"
    ).fetchone()
    if not found or not found[0]:
        return 0, None
    row = con.execute("SELECT name FROM amd_name WHERE id = try_cast(? AS BIGINT)", [found[1]]).fetchone()
    return int(found[0]), row[0] if row else None


def deliver(staging: Staging) -> None:
    """Let the writer put amd_on_thread and amd_rest together, kinds and names as text, at once."""
    staging.writer.deliver_slices("amd_on_thread", "amd_rest", "amd_label")
