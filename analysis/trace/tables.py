"""Tables of ranges, runtime calls and copies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from profrun.analysis.trace.frame import Frame, Index, Ints, Mask, frame

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

MODULE = re.compile(r"^nn\.Module: (?P<path>.*) \((?P<cls>[^()]*)\)$")
"""Ranges that profrun's hook puts round modules."""
TORCH_MODULE = re.compile(r"^nn\.Module: (?P<cls>\w+)_\d+$")
"""Ranges of torch's own with_modules."""


@dataclass(frozen=True)
class RangeRow:
    """One range name; times ns, summed over calls.

    Attributes:
        name, kind: range or step.
        calls: how often.
        host_ns: host time (a range inside one of the same name is not counted twice).
        gpu_ns, gpu_slices: GPU work launched inside it on its own thread, through launches.
        adopted_ns, adopted_slices: GPU work that threads without any range (autograd's) launched while this
            was the innermost range of the main thread, or of one inside it: backward work.
        module, module_class: qualified name and class when it is the range of an nn.Module.
    """

    name: str
    kind: str
    calls: int
    host_ns: int
    gpu_ns: int
    gpu_slices: int
    adopted_ns: int
    adopted_slices: int
    module: str | None
    module_class: str | None


@dataclass(frozen=True)
class ApiRow:
    """One runtime or driver function; times ns, of host threads. ``gpu_slices``: GPU slices its calls
    enqueued."""

    name: str
    calls: int
    total_ns: int
    mean_ns: float
    p50_ns: float
    p99_ns: float
    max_ns: int
    gpu_slices: int


@dataclass(frozen=True)
class CopyRow:
    """Copies or fills of one direction and pair of memory kinds.

    Attributes:
        direction, src_kind, dst_kind, managed: as in the trace.
        calls, total_ns, bytes: bytes None when no row has them.
        gb_s: bytes / ns of the rows that have bytes (1e9 bytes a second).
        timed_bytes, timed_ns: numerator and denominator of gb_s.
    """

    direction: str
    src_kind: str | None
    dst_kind: str | None
    managed: bool | None
    calls: int
    total_ns: int
    bytes: int | None
    gb_s: float | None
    timed_bytes: int
    timed_ns: int


def innermost_range(source: Frame) -> dict[int, tuple[Index, Any]]:
    """For each process: ranges of its main thread in pre-order, and their parents among ranges."""
    key = "main_ranges"
    found: dict[int, tuple[Index, Any]] | None = source.cache.get(key)
    if found is not None:
        return found
    ids = source.of("range", "step")
    ids = ids[~source.on_gpu[source.track[ids]]]
    parent = source.nearest("range", "step")
    found = {}
    for process in np.unique(source.track_process[source.track[ids]]):
        mine = ids[source.track_process[source.track[ids]] == process]
        tracks, count = np.unique(source.track[mine], return_counts=True)
        main = mine[source.track[mine] == tracks[np.argmax(count)]]
        order = np.lexsort((main, -source.end[main], source.ts[main]))
        found[int(process)] = (main[order], parent)
    source.cache[key] = found
    return found


def range_at(source: Frame, process: int, times: Ints) -> Index:
    """Innermost range of the process's main thread at each time, -1 for none."""
    entry = innermost_range(source).get(process)
    if entry is None:
        return np.full(len(times), -1, dtype=np.intp)
    ids, parent = entry
    place = np.searchsorted(source.ts[ids], times, side="right") - 1
    found = np.where(place >= 0, ids[np.maximum(place, 0)], -1).astype(np.intp)
    late = np.flatnonzero((found >= 0) & (source.end[found] <= times))
    while len(late):
        found[late] = parent[found[late]]
        late = late[(found[late] >= 0) & (source.end[found[late]] <= times[late])]
    return found


def _range_gpu(source: Frame, ids: Index) -> list[Ints]:
    """For each range: own GPU ns and slices, adopted GPU ns and slices, each over everything nested in it."""
    launched = source.launched
    calls, dur = source.launch[launched].astype(np.intp), source.durs(launched)
    with_ranges = np.zeros(len(source.track_kind), dtype=bool)
    with_ranges[source.track[source.of("range", "step")]] = True
    stray = ~with_ranges[source.track[calls]]
    owner = np.full(len(calls), -1, dtype=np.intp)
    process = source.track_process[source.track[calls]]
    for number in np.unique(process[stray]):
        mask = stray & (process == number)
        owner[mask] = range_at(source, int(number), source.ts[calls[mask]])
    good = owner >= 0
    return [*_nested(source, ids, calls, dur), *_nested(source, ids, owner[good], dur[good])]


