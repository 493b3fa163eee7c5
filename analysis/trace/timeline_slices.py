"""The slices and counters of a whole trace, placed in rows of their tracks: what a timeline view draws.

``timeline_slices`` is given a trace and returns a ``Timeline``, or None for a trace without slices. Its
values are numpy arrays with one element per slice; no slice becomes a Python object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.frame import KIND, UNUSED, Frame, Index, frame
from profrun.analysis.trace.roles import COMM, MEMCPY, MEMSET, roles
from profrun.analysis.trace.step_spread import step_spread
from profrun.analysis.trace.steps import denominator, steps
from profrun.analysis.trace.timeline_counters import TimelineCounter, timeline_counters
from profrun.analysis.trace.timeline_details import details
from profrun.analysis.trace.timeline_rows import place
from profrun.analysis.trace.wall_time import is_dataloader, is_host_collective
from profrun.contract.denominator import Denominator
from profrun.traces.labels import labels
from profrun.traces.nest import depths
from profrun.traces.schema import GPU_TRACKS

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

CATEGORIES = (
    "kernel", "memcpy", "memset", "comm", "runtime", "dataloader", "cpu_op", "range", "step", "sync",
    "python", "overhead",
)  # fmt: skip
"""What a slice is, by the numbers of ``Timeline.category``. Names of ``Step.wall_ns`` mean the same there."""
STEPS = 2
"""Steps of the window on which a timeline opens, at most."""

TrackKind = Literal["host", "gpu", "python", "annotations"]
_BY_KIND = {
    "op": "cpu_op", "range": "range", "step": "step", "api": "runtime", "kernel": "kernel",
    "memcpy": "memcpy", "memset": "memset", "sync": "sync", "python": "python", "overhead": "overhead",
}  # fmt: skip
_PARTS = 3  # of a track: its slices, Python frames apart, and copies of annotations on a GPU apart


class TimelineTrack(NamedTuple):
    """A thread or stream, or a part of one.

    Attributes:
        name: in words.
        process: index of ``Timeline.processes``.
        kind: ``python``: Python frames of a thread; ``annotations``: copies of ranges on a GPU stream.
        rows: rows that its slices take, at least 1.
    """

    name: str
    process: int
    kind: TrackKind
    rows: int


class TimelineStep(NamedTuple):
    """A step: its number, index of its process, and its time with its GPU work in ns from the start."""

    number: int
    process: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class Timeline:
    """Every slice of a trace, by track, row and start.

    Attributes:
        start_ns, span_ns: first start on the time axis of the trace, and ns from there to the last end.
        processes: name of each process, by rank; tracks: in the order in which they are drawn.
        rows: int64, shape (rows of all tracks + 1,): row r has the slices from rows[r] to rows[r + 1].
        start, dur: int64 ns, shape (n,): from ``start_ns``, and duration. A start never decreases in a row.
        name: int32, shape (n,): index of ``names``.
        category: uint8, shape (n,): index of ``CATEGORIES``.
        launch: int32, shape (n,): index of the slice that launched it, -1 for none.
        slice: int64, shape (n,): its id in the trace.
        detail: int32, shape (n,): index of ``details``, -1 for none.
        names, details: texts, each once.
        counters: samples over time.
        steps: of every process, in time order within each; window: (start, end, label) of the typical ones.
        denominator: what the one step is where it is a run.
        total: slices of the trace; python: Python frames among those that are left out.
    """

    start_ns: int
    span_ns: int
    processes: list[str]
    tracks: list[TimelineTrack]
    rows: Ints
    start: Ints
    dur: Ints
    name: NDArray[np.int32]
    category: NDArray[np.uint8]
    launch: NDArray[np.int32]
    slice: Ints
    detail: NDArray[np.int32]
    names: list[str]
    details: list[str]
    counters: list[TimelineCounter]
    steps: list[TimelineStep]
    window: tuple[int, int, str]
    denominator: Denominator
    total: int
    python: int

    def __len__(self) -> int:
        return len(self.start)


def timeline_slices(trace: Trace, *, most: int | None = None) -> Timeline | None:
    """Place the slices of a trace.

    Args:
        trace: any trace.
        most: slices to keep, GPU work and steps first, then the longest; None: all.
    """
    source = frame(trace)
    used = np.flatnonzero(source.kind != UNUSED)
    if not len(used):
        return None
    ids = _kept(source, used, most)
    low, high = source.extent
    key, tracks = _tracks(trace, source, ids)
    ids, key, row = _placed(source, ids, key)
    at = np.full(len(source) + 1, -1, dtype=np.int32)  # one more: a launch of -1 finds -1 there
    at[ids] = np.arange(len(ids), dtype=np.int32)
    heights = np.zeros(len(tracks), dtype=np.int64)
    np.maximum.at(heights, key, row + 1)
    first_row = np.concatenate([[0], np.cumsum(heights)])
    names, name = _renumbered(source.name[ids], source.names)
    code, texts = details(trace)
    detail_texts, detail = _renumbered(code[ids], texts)
    return Timeline(
        start_ns=low,
        span_ns=max(high - low, 1),
        processes=_processes(trace, source),
        tracks=[track._replace(rows=int(height)) for track, height in zip(tracks, heights, strict=True)],
        rows=np.searchsorted(first_row[key] + row, np.arange(int(first_row[-1]) + 1)).astype(np.int64),
        start=source.ts[ids] - low,
        dur=source.durs(ids),
        name=name,
        category=_categories(trace, source)[ids],
        launch=at[source.launch[ids]],
        slice=ids.astype(np.int64),
        detail=detail,
        names=names,
        details=detail_texts,
        counters=timeline_counters(trace, low),
        steps=_steps(trace, source, low),
        window=_window(trace, low, max(high - low, 1)),
        denominator=denominator(trace),
        total=len(used),
        python=int(np.count_nonzero((source.kind == KIND["python"]) & (at[:-1] < 0))),
    )


def _kept(source: Frame, used: Index, most: int | None) -> Index:
    """The slices to show, in the order of the file."""
    if most is not None and len(used) > most:
        first = source.kinds("kernel", "memcpy", "memset", "step")[source.kind[used]]
        first &= ~(source.on_gpu[source.track[used]] & source.is_kind(used, "step"))
        weight = np.where(first, np.iinfo(np.int64).max, source.durs(used))
        used = used[np.sort(np.argpartition(-weight, most)[:most])]
    keep = np.zeros(len(source), dtype=bool)
    keep[used] = True
    ids = source.file_order[keep[source.file_order]].astype(np.intp)
    if source.in_order:
        return ids
    return ids[np.lexsort((ids, -source.end[ids], source.ts[ids], source.track[ids]))]


def _part(source: Frame, ids: Index) -> Index:
    """The part of its track: 0 for slices, 1 for Python frames, 2 for copies of annotations on a GPU."""
    streams = np.array([kind in GPU_TRACKS for kind in source.track_kind] or [False])
    copied = streams[source.track[ids]] & source.is_kind(ids, "range", "step")
    return np.where(source.is_kind(ids, "python"), 1, np.where(copied, 2, 0)).astype(np.intp)


def _tracks(trace: Trace, source: Frame, ids: Index) -> tuple[Index, list[TimelineTrack]]:
    """The track of each slice as an index of the tracks in drawing order, and these, still without rows."""
    number = source.track[ids].astype(np.intp) * _PARTS + _part(source, ids)
    order = []
    for one in np.flatnonzero(np.bincount(number)).tolist():
        track, part = divmod(one, _PARTS)
        process = int(source.track_process[track])
        device = int(source.track_device[track])
        order.append((source.processes[process]["rank"], process, device >= 0, device, track, part))
    order.sort()
    new = np.zeros(int(number.max()) + 1, dtype=np.intp)
    names = dict(trace.sql("SELECT track, name FROM tracks").rows)
    tracks = []
    for index, (_, process, on_gpu, _, track, part) in enumerate(order):
        new[track * _PARTS + part] = index
        kind: TrackKind = (
            "python" if part == 1 else "annotations" if part == 2 else "gpu" if on_gpu else "host"
        )
        text = (
            _track_name(trace, source, track, names.get(track))
            + ("", ": Python frames", ": annotations")[part]
        )
        tracks.append(TimelineTrack(text, source.by_rank.index(process), kind, 0))
    return new[number], tracks


def _processes(trace: Trace, source: Frame) -> list[str]:
    found = []
    for number in source.by_rank:
        row = source.processes[number]
        host = f" on {row['host']}" if row["host"] else ""
        found.append(f"{labels(trace).rank(row['rank'])}, pid {row['pid']}{host}")
    return found


def _track_name(trace: Trace, source: Frame, track: int, name: str | None) -> str:
    """What a thread or stream is called."""
    native, kind, device = source.track_native[track], source.track_kind[track], source.track_device[track]
    number = "" if native is None else f" {native}"
    if device >= 0:
        gpu = labels(trace).gpus[int(device)]
        return f"{gpu} {name}" if name and native is None else f"{gpu} {kind}{number}"
    process = source.processes[int(source.track_process[track])]
    rank = f"{labels(trace).rank(process['rank'])}: " if len(source.processes) > 1 else ""
    return f"{rank}{name or f'{kind}{number}'}"


def _placed(source: Frame, ids: Index, key: Index) -> tuple[Index, Index, Index]:
    """The slices by track, row and start; and the track and row of each.

    Args:
        source: the frame.
        ids: slices by track of the trace, start, and longest first.
        key: track of each in drawing order.
    """
    order = np.argsort(key, kind="stable")
    ids, key = ids[order], key[order]
    on_host = ~source.on_gpu[source.track[ids]]
    wanted = np.zeros(len(source), dtype=np.int32)
    for kinds in (("python",), tuple(kind for kind in KIND if kind != "python")):
        mine = source.kinds(*kinds)[source.kind] & ~source.on_gpu[source.track]
        if mine.any():
            found = depths(source.nearest(*kinds))
            wanted[mine] = found[mine]
    depth = np.where(on_host, wanted[ids], 0).astype(np.int32)
    row = place(key, depth, source.ts[ids], source.end[ids])
    order = np.argsort(key * (int(row.max()) + 1) + row, kind="stable")
    return ids[order], key[order], row[order].astype(np.intp)


def _renumbered(codes: NDArray[np.int32], texts: list[str]) -> tuple[list[str], NDArray[np.int32]]:
    """The texts that are used, in their order, and the codes as indices of these; -1 stays."""
    count = np.bincount(codes[codes >= 0], minlength=len(texts)) > 0
    new = np.append(np.cumsum(count) - 1, -1).astype(np.int32)
    return [texts[number] for number in np.flatnonzero(count).tolist()], new[codes]


def _categories(trace: Trace, source: Frame) -> NDArray[np.uint8]:
    """Category of every slice, by slice id."""
    table = np.zeros(256, dtype=np.uint8)
    for kind, category in _BY_KIND.items():
        table[KIND[kind]] = CATEGORIES.index(category)
    found = table[source.kind]
    role = roles(trace)
    for code, category in ((COMM, "comm"), (MEMCPY, "memcpy"), (MEMSET, "memset")):
        found[role == code] = CATEGORIES.index(category)
    every = np.flatnonzero(source.kinds("op", "range")[source.kind])
    found[every[source.named(every, is_dataloader)]] = CATEGORIES.index("dataloader")
    found[every[source.named(every, is_host_collective)]] = CATEGORIES.index("comm")
    return found


def _steps(trace: Trace, source: Frame, low: int) -> list[TimelineStep]:
    place_of = {process: index for index, process in enumerate(source.by_rank)}
    return [
        TimelineStep(
            step.step,
            place_of[step.process],
            step.ts_ns - low,
            step.ts_ns - low + max(step.dur_ns, step.span_ns),
        )
        for step in steps(trace)
    ]


def _window(trace: Trace, low: int, span: int) -> tuple[int, int, str]:
    """(start, end, label): the typical step and the next one of its process, else the whole recording."""
    every = steps(trace)
    if not every:
        return 0, span, "the whole recording (it has no steps)"
    of = denominator(trace)
    if not of.several:
        end = max(step.ts_ns + max(step.dur_ns, step.span_ns) for step in every)
        return every[0].ts_ns - low, end - low, of.the
    spread = step_spread(every)
    typical = spread.typical if spread else every[0]
    found = [step for step in every if step.process == typical.process]
    first = min(found.index(typical), max(len(found) - STEPS, 0))
    chosen = found[first : first + STEPS]
    numbers = " and ".join(str(step.step) for step in chosen)
    word = "steps" if len(chosen) > 1 else "step"
    recorded = f"{len(found)} steps are recorded" if len(found) > 1 else "1 step is recorded"
    end = max(step.ts_ns + max(step.dur_ns, step.span_ns) for step in chosen)
    return chosen[0].ts_ns - low, end - low, f"{word} {numbers} ({recorded})"
