"""The timeline view: the slices of a few steps as tracks x time, drawn by the page's script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from profrun.contract.units import count_text, time_text
from profrun.reports.html import Html, data_script, el

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

KINDS = ("op", "range", "step", "api", "kernel", "memcpy", "memset", "sync", "overhead")
"""Kinds drawn, in the order of their numbers in the data. Python frames are left out; the page says so."""
HOST_ROWS = 24
STEPS = 2


@dataclass(frozen=True)
class Timeline:
    """Slices of a window; times ns from ``start_ns``.

    Attributes:
        label: which part of the recording, in words.
        start_ns, span_ns: the window on the trace's axis.
        tracks: name and number of rows of each lane.
        names: slice names.
        slices: (track, row, start, duration, name, kind, place of the launching slice or -1).
        total: slices in the window; ``python``: Python frames among those not drawn.
    """

    label: str
    start_ns: int
    span_ns: int
    tracks: list[tuple[str, int]]
    names: list[str]
    slices: list[tuple[int, int, int, int, int, int, int]]
    total: int
    python: int


def timeline_of(trace: Trace, *, most: int = 4000) -> Timeline | None:
    """Take the window of up to ``STEPS`` typical steps and its longest slices; GPU work goes first.

    Args:
        most: slices to keep; ``total`` says how many there were.
    """
    window = _window(trace)
    if window is None:
        return None
    start, end, label = window
    inside = "ts_ns <= ? AND ts_ns + dur_ns >= ?"
    counts = dict(
        trace.sql(
            f"SELECT kind = 'python', count(*) FROM slices WHERE {inside} GROUP BY ALL", (end, start)
        ).rows
    )
    rows = trace.sql(
        "SELECT s.slice, s.kind, s.name, s.ts_ns, s.dur_ns, s.track, s.depth, s.launch "
        f"FROM slices s JOIN tracks t USING (track) WHERE {inside} AND s.kind != 'python' "
        "AND NOT (t.device IS NOT NULL AND s.kind IN ('range', 'step')) "
        "ORDER BY s.kind IN ('kernel', 'memcpy', 'memset', 'step') DESC, s.dur_ns DESC, s.slice LIMIT ?",
        (end, start, most),
    ).dicts()
    rows.sort(key=lambda row: (row["ts_ns"], -row["dur_ns"], row["slice"]))
    tracks = _tracks(trace, rows)
    place = {track["track"]: number for number, track in enumerate(tracks)}
    levels = _levels(rows, tracks)
    names = {name: number for number, name in enumerate(dict.fromkeys(row["name"] for row in rows))}
    at = {row["slice"]: number for number, row in enumerate(rows)}
    slices = [
        (
            place[row["track"]], level, row["ts_ns"] - start, row["dur_ns"], names[row["name"]],
            KINDS.index(row["kind"]), at.get(row["launch"], -1),
        )
        for row, level in zip(rows, levels, strict=True)
    ]  # fmt: skip
    heights = [
        1 + max((one[1] for one in slices if one[0] == number), default=0) for number in place.values()
    ]
    lanes = [(str(track["label"]), height) for track, height in zip(tracks, heights, strict=True)]
    python = int(counts.get(True, 0))
    return Timeline(
        label, start, max(end - start, 1), lanes, list(names), slices, sum(counts.values()), python
    )


def _window(trace: Trace) -> tuple[int, int, str] | None:
    """The step of median duration and the one after it; without steps the whole recording."""
    from profrun.analysis.trace.steps import steps

    found = steps(trace)
    if not found:
        low, high = trace.sql("SELECT min(ts_ns), max(ts_ns + dur_ns) FROM slices").rows[0]
        return None if low is None else (int(low), int(high), "the whole recording (it has no steps)")
    found = [step for step in found if step.process == found[0].process]
    typical = sorted(range(len(found)), key=lambda place: found[place].dur_ns)[len(found) // 2]
    first = min(typical, max(len(found) - STEPS, 0))
    chosen = found[first : first + STEPS]
    end = max(step.ts_ns + max(step.dur_ns, step.span_ns) for step in chosen)
    number = " and ".join(str(step.step) for step in chosen)
    word = "steps" if len(chosen) > 1 else "step"
    return chosen[0].ts_ns, end, f"{word} {number} of {len(found)} recorded"


def _tracks(trace: Trace, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The lanes that hold a drawn slice, host lanes of a rank before its GPU lanes."""
    used = {row["track"] for row in rows}
    every = trace.sql(
        "SELECT t.track, t.kind, t.name, t.native_id, t.device, p.rank, "
        "(SELECT count(*) FROM processes) AS processes FROM tracks t JOIN processes p USING (process) "
        "ORDER BY p.rank, t.device IS NOT NULL, t.device, t.track"
    ).dicts()
    found = [track for track in every if track["track"] in used]
    for track in found:
        number = "" if track["native_id"] is None else f" {track['native_id']}"
        label = track["name"] or f"{track['kind']}{number}"
        if track["device"] is not None:
            label = f"GPU {track['device']} {track['kind']}{number}"
        track["label"] = f"rank {track['rank']}: {label}" if track["processes"] > 1 else label
    return found