def _nested(source: Frame, ids: Index, places: Index, dur: Ints) -> tuple[Ints, Ints]:
    """Sum of ``dur``, and count, over the ``places`` (host slices) that lie in each of ``ids`` on its
    track."""
    order = np.lexsort((source.ts[places], source.track[places]))
    places = places[order]
    total = np.concatenate(([0], np.cumsum(dur[order])))
    track, ts = source.track[places], source.ts[places]
    sums, counts = np.zeros(len(ids), np.int64), np.zeros(len(ids), np.int64)
    for lane in np.unique(track):
        start, stop = np.searchsorted(track, [lane, lane + 1])
        mine = np.flatnonzero(source.track[ids] == lane)
        low = start + np.searchsorted(ts[start:stop], source.ts[ids[mine]], side="left")
        high = start + np.searchsorted(ts[start:stop], source.end[ids[mine]], side="left")
        sums[mine], counts[mine] = total[high] - total[low], high - low
    return sums, counts


def _outermost(source: Frame, ids: Index) -> Mask:
    """True where no enclosing range has the same name."""
    parent = source.nearest("range", "step")
    outer = np.ones(len(ids), dtype=bool)
    above = parent[ids]
    while (above >= 0).any():
        outer &= ~((above >= 0) & (source.name[above] == source.name[ids]))
        above = np.where(above >= 0, parent[above], -1)
    return outer


def ranges(trace: Trace) -> list[RangeRow]:
    """Every host range by name, most GPU time first."""
    source = frame(trace)
    ids = source.of("range", "step")
    ids = ids[~source.on_gpu[source.track[ids]]]
    if not len(ids):
        return []
    columns = _range_gpu(source, ids)
    outer = _outermost(source, ids)
    keys, place = np.unique(source.name[ids].astype(np.int64) * 16 + source.kind[ids], return_inverse=True)

    def total(values: Ints) -> Ints:
        return np.bincount(place, weights=np.where(outer, values, 0), minlength=len(keys)).astype(np.int64)

    host = total(source.durs(ids))
    sums = [total(column) for column in columns]
    calls = np.bincount(place, minlength=len(keys))
    step = source.of("step")
    step_code = source.kind[step[0]] if len(step) else -1
    rows = []
    for number, key in enumerate(keys):
        name = source.names[int(key) // 16]
        hit = MODULE.match(name)
        other = TORCH_MODULE.match(name)
        rows.append(
            RangeRow(
                name,
                "step" if key % 16 == step_code else "range",
                int(calls[number]),
                int(host[number]),
                int(sums[0][number]),
                int(sums[1][number]),
                int(sums[2][number]),
                int(sums[3][number]),
                hit["path"] if hit else None,
                hit["cls"] if hit else (other["cls"] if other else None),
            )
        )
    return sorted(rows, key=lambda row: (-(row.gpu_ns + row.adopted_ns), -row.host_ns, row.name))


def apis(trace: Trace) -> list[ApiRow]:
    """Every runtime function, most time first."""
    source = frame(trace)
    ids = source.of("api")
    calls = source.launch[source.launched]
    made = np.zeros(len(source.names), dtype=np.int64)
    called = calls[source.is_kind(calls, "api")]
    np.add.at(made, source.name[called], 1)
    if not len(ids):
        return []
    names = source.name[ids]
    order = np.argsort(names, kind="stable")
    cuts = np.flatnonzero(np.append(True, np.diff(names[order]) != 0))
    rows = []
    for start, stop in zip(cuts, np.append(cuts[1:], len(ids)), strict=True):
        dur = source.durs(ids[order[start:stop]])
        p50, p99 = np.percentile(dur, [50, 99])
        number = int(names[order[start]])
        rows.append(
            ApiRow(source.names[number], len(dur), int(dur.sum()), float(dur.mean()), float(p50), float(p99),
                   int(dur.max()), int(made[number]))
        )  # fmt: skip
    return sorted(rows, key=lambda row: (-row.total_ns, row.name))


def copies(trace: Trace) -> list[CopyRow]:
    """Copies and fills by direction and memory kinds, most time first."""
    rows = trace.sql(
        "SELECT c.direction, c.src_kind, c.dst_kind, c.managed, count(*), sum(s.dur_ns)::BIGINT AS total, "
        "sum(c.bytes)::BIGINT, coalesce(sum(c.bytes) FILTER (s.dur_ns > 0), 0)::BIGINT, "
        "coalesce(sum(s.dur_ns) FILTER (c.bytes IS NOT NULL), 0)::BIGINT "
        "FROM copies c JOIN slices s USING (slice) WHERE s.kind IN ('memcpy', 'memset') "
        "GROUP BY ALL ORDER BY total DESC, 1, 2, 3, 4"
    ).rows
    return [
        CopyRow(
            direction,
            src,
            dst,
            managed,
            calls,
            total,
            size,
            timed / time if timed and time else None,
            timed,
            time,
        )
        for direction, src, dst, managed, calls, total, size, timed, time in rows
    ]
