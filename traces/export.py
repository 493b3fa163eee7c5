"""Export a trace for viewers: Perfetto's protobuf, or Chrome's JSON. No slice is lost on the way.

Viewers draw one stack of slices per track and drop or cut what does not nest. Slices of a host thread nest as
they are. A slice that crosses another, and every overlap on a GPU track, goes to a further track of the file,
which stands beside the first. Processes of different ranks or containers may have the same pid: those get one
of their own in the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from profrun.contract.sampling import MEANINGS, REASONS, TRACK, Reason, reasons_in
from profrun.errors import InputError, UsageError
from profrun.traces.export_chrome import ChromeSink
from profrun.traces.export_perfetto import PerfettoSink
from profrun.traces.export_sink import Process, Sink, Slice
from profrun.traces.labels import labels
from profrun.traces.new_file import new_file, refuse_existing
from profrun.traces.trace import Trace

_BATCH = 20_000
_MAX_PID = 2**31 - 1
NESTING = ("thread",)
"""Track kinds whose slices may nest; on all others an overlap is work side by side."""


@dataclass(frozen=True)
class ExportResult:
    """What was written.

    Attributes:
        slices: slices and instants.
        tracks_added: further tracks of the file for slices that overlap without nesting.
        counters: counter samples.
        flows: arrows from a launch to what it launched on a GPU.
        path: the file.
        shift_ns: added to every time in the file (Chrome: so that it starts at 0; Perfetto: only when times
            before 0 must be written).
    """

    slices: int
    tracks_added: int
    counters: int
    flows: int
    path: Path
    shift_ns: int = 0


@dataclass
class FileTracks:
    """Distributes the slices of one track of the trace over tracks of the file.

    Attributes:
        nests: slices may lie inside one another on a track of the file.
        open: for each track of the file, ends of the slices that are open on it (ns), outermost first.
    """

    nests: bool
    open: list[list[int]] = field(default_factory=list)

    def place(self, start: int, end: int) -> tuple[int, list[tuple[int, int]]]:
        """Choose a track for the slice [start, end), in ns.

        Returns:
            The index of the track, and the ends to be written before this slice begins: pairs of track, ns.
        """
        ends: list[tuple[int, int]] = []
        for number, stack in enumerate(self.open):
            while stack and stack[-1] <= start:
                ends.append((number, stack.pop()))
            if not stack or (self.nests and end <= stack[-1]):
                stack.append(end)
                return number, ends
        self.open.append([end])
        return len(self.open) - 1, ends

    def rest(self) -> list[tuple[int, int]]:
        """Ends of all slices that are still open, inner ones first: pairs of track and ns."""
        return [(number, end) for number, stack in enumerate(self.open) for end in reversed(stack)]


def export(trace: Trace, out: Path, to: Literal["perfetto", "chrome"]) -> ExportResult:
    """Write ``trace`` for a viewer; gzip when the name ends in .gz.

    Rows are streamed: memory holds one batch, the distinct names, and what the engine needs to sort numbers.

    Times: Perfetto gets int64 ns as they are; Chrome microseconds with three decimals from the trace's
    start, exact to the ns below 104 days.

    Raises:
        UsageError: an unknown format, or the file exists.
        UnavailableError: the file cannot be written.
    """
    out = Path(out)
    if to not in ("perfetto", "chrome"):
        raise UsageError(f"unknown export format {to!r}", fix="use perfetto or chrome")
    refuse_existing(out)
    first = trace.sql(
        f"SELECT min(t) FROM (SELECT min(ts_ns) AS t FROM slices UNION ALL SELECT min(ts_ns) FROM ({_KEPT}))"
    ).scalar()
    start = int(first) if first is not None else 0
    shift = -start if to == "chrome" or start < 0 else 0
    with new_file(out) as file:
        sink: Sink = ChromeSink(file, trace.meta, shift) if to == "chrome" else PerfettoSink(file)
        result = _write(trace, sink, shift, out)
        sink.close()
    return result


def _write(trace: Trace, sink: Sink, shift: int, out: Path) -> ExportResult:
    """Hand the whole trace to ``sink``, with ``shift`` ns added to every time."""
    processes = _processes(trace)
    for process in processes.values():
        sink.process(process)
    tracks = _tracks(trace)
    slices = tracks_added = flows = 0
    track = -1
    placing = FileTracks(False)
    numbers: list[int] = []  # of the tracks in the file that the current track of the trace has
    free = 1 + max(tracks, default=0)  # the first track in the file has the number of the trace's track

    def finish() -> None:
        for place, end in placing.rest():
            sink.end(numbers[place], end + shift)

    for at, item in _slices(trace):
        if at != track:
            finish()
            track, placing, numbers = at, FileTracks(tracks[at].kind in NESTING), []
        place, ends = placing.place(item.ts_ns, item.ts_ns + item.dur_ns)
        for ended, end in ends:
            sink.end(numbers[ended], end + shift)
        if place == len(numbers):
            extra = bool(numbers)
            numbers.append(free if extra else track)
            free += extra
            tracks_added += extra
            name = tracks[track].name + (f" ({len(numbers)})" if extra else "")
            sink.track(numbers[place], processes[tracks[track].process], name, 1000 * track + place)
        item.ts_ns += shift
        sink.begin(numbers[place], item)
        slices += 1
        flows += len(item.flows_out)
    finish()
    counters = _counters(trace, sink, processes, tracks, shift, free)
    return ExportResult(slices, tracks_added, counters, flows, out, shift)


def _processes(trace: Trace) -> dict[int, Process]:
    """Processes with pids that are unique in the file: a pid that two processes have, or none, is
    replaced."""
    rows = trace.sql("SELECT process, pid, rank, name FROM processes ORDER BY process").rows
    named = labels(trace)
    pids = [pid for _, pid, _, _ in rows]
    taken = set(pids)
    found: dict[int, Process] = {}
    free = 1_000_000
    for number, pid, rank, name in rows:
        shown = pid
        if not 0 < pid <= _MAX_PID or pids.count(pid) > 1:
            while free in taken:
                free += 1
            shown = free
            taken.add(free)
        label = name or "process"
        if len(rows) > 1:
            label = f"{named.rank(rank)}: {label}" + (f" (pid {pid})" if shown != pid else "")
        found[number] = Process(number, shown, label)
    return found


@dataclass(frozen=True)
class _Track:
    kind: str
    process: int
    name: str


def _tracks(trace: Trace) -> dict[int, _Track]:
    rows = trace.sql("SELECT track, kind, process, name, native_id, device FROM tracks ORDER BY track").rows
    found, gpus = {}, labels(trace).gpus
    for track, kind, process, name, native, device in rows:
        label = name or f"{kind} {native if native is not None else track}"
        found[track] = _Track(kind, process, label if device is None else f"{gpus[device]} {label}")
    return found


_ARGS = ("grid", "block", "registers", "graph", "direction", "bytes", "shapes", "slice", "correlation")
"""What the viewer shows beside a slice: the last columns of ``_QUERY``, where they are not NULL."""


def _sizes(name: str) -> str:
    """SQL that joins the sizes of a grid or block: '132, 1, 1', with '?' for a size that is not known."""
    rest = ", ".join(f"coalesce(k.{name}_{axis}::VARCHAR, '?')" for axis in "yz")
    return f"CASE WHEN k.{name}_x IS NOT NULL THEN concat_ws(', ', k.{name}_x, {rest}) END"


_QUERY = f"""
SELECT s.track, s.kind, n.id, s.ts_ns, s.dur_ns, f.flows,
    CASE WHEN s.launch IS NOT NULL THEN s.slice + 1 END,
    {_sizes("grid")}, {_sizes("block")}, k.registers, k.graph, c.direction, c.bytes, o.shapes,
    s.slice, s.correlation
