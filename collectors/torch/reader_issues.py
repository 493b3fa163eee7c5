"""What the kineto reader noticed: everything repaired, left out or guessed becomes a row of ``issues``."""

from __future__ import annotations

from collections.abc import Sequence

from profrun.collectors.reading import TIME_LIMIT_NS
from profrun.collectors.torch.reader_cut import EventFile
from profrun.collectors.torch.reader_tracks import Tracks
from profrun.traces.writer import TraceWriter

FILE_MESSAGES = {
    "truncated": "file cut in the middle: the whole events before the cut are kept",
    "unreadable_event": "event that is no JSON even after repairs: left out",
    "repaired_escape": "event with an unescaped backslash: repaired",
    "invalid_utf8": "event with bytes that are not UTF-8: replaced by U+FFFD",
    "not_an_event": "value among the events that is no object: left out",
    "unreadable_value": "value in an event's args that is no number, or beyond int64: missing in the trace",
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
            "ph NOT IN ('M', 's', 't', 'f') AND coalesce(name, '') NOT LIKE 'Iteration Start:%' "
            "AND coalesce(name, '') <> 'Record Window End'"
        ),
    ),
    ("no_phase", "object among the events that has no ph: left out", "k_other", "ph IS NULL"),
)


def events(writer: TraceWriter) -> None:
    """Write the issues of single events: those of ``k_core`` and ``k_other``."""
    example = {
        "k_core": "SELECT min(text) FROM k_text WHERE number IN (SELECT name FROM k_core WHERE {})",
        "k_other": "SELECT min(name) FROM k_other WHERE {}",
    }
    for table, query in example.items():
        rows = [row for row in _COUNTED if row[2] == table]
        counts = writer.con.execute(
            f"SELECT {', '.join(f'count(*) FILTER ({where})' for *_, where in rows)} FROM {table}"
        ).fetchone()
        for (code, message, _, where), count in zip(rows, counts or (), strict=True):
            if count:
                found = writer.con.execute(query.format(where)).fetchone()
                writer.issue(code, count, message, found[0] if found else None)


def record(
    writer: TraceWriter, files: Sequence[EventFile], tracks: Tracks, crossing: tuple[int, str | None]
) -> None:
    """Write all issues of one recording."""
    for code, message in FILE_MESSAGES.items():
        count = sum(file.issues[code] for file in files)
        example = next((file.examples[code] for file in files if code in file.examples), None)
        writer.issue(code, count, message, example)
    writer.issue(
        "crossing_slices",
        crossing[0],
        "CPU events overlap others without lying inside them: their self times may be off (harmless)",
        crossing[1],
    )
    empty = writer.con.execute("SELECT count(*) = 0 FROM k_slice").fetchone()
    writer.issue("no_events", int(bool(empty and empty[0])), "the recording holds no event with a duration")
    _tracks(writer, tracks)
    _launches(writer)
    _overlaps(writer)


def _tracks(writer: TraceWriter, tracks: Tracks) -> None:
    if tracks.unknown:
        writer.issue(
            "unknown_category",
            sum(tracks.unknown.values()),
            "events of a category that is not known: kept as ranges of their thread",
            ", ".join(sorted(tracks.unknown)),
        )
    writer.issue("device_numbers_guessed", len(tracks.guessed), "; ".join(tracks.guessed))
    writer.issue(
        "no_host_process", len(tracks.without_pid), "file without any host event: its process id is set to 0"
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
