"""Export a trace for viewers: Perfetto's protobuf, or Chrome's JSON. No slice is lost on the way.

Viewers draw one stack of slices a track and drop or cut what does not nest. Slices of a host thread nest
as they are; whatever crosses, and every overlap on a GPU lane, goes to a further lane beside the first.
Processes of different ranks or containers may have the same pid: those get one of their own in the file.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal, Protocol, cast

from profrun.errors import InputError, UnavailableError, UsageError
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
        lanes_added: further lanes for slices that overlap without nesting.
        counters: counter samples.
        flows: arrows from a launch to what it launched on a GPU.
        path: the file.
        shift_ns: added to every time in the file (Chrome: so that it starts at 0; Perfetto: only when times
            before 0 must be written).
    """

    slices: int
    lanes_added: int
    counters: int
    flows: int
    path: Path
    shift_ns: int = 0


@dataclass
class Process:
    """A process as the file shows it: ``pid`` is unique in the file."""

    number: int
    pid: int
    name: str


@dataclass
class Slice:
    """One slice on its way out; ``flows`` are ids of arrows that begin or end here."""

    kind: str
    name: str
    ts_ns: int
    dur_ns: int
    flows_out: list[int]
    flow_in: int | None
    args: dict[str, Any]


class Sink(Protocol):
    """A file format. Called track by track; slices of a lane come with increasing starts."""

    def process(self, process: Process) -> None:
        """Announce a process."""

    def lane(self, lane: int, process: Process, name: str, order: int) -> None:
        """Announce a lane (unique number) of a process."""

    def begin(self, lane: int, item: Slice) -> None:
        """A slice begins."""

    def end(self, lane: int, ts_ns: int) -> None:
        """The innermost slice of a lane ends."""

    def counter_track(self, lane: int, process: Process, name: str, unit: str, order: int) -> None:
        """Announce a counter."""

    def sample(self, lane: int, ts_ns: int, name: str, value: float) -> None:
        """A counter's value from this time on."""

    def close(self) -> None:
        """Write what is left."""


@dataclass
class Lanes:
    """Distributes the slices of one track over lanes.

    Attributes:
        nests: slices may lie inside one another on a lane.
        open: for each lane, ends of the slices that are open on it, outermost first.
    """

    nests: bool
    open: list[list[int]] = field(default_factory=list)

    def place(self, start: int, end: int) -> tuple[int, list[tuple[int, int]]]:
        """(lane, ends to be written before this slice begins: pairs of lane and time)."""
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
        """Ends of all that is still open, inner ones first."""
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
    from profrun.traces.export_chrome import ChromeSink
    from profrun.traces.export_perfetto import PerfettoSink

    out = Path(out)
    if to not in ("perfetto", "chrome"):
        raise UsageError(f"unknown export format {to!r}", fix="use perfetto or chrome")
    if out.exists():
        raise UsageError(f"{out} exists already", fix="name another file or remove it")
    first = trace.sql(
        "SELECT min(t) FROM (SELECT min(ts_ns) AS t FROM slices UNION ALL SELECT min(ts_ns) FROM counters)"
    ).scalar()
    start = int(first) if first is not None else 0
    shift = -start if to == "chrome" or start < 0 else 0
    partial = out.with_name(out.name + ".partial")
    try:
        with _open(partial, compressed=out.suffix == ".gz") as file:
            sink: Sink = ChromeSink(file, trace.meta, shift) if to == "chrome" else PerfettoSink(file)
            result = _write(trace, sink, shift, out)
            sink.close()
        partial.replace(out)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise UnavailableError(
            f"{out} cannot be written", why=error.strerror, fix="free space or name another"
        ) from error
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return result


def _open(path: Path, *, compressed: bool) -> IO[bytes]:
    if compressed:
        return cast("IO[bytes]", gzip.open(path, "wb", compresslevel=5))
    return path.open("wb", buffering=1 << 20)


def _write(trace: Trace, sink: Sink, shift: int, out: Path) -> ExportResult:
    processes = _processes(trace)
    for process in processes.values():
        sink.process(process)
    tracks = _tracks(trace)
    slices = lanes_added = flows = 0
    track = -1
    lanes = Lanes(False)
    numbers: list[int] = []
    free = 1 + max(tracks, default=0)  # the first lane of a track has its number

    def finish(done: Lanes, of: list[int]) -> None:
        for lane, end in done.rest():
            sink.end(of[lane], end + shift)

    for at, item in _slices(trace):
        if at != track:
            finish(lanes, numbers)
            track, lanes, numbers = at, Lanes(tracks[at].kind in NESTING), []
        place, ends = lanes.place(item.ts_ns, item.ts_ns + item.dur_ns)
        for lane, end in ends:
            sink.end(numbers[lane], end + shift)
        if place == len(numbers):
            extra = bool(numbers)
            numbers.append(free if extra else track)
            free += extra
            lanes_added += extra
            name = tracks[track].name + (f" ({len(numbers)})" if extra else "")
            sink.lane(numbers[place], processes[tracks[track].process], name, 1000 * track + place)
        item.ts_ns += shift
        sink.begin(numbers[place], item)
        slices += 1
        flows += len(item.flows_out)
    finish(lanes, numbers)
    counters = _counters(trace, sink, processes, tracks, shift, free)
    return ExportResult(slices, lanes_added, counters, flows, out, shift)


