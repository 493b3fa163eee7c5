"""Named SQL views that the command line, the reports and users query. docs/trace-format.md lists them.

They express in SQL what ``analysis`` computes on arrays, so that a query can go on from there; tests compare
the two. Times are int64 ns. A view costs nothing until a query uses it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import duckdb

from profrun.contract.step_names import FAMILIES


@dataclass(frozen=True)
class View:
    """A named view: what a row is, and its SQL over the tables and earlier views."""

    name: str
    row: str
    sql: str


_FAMILIES = " ".join(
    f"WHEN regexp_matches(s.name, '{pattern}') THEN {place}" for place, pattern in enumerate(FAMILIES)
)
_STEPS = rf"""
WITH named AS (
  SELECT s.slice, s.name, s.ts_ns, s.dur_ns, s.track, t.process,
    CASE {_FAMILIES} ELSE {len(FAMILIES)} END AS family
  FROM slices s JOIN tracks t USING (track) WHERE s.kind = 'step' AND t.device IS NULL
), best AS (
  SELECT process, family, track FROM named
  WHERE family = (SELECT min(family) FROM named n WHERE n.process = named.process)
  GROUP BY process, family, track
  QUALIFY row_number() OVER (PARTITION BY process ORDER BY count(*) DESC, track) = 1
), outermost AS (
  SELECT n.*, max(n.ts_ns + n.dur_ns) OVER (
    PARTITION BY n.process ORDER BY n.ts_ns, n.dur_ns DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    AS reach
  FROM named n JOIN best USING (process, family, track)
)
SELECT coalesce(TRY_CAST(regexp_extract(name, '(\d+)$', 1) AS BIGINT),
         row_number() OVER (PARTITION BY process ORDER BY ts_ns) - 1) AS step,
  slice, name, ts_ns, dur_ns, track, process
FROM outermost WHERE reach IS NULL OR ts_ns + dur_ns > reach
"""

_BUSY = """
WITH ordered AS (
  SELECT device, ts_ns, ts_ns + dur_ns AS end_ns, max(ts_ns + dur_ns) OVER (
    PARTITION BY device ORDER BY ts_ns, dur_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reach
  FROM gpu_slices WHERE dur_ns > 0
), islands AS (
  SELECT *, sum(CASE WHEN reach IS NULL OR ts_ns > reach THEN 1 ELSE 0 END)
    OVER (PARTITION BY device ORDER BY ts_ns, end_ns) AS island
  FROM ordered
)
SELECT device, min(ts_ns) AS ts_ns, max(end_ns) - min(ts_ns) AS dur_ns, count(*) AS slices
FROM islands GROUP BY device, island
"""

_LAUNCHES = """
SELECT g.slice, g.kind, g.name, g.ts_ns, g.dur_ns, g.device, g.stream, a.slice AS api, a.name AS api_name,
  a.ts_ns AS api_ts_ns, a.dur_ns AS api_dur_ns, ta.process, a.track AS api_track,
  g.ts_ns - a.ts_ns AS latency_ns, g.ts_ns - a.ts_ns - a.dur_ns AS delay_ns
FROM gpu_slices g JOIN slices a ON a.slice = g.launch JOIN tracks ta ON ta.track = a.track
"""

_STEP_LAUNCHES = """
SELECT l.*, s.step, s.slice AS step_slice FROM launches l ASOF LEFT JOIN steps s
  ON l.process = s.process AND l.api_ts_ns >= s.ts_ns
WHERE s.slice IS NULL OR l.api_ts_ns < s.ts_ns + s.dur_ns
UNION ALL
SELECT l.*, NULL, NULL FROM launches l ASOF JOIN steps s
  ON l.process = s.process AND l.api_ts_ns >= s.ts_ns WHERE l.api_ts_ns >= s.ts_ns + s.dur_ns
"""

_ANCESTORS = """
WITH RECURSIVE up(api, slice, level) AS (
  SELECT DISTINCT l.launch, CASE WHEN a.kind = 'op' THEN a.slice ELSE a.parent END,
    CASE WHEN a.kind = 'op' THEN 0 ELSE 1 END
  FROM slices l JOIN slices a ON a.slice = l.launch
  WHERE l.kind IN ('kernel', 'memcpy', 'memset') AND (a.kind = 'op' OR a.parent IS NOT NULL)
  UNION ALL
  SELECT up.api, s.parent, up.level + 1 FROM up JOIN slices s ON s.slice = up.slice WHERE s.parent IS NOT NULL
)
SELECT up.api, up.slice, s.kind, s.name, up.level FROM up JOIN slices s USING (slice)
"""

_OPS = """
WITH owner AS (
  SELECT api, slice FROM launch_ancestors WHERE kind = 'op'
  QUALIFY row_number() OVER (PARTITION BY api ORDER BY level) = 1
), device AS (
  SELECT o.slice, sum(g.dur_ns) AS ns FROM gpu_slices g JOIN owner o ON o.api = g.launch GROUP BY o.slice
), total AS (
  SELECT a.slice, sum(g.dur_ns) AS ns FROM gpu_slices g JOIN launch_ancestors a ON a.api = g.launch
  WHERE a.kind = 'op' GROUP BY a.slice
), inside AS (
  SELECT c.parent AS slice, sum(c.dur_ns) AS ns FROM slices c
  WHERE c.kind IN ('op', 'range', 'step', 'api') AND c.parent IS NOT NULL GROUP BY c.parent
)
SELECT s.name, count(*) AS calls, sum(s.dur_ns)::BIGINT AS cpu_ns,
  sum(s.dur_ns - coalesce(i.ns, 0))::BIGINT AS self_cpu_ns,
  sum(coalesce(d.ns, 0))::BIGINT AS self_device_ns,
  sum(coalesce(t.ns, 0))::BIGINT AS device_ns, sum(o.flops)::BIGINT AS flops
FROM slices s LEFT JOIN inside i USING (slice) LEFT JOIN device d USING (slice)
  LEFT JOIN total t USING (slice)
  LEFT JOIN ops o USING (slice)
WHERE s.kind = 'op' GROUP BY s.name
"""

_BREAKDOWN = """
SELECT s.step, s.process, s.slice, s.ts_ns, s.dur_ns,
  count(*) FILTER (l.kind = 'kernel') AS kernels,
  coalesce(sum(l.dur_ns) FILTER (l.kind = 'kernel' AND c.slice IS NULL), 0)::BIGINT AS kernel_ns,
  coalesce(sum(l.dur_ns) FILTER (l.kind = 'memcpy'), 0)::BIGINT AS memcpy_ns,
  coalesce(sum(l.dur_ns) FILTER (l.kind = 'memset'), 0)::BIGINT AS memset_ns,
  coalesce(sum(l.dur_ns) FILTER (l.kind = 'kernel' AND c.slice IS NOT NULL), 0)::BIGINT AS comm_ns,
  max(l.ts_ns + l.dur_ns) AS gpu_end_ns
FROM steps s LEFT JOIN step_launches l ON l.step_slice = s.slice LEFT JOIN collectives c ON c.slice = l.slice
GROUP BY ALL
"""

VIEWS: tuple[View, ...] = (
    View(
        "gpu_slices",
        "kernel, memcpy or memset, with its device and process",
        "SELECT s.*, t.device, t.process, t.native_id AS stream FROM slices s JOIN tracks t USING (track) "
        "WHERE s.kind IN ('kernel', 'memcpy', 'memset')",
    ),
    View("gpu_busy", "stretch of time in which a device was never idle, and how many slices it holds", _BUSY),
    View("steps", "step of a process: its number and host range (one family of names per process)", _STEPS),
    View(
        "launches",
        "GPU slice with the call that enqueued it; latency from the call's start, delay from its end",
        _LAUNCHES,
    ),
    View(
        "step_launches",
        "row of launches with the step that was running at the call, NULL for none",
        _STEP_LAUNCHES,
    ),
    View("step_breakdown", "step with the GPU work that it launched (sums of durations)", _BREAKDOWN),
    View(
        "kernel_summary",
        "kernel name: calls, total, mean, median, p99, min, max, standard deviation",
        "SELECT name, count(*) AS calls, sum(dur_ns)::BIGINT AS total_ns, avg(dur_ns) AS mean_ns, "
        "quantile_cont(dur_ns, 0.5) AS p50_ns, quantile_cont(dur_ns, 0.99) AS p99_ns, "
        "min(dur_ns) AS min_ns, max(dur_ns) AS max_ns, stddev_samp(dur_ns) AS stdev_ns "
        "FROM slices WHERE kind = 'kernel' GROUP BY name",
    ),
    View(
        "launch_ancestors",
        "enqueueing call (or op) and one host slice round it, innermost first by level",
        _ANCESTORS,
    ),
    View(
        "op_summary",
        "op name: calls, CPU and GPU time with and without children; every nested call counts",
        _OPS,
    ),
    View(
        "range_kernels",
        "GPU slice and one range or step round its launch on the launching thread",
        "SELECT a.slice AS range, a.name AS range_name, a.kind AS range_kind, g.slice, g.kind, g.name, "
        "g.ts_ns, g.dur_ns, g.device, g.stream FROM gpu_slices g JOIN launch_ancestors a ON a.api = g.launch "
        "WHERE a.kind IN ('range', 'step')",
    ),
    View(
        "copy_summary",
        "direction and memory kinds of copies: calls, bytes, time, 1e9 bytes per second",
        "SELECT c.direction, c.src_kind, c.dst_kind, count(*) AS calls, sum(c.bytes)::BIGINT AS bytes, "
        "sum(s.dur_ns)::BIGINT AS total_ns, "
        "sum(c.bytes) / nullif(sum(s.dur_ns) FILTER (c.bytes IS NOT NULL), 0) AS gb_s "
        "FROM copies c JOIN slices s USING (slice) GROUP BY ALL",
    ),
    View(
        "api_summary",
        "runtime or driver function: calls and time of host threads",
        "SELECT name, count(*) AS calls, sum(dur_ns)::BIGINT AS total_ns, avg(dur_ns) AS mean_ns, "
        "max(dur_ns) AS max_ns FROM slices WHERE kind = 'api' GROUP BY name",
    ),
)


VIEW_NAMES = re.compile(r"\b(?:" + "|".join(view.name for view in VIEWS) + r")\b")
"""Finds the name of a view in a query in lower case."""


def create_views(con: duckdb.DuckDBPyConnection) -> None:
    """Create every named view, in order, on a connection that has the tables."""
    for view in VIEWS:
        con.execute(f'CREATE VIEW "{view.name}" AS {view.sql}')
