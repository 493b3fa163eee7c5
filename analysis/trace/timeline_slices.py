"""The slices of one or two typical steps, placed in rows of their tracks: what a timeline view draws.

``timeline_slices`` is given a trace and returns a ``Timeline``, or None for a trace without slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from profrun.analysis.trace.steps import steps
from profrun.traces.labels import labels

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

KINDS = ("op", "range", "step", "api", "kernel", "memcpy", "memset", "sync", "overhead")
"""Kinds of the slices, in the order of ``TimelineSlice.kind``. Python frames are left out."""
MOST_ROWS = 24
"""Most rows of one track; deeper slices share the last row."""
STEPS = 2
"""Most steps of the window."""

_INSIDE = "ts_ns <= ? AND ts_ns + dur_ns >= ?"
_SLICES = f"""SELECT s.slice, s.kind, s.name, s.ts_ns, s.dur_ns, s.track, s.depth, s.launch
FROM slices s JOIN tracks t USING (track)
WHERE {_INSIDE} AND s.kind != 'python' AND NOT (t.device IS NOT NULL AND s.kind IN ('range', 'step'))
ORDER BY s.kind IN ('kernel', 'memcpy', 'memset', 'step') DESC, s.dur_ns DESC, s.slice LIMIT ?"""
_TRACKS = """SELECT t.track, t.kind, t.name, t.native_id, t.device, p.rank,
(SELECT count(*) FROM processes) AS processes FROM tracks t JOIN processes p USING (process)
ORDER BY p.rank, t.device IS NOT NULL, t.device, t.track"""


class TimelineTrack(NamedTuple):
    """A thread or stream: its name in words, and how many rows its slices take."""

    name: str
    rows: int


class TimelineSlice(NamedTuple):
    """A slice.

    Attributes:
        track, row: where it is drawn; the track as an index of ``Timeline.tracks``.
        start_ns, dur_ns: start from the start of the window, and duration.
        name, kind: indices of ``Timeline.names`` and ``KINDS``.
        launch: index in ``Timeline.slices`` of the slice that launched it, -1 where that is not shown.
    """

    track: int
    row: int
    start_ns: int
    dur_ns: int
    name: int
    kind: int
    launch: int


@dataclass(frozen=True)
class Timeline:
    """The slices of a window of a trace.

    Attributes:
        label: which part of the recording the window is, in words.
        start_ns, span_ns: the window on the time axis of the trace.
        tracks: threads and streams with a slice, the host's before the GPUs' of each rank.
        names: the names of the slices, each once; kinds: their kinds, ``KINDS``.
        slices: by start.
        total: slices in the window; python: how many of them are Python frames, which are never kept.
    """

    label: str
    start_ns: int
    span_ns: int
    tracks: list[TimelineTrack]
    names: list[str]
    slices: list[TimelineSlice]
    total: int
    python: int
    kinds: Sequence[str] = KINDS


class _Slice(NamedTuple):
    """A row of ``_SLICES``."""

    slice: int
    kind: str
    name: str
    ts_ns: int
    dur_ns: int
    track: int
    depth: int | None
    launch: int | None


def timeline_slices(trace: Trace, *, most: int = 4000) -> Timeline | None:
    """Take the window of up to ``STEPS`` typical steps (without steps: everything) and its longest slices.

    Args:
        trace: any trace.
        most: slices to keep. GPU work and steps are kept first, then the longest.
    """
    window = _window(trace)
    if window is None:
        return None
    start, end, label = window
    count = f"SELECT count(*), count(*) FILTER (kind = 'python') FROM slices WHERE {_INSIDE}"
    total, python = trace.sql(count, (end, start)).rows[0]
    kept = [_Slice(*row) for row in trace.sql(_SLICES, (end, start, most)).rows]
    kept.sort(key=lambda one: (one.ts_ns, -one.dur_ns, one.slice))
    tracks = _tracks(trace, {one.track for one in kept})
    rows = _rows(kept, {track for track, (_, on_host) in tracks.items() if on_host})
    track_index = {track: index for index, track in enumerate(tracks)}
    slice_index = {one.slice: index for index, one in enumerate(kept)}
    names = {name: index for index, name in enumerate(dict.fromkeys(one.name for one in kept))}
    slices = [
        TimelineSlice(
            track=track_index[one.track],
            row=row,
            start_ns=one.ts_ns - start,
            dur_ns=one.dur_ns,
            name=names[one.name],
            kind=KINDS.index(one.kind),
            launch=-1 if one.launch is None else slice_index.get(one.launch, -1),
        )
        for one, row in zip(kept, rows, strict=True)
    ]
    heights = [1] * len(tracks)
    for one in slices:
        heights[one.track] = max(heights[one.track], one.row + 1)
    named = [TimelineTrack(name, height) for (name, _), height in zip(tracks.values(), heights, strict=True)]
    return Timeline(label, start, max(end - start, 1), named, list(names), slices, int(total), int(python))


def _window(trace: Trace) -> tuple[int, int, str] | None:
    """(start, end, label): the step of median duration and the one after it, else the whole recording."""
    found = steps(trace)
    if not found:
        low, high = trace.sql("SELECT min(ts_ns), max(ts_ns + dur_ns) FROM slices").rows[0]
        return None if low is None else (int(low), int(high), "the whole recording (it has no steps)")
    found = [step for step in found if step.process == found[0].process]
    typical = sorted(range(len(found)), key=lambda place: found[place].dur_ns)[len(found) // 2]
    first = min(typical, max(len(found) - STEPS, 0))
    chosen = found[first : first + STEPS]
    end = max(step.ts_ns + max(step.dur_ns, step.span_ns) for step in chosen)
    numbers = " and ".join(str(step.step) for step in chosen)
    word = "steps" if len(chosen) > 1 else "step"
    return chosen[0].ts_ns, end, f"{word} {numbers} of {len(found)} recorded"


def _tracks(trace: Trace, used: set[int]) -> dict[int, tuple[str, bool]]:
    """The tracks in ``used`` in the order in which they are drawn: track id -> (name, on the host)."""
    found, named = {}, labels(trace)
    for track, kind, name, native_id, device, rank, processes in trace.sql(_TRACKS).rows:
        if track not in used:
            continue
        number = "" if native_id is None else f" {native_id}"
        label = name or f"{kind}{number}"
        if device is not None:
            label = f"{named.gpus[device]} {kind}{number}"
        elif processes > 1:
            label = f"{named.rank(rank)}: {label}"
        found[int(track)] = (label, device is None)
    return found


def _rows(kept: Sequence[_Slice], host: set[int]) -> list[int]:
    """The row of each slice in its track: the nesting depth on the host, the first free row on a GPU.

    Args:
        kept: slices by start.
        host: tracks of the host.
    """
    least: dict[int, int] = {}
    for one in kept:
        if one.track in host and one.depth is not None:
            least[one.track] = min(one.depth, least.get(one.track, one.depth))
    ends: dict[int, list[int]] = {}  # of each track: the end of the last slice in each row
    found = []
    for one in kept:
        if one.track in host and one.depth is not None:
            row = one.depth - least[one.track]
        else:
            rows = ends.setdefault(one.track, [])
            row = next((row for row, end in enumerate(rows) if end <= one.ts_ns), len(rows))
            rows[row : row + 1] = [one.ts_ns + one.dur_ns]
        found.append(min(row, MOST_ROWS - 1))
    return found