FROM slices s
JOIN export_name n ON n.name = s.name
LEFT JOIN (
    SELECT launch, list(slice + 1 ORDER BY slice) AS flows FROM slices
    WHERE launch IS NOT NULL GROUP BY launch
) f ON f.launch = s.slice
LEFT JOIN kernels k ON k.slice = s.slice
LEFT JOIN copies c ON c.slice = s.slice
LEFT JOIN ops o ON o.slice = s.slice
ORDER BY s.track, s.ts_ns, s.dur_ns DESC, coalesce(s.depth, 0), s.slice
"""


_KEPT = f"""
SELECT * EXCLUDE (low, high) FROM (
    SELECT *, max(ts_ns) FILTER (ts_ns <= (SELECT min(ts_ns) FROM slices)) OVER counter AS low,
        min(ts_ns) FILTER (ts_ns >= (SELECT max(ts_ns + dur_ns) FROM slices)) OVER counter AS high
    FROM counters WHERE track IN (SELECT track FROM tracks WHERE name = '{TRACK}' AND kind = 'counter')
    WINDOW counter AS (PARTITION BY track, name)
) WHERE ts_ns >= coalesce(low, ts_ns) AND ts_ns <= coalesce(high, ts_ns)
UNION ALL
FROM counters WHERE track NOT IN (SELECT track FROM tracks WHERE name = '{TRACK}' AND kind = 'counter')
"""
"""The counters that are exported. Samples of the whole trial would make a viewer zoom out from a window of
10 ms to a run of minutes: those within the slices count, and one on either side."""


def _slices(trace: Trace) -> Iterator[tuple[int, Slice]]:
    """(track, slice) in the order of tracks and time. The id of an arrow is its GPU slice's number + 1."""
    cursor = trace.tables.cursor()
    try:
        # names are sorted and joined as numbers: a kernel's may have thousands of characters
        cursor.execute(
            "CREATE TEMP TABLE export_name AS SELECT (row_number() OVER ()) - 1 AS id, name "
            "FROM (SELECT DISTINCT name FROM slices)"
        )
        names = [row[0] for row in cursor.execute("SELECT name FROM export_name ORDER BY id").fetchall()]
        cursor.execute(_QUERY)
        while rows := cursor.fetchmany(_BATCH):
            for track, kind, name_id, ts, dur, flows_out, flow_in, *more in rows:
                args = {key: value for key, value in zip(_ARGS, more, strict=True) if value is not None}
                yield track, Slice(kind, names[name_id], ts, dur, flows_out or [], flow_in, args)
    finally:
        cursor.close()