def _levels(rows: Sequence[Mapping[str, Any]], tracks: Sequence[Mapping[str, Any]]) -> list[int]:
    """The row of each slice in its lane: the nesting depth on host lanes, the first free row on GPU lanes."""
    host = {track["track"] for track in tracks if track["device"] is None}
    least: dict[int, int] = {}
    for row in rows:
        if row["track"] in host and row["depth"] is not None:
            least[row["track"]] = min(row["depth"], least.get(row["track"], row["depth"]))
    free: dict[int, list[int]] = {}
    found = []
    for row in rows:
        track = row["track"]
        if track in host and row["depth"] is not None:
            found.append(min(row["depth"] - least[track], HOST_ROWS - 1))
            continue
        ends = free.setdefault(track, [])
        level = next((place for place, end in enumerate(ends) if end <= row["ts_ns"]), len(ends))
        ends[level : level + 1] = [row["ts_ns"] + row["dur_ns"]]
        found.append(min(level, HOST_ROWS - 1))
    return found


def timeline_html(timeline: Timeline, key: str) -> Html:
    """The view: a canvas with buttons, what was left out in words, and the data for the script."""
    left = timeline.total - len(timeline.slices)
    said = (
        f"{timeline.label}, {time_text(timeline.span_ns)}: {count_text(len(timeline.slices))} slices shown "
        f"of {count_text(timeline.total)}"
    )
    if left:
        python = f", {count_text(timeline.python)} of them Python frames" if timeline.python else ""
        said += (
            f" (left out{python}: the shortest host slices, and copies of annotations on the GPU; "
            "`profrun open` has all)"
        )
    buttons = (("in", "+", "zoom in"), ("out", "−", "zoom out"), ("left", "←", "earlier"),
               ("right", "→", "later"), ("reset", "all", "whole window"))  # fmt: skip
    return el(
        "div",
        el("p", said, class_="note"),
        el(
            "div",
            *(el("button", text, type="button", data_do=do, title=tip) for do, text, tip in buttons),
            el("span", class_="range"),
            class_="tools",
        ),
        el(
            "canvas", "a timeline needs a browser with JavaScript; the tables hold the same numbers",
            tabindex="0", role="img",
            aria_label=f"timeline of {timeline.label}; arrow keys move, plus and minus zoom, 0 shows all",
        ),
        el("output", "click a slice for its name, start and duration; dragging moves, then the wheel zooms",
           class_="picked", aria_live="polite"),
        data_script(
            f"{key}-timeline-data",
            {"span": timeline.span_ns, "tracks": timeline.tracks, "names": timeline.names, "kinds": KINDS,
             "slices": timeline.slices},
        ),
        class_="timeline", data_timeline=f"{key}-timeline-data",
    )  # fmt: skip