def _processes(trace: Trace) -> dict[int, Process]:
    """Processes with pids that are unique in the file; a pid met twice, or none, is replaced."""
    rows = trace.sql("SELECT process, pid, rank, name FROM processes ORDER BY process").rows
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
            label = f"rank {rank}: {label}" + (f" (pid {pid})" if shown != pid else "")
        found[number] = Process(number, shown, label)
    return found


@dataclass(frozen=True)
class _Track:
    kind: str
    process: int
    name: str


def _tracks(trace: Trace) -> dict[int, _Track]:
    rows = trace.sql(
        "SELECT t.track, t.kind, t.process, t.name, t.native_id, d.ordinal FROM tracks t "
        "LEFT JOIN devices d USING (device) ORDER BY t.track"
    ).rows
    found = {}
    for track, kind, process, name, native, ordinal in rows:
        label = name or f"{kind} {native if native is not None else track}"
        found[track] = _Track(kind, process, label if ordinal is None else f"GPU {ordinal} {label}")
    return found


_QUERY = """
SELECT s.track, s.kind, n.id, s.ts_ns, s.dur_ns, f.flows,
    CASE WHEN s.launch IS NULL THEN NULL ELSE s.slice END, s.slice, s.correlation,
    k.grid_x, k.grid_y, k.grid_z, k.block_x, k.block_y, k.block_z, k.registers, k.graph,
    c.direction, c.bytes, o.shapes
FROM slices s
JOIN export_name n ON n.name = s.name
LEFT JOIN (
    SELECT launch, list(slice ORDER BY slice) AS flows FROM slices WHERE launch IS NOT NULL GROUP BY launch
) f ON f.launch = s.slice
LEFT JOIN kernels k ON k.slice = s.slice
LEFT JOIN copies c ON c.slice = s.slice
LEFT JOIN ops o ON o.slice = s.slice
ORDER BY s.track, s.ts_ns, s.dur_ns DESC, coalesce(s.depth, 0), s.slice
"""


def _slices(trace: Trace) -> Iterator[tuple[int, Slice]]:
    """(track, slice) in the order of tracks and time. Arrow ids are the GPU slice's number + 1."""
    cursor = trace.con.cursor()
    try:
        # names are sorted and joined as numbers: a kernel's may have thousands of characters
        cursor.execute(
            "CREATE OR REPLACE TEMP TABLE export_name AS SELECT (row_number() OVER ()) - 1 AS id, name "
            "FROM (SELECT DISTINCT name FROM slices)"
        )
        names = [row[0] for row in cursor.execute("SELECT name FROM export_name ORDER BY id").fetchall()]
        cursor.execute(_QUERY)
        while rows := cursor.fetchmany(_BATCH):
            for track, kind, name_id, ts, dur, flows, inward, number, corr, *more in rows:
                name = names[name_id]
                args = _args(more)
                args["slice"] = number
                if corr is not None:
                    args["correlation"] = corr
                out = [gpu + 1 for gpu in flows] if flows else []
                yield track, Slice(kind, name, ts, dur, out, None if inward is None else inward + 1, args)
    finally:
        cursor.execute("DROP TABLE IF EXISTS export_name")
        cursor.close()


def _args(values: list[Any]) -> dict[str, Any]:
    gx, gy, gz, bx, by, bz, registers, graph, direction, size, shapes = values
    found: dict[str, Any] = {}
    if gx is not None:
        found["grid"] = _sizes(gx, gy, gz)
    if bx is not None:
        found["block"] = _sizes(bx, by, bz)
    for key, value in (
        ("registers", registers),
        ("graph", graph),
        ("direction", direction),
        ("bytes", size),
        ("shapes", shapes),
    ):
        if value is not None:
            found[key] = value
    return found


def _sizes(*values: int | None) -> str:
    return ", ".join("?" if value is None else str(value) for value in values)


def _counters(
    trace: Trace, sink: Sink, processes: dict[int, Process], tracks: dict[int, _Track], shift: int, free: int
) -> int:
    cursor = trace.con.cursor()
    lanes: dict[tuple[int, str], int] = {}
    count = 0
    try:
        cursor.execute("SELECT track, name, unit, ts_ns, value FROM counters ORDER BY track, name, ts_ns")
        while rows := cursor.fetchmany(_BATCH):
            for track, name, unit, ts, value in rows:
                if track not in tracks:
                    raise InputError(
                        f"counter {name!r} is on track {track}, which is not there",
                        fix="normalize the source again",
                    )
                lane = lanes.get((track, name))
                label = name if tracks[track].name == name else f"{tracks[track].name}: {name}"
                if lane is None:
                    lane = lanes[(track, name)] = free + len(lanes)
                    sink.counter_track(lane, processes[tracks[track].process], label, unit, 1000 * track)
                sink.sample(lane, ts + shift, label, value)
                count += 1
    finally:
        cursor.close()
    return count