def _counters(
    trace: Trace, sink: Sink, processes: dict[int, Process], tracks: dict[int, _Track], shift: int, free: int
) -> int:
    """Write all counter samples; ``free`` is the first free number of a track in the file. Returns how
    many."""
    cursor = trace.tables.cursor()
    numbers: dict[tuple[int, str], int] = {}
    count = 0
    seen = {
        int(track): reasons_in(int(mask))
        for track, mask in cursor.execute(
            f"SELECT track, bit_or(value::BIGINT) FROM ({_KEPT}) WHERE name = ? AND unit = ? GROUP BY track",
            [MEANINGS["reasons"].name, MEANINGS["reasons"].unit],
        ).fetchall()
    }
    try:
        cursor.execute(f"SELECT track, name, unit, ts_ns, value FROM ({_KEPT}) ORDER BY track, name, ts_ns")
        while rows := cursor.fetchmany(_BATCH):
            for track, name, unit, ts, value in _reasons_apart(rows, seen):
                if track not in tracks:
                    raise InputError(
                        f"counter {name!r} is on track {track}, which is not there",
                        fix="normalize the source again",
                    )
                owner = tracks[track].name.removesuffix(TRACK).rstrip()
                label = name if owner in (name, "") else f"{owner}: {name}"
                if (track, name) not in numbers:
                    number = numbers[(track, name)] = free + len(numbers)
                    sink.counter_track(number, processes[tracks[track].process], label, unit, 1000 * track)
                sink.sample(numbers[(track, name)], ts + shift, label, value)
                count += 1
    finally:
        cursor.close()
    return count


def _reasons_apart(
    rows: Iterable[tuple[int, str, str, int, float]], seen: Mapping[int, Sequence[Reason]]
) -> Iterator[tuple[int, str, str, int, float]]:
    """The same samples, those of reasons as one counter of 0 and 1 for each reason that occurs on the track.

    Args:
        rows: track, name, unit, time, value.
        seen: track -> the reasons that occur on it.
    """
    mask = MEANINGS["reasons"]
    for track, name, unit, ts, value in rows:
        if (name, unit) != (mask.name, mask.unit):
            yield track, name, unit, ts, value
            continue
        for reason in seen[track]:
            yield track, f"{name} {reason}", "1", ts, float(bool(int(value) & REASONS[reason]))
