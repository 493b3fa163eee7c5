"""What the kineto reader noticed: everything repaired, left out or guessed becomes a row of ``issues``."""

from __future__ import annotations

from collections.abc import Sequence

from profrun.collectors.torch.reader_cut import EventFile
from profrun.collectors.torch.reader_lanes import Lanes
from profrun.collectors.torch.reader_tables import TIME_LIMIT_NS
from profrun.traces.writer import TraceWriter

FILE_MESSAGES = {
    "truncated": "file cut in the middle: the whole events before the cut are kept",
    "unreadable_event": "event that is no JSON even after repairs: left out",
    "repaired_escape": "event with an unescaped backslash: repaired",
    "invalid_utf8": "event with bytes that are not UTF-8: replaced by U+FFFD",
    "not_an_event": "value among the events that is no object: left out",
    "odd_args": "event whose args are no object: read without them",
    "unreadable_head": "keys before traceEvents cannot be read: versions and devices may be missing",
    "unreadable_tail": "keys behind traceEvents cannot be read: versions and devices may be missing",
    "trailing_text": "text behind the end of the JSON: ignored",
}

_COUNTED = (
    (
        "no_timestamp",
        "event without a usable time (missing, not a number, or beyond the year 2043): left out",
        "k_core",
        f"ts IS NULL OR abs(ts) >= {TIME_LIMIT_NS}",
    ),
    ("negative_duration", "event that ends before it starts: duration set to 0", "k_core", "dur < 0"),
    (
        "no_duration",
        "event without a usable duration: set to 0",
        "k_core",
        f"dur IS NULL OR dur > {TIME_LIMIT_NS}",
    ),
    (
        "unplaced_event",
        "instant or begin/end event that the format has no place for: left out",
        "k_other",
        (
            "ph NOT IN ('M', 's', 't', 'f') AND NOT (coalesce(name, '') = '[memory]' AND "
            "coalesce(allocated, reserved, mem_bytes) IS NOT NULL) "
            "AND coalesce(name, '') NOT LIKE 'Iteration Start:%' "
            "AND coalesce(name, '') <> 'Record Window End'"
        ),
    ),
    ("no_phase", "object among the events that has no ph: left out", "k_other", "ph IS NULL"),
)


def record(
    writer: TraceWriter, files: Sequence[EventFile], lanes: Lanes, crossing: tuple[int, str | None]
) -> None:
    """Write all issues of one recording."""
    for code, message in FILE_MESSAGES.items():
        count = sum(file.issues[code] for file in files)
        example = next((file.examples[code] for file in files if code in file.examples), None)
        writer.issue(code, count, message, example)
    for code, message, table, where in _COUNTED:
        row = writer.con.execute(f"SELECT count(*), min(name) FROM {table} WHERE {where}").fetchone()
        if row:
            writer.issue(code, int(row[0]), message, row[1])
    writer.issue(
        "crossing_slices",
        crossing[0],
        "host slice that starts inside another and ends after it: not nested in it",
        crossing[1],
    )
    empty = writer.con.execute("SELECT count(*) = 0 FROM k_slice").fetchone()
    writer.issue("no_events", int(bool(empty and empty[0])), "the recording holds no event with a duration")
    _lanes(writer, lanes)
    _launches(writer)
    _overlaps(writer)


def _lanes(writer: TraceWriter, lanes: Lanes) -> None:
    if lanes.unknown:
        writer.issue(
            "unknown_category",
            sum(lanes.unknown.values()),
            "events of a category that is not known: kept as ranges of their thread",
            ", ".join(sorted(lanes.unknown)),
        )
    writer.issue("device_numbers_guessed", len(lanes.guessed), "; ".join(lanes.guessed))
    writer.issue(
        "no_host_process", len(lanes.without_pid), "file without any host event: its process id is set to 0"
    )


def _launches(writer: TraceWriter) -> None:
    rows = {
        kind: (count, name)
        for kind, count, name in writer.con.execute(
            "SELECT kind, count(*), min(name) FROM k_slice ANTI JOIN k_launch USING (slice) "
            "WHERE kind IN ('kernel', 'memcpy', 'memset') GROUP BY kind"
        ).fetchall()
    }
    for kind, (count, name) in sorted(rows.items()):
        writer.issue(
            f"{kind}_without_launch",
            count,
            f"{kind} whose launch is not in the recording (enqueued before it began, or not recorded)",
            name,
        )
    row = writer.con.execute("SELECT count(*) FROM k_launch WHERE by_op").fetchone()
    writer.issue(
        "launch_by_external_id",
        int(row[0]) if row else 0,
        "GPU slice without an API call in the recording: its launch is the op that its External id names",
    )


def _overlaps(writer: TraceWriter) -> None:
    row = writer.con.execute(
        """
        SELECT count(*), min(name) FROM (
          SELECT name, ts_ns, max(ts_ns + dur_ns) OVER (PARTITION BY track ORDER BY ts_ns, dur_ns DESC, slice
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS busy_until
          FROM k_slice WHERE kind IN ('kernel', 'memcpy', 'memset'))
        WHERE ts_ns < busy_until
        """
    ).fetchone()
    if row:
        writer.issue(
            "stream_overlap",
            int(row[0]),
            "GPU slice that starts before an earlier one of its stream has ended: kept as recorded",
            row[1],
        )
