"""A trace as columns in memory: what the sweeps over time need, read once and kept as long as the trace.

SQL is the best tool for aggregates; arrays are the best tool for nesting, unions and critical paths. A frame
holds about 40 bytes per slice. Names stay in a list; no row ever becomes a Python object.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.trace.columns import Ints, int_column, places_of, text_codes
from profrun.traces.memo import Memo, memoised
from profrun.traces.schema import SLICE_KINDS, DeviceRow, ProcessRow

if TYPE_CHECKING:
    import duckdb

    from profrun.traces.trace import Trace

KIND = {kind: code for code, kind in enumerate(SLICE_KINDS)}
"""Codes of ``Frame.kind``."""
UNUSED = 255
"""Code of an id that no slice has."""

Index = NDArray[np.signedinteger]
"""Slice ids; any signed integer type indexes."""
Mask = NDArray[np.bool_]


@dataclass
class Frame:
    """Columns by slice id, and tables of tracks, processes and devices.

    Ids are dense from 0, so a column is an array of shape (slices,) and an id is an index into it.

    Attributes:
        kind: uint8, code of the kind (``KIND``), ``UNUSED`` for an id that no slice has.
        ts, end: int64, start and end in ns.
        track, parent, launch, name: int32, ids; -1 for NULL.
        file_order: int32, slice ids in the order of the file.
        in_order: whether that is by track, start, and longest first.
        names: the text of each name id.
        track_kind: kind of each track, by track id.
        track_process, track_device: int32, shape (tracks,), by track id; device -1 for none.
        track_native: the tool's own id of each track (thread, stream, queue), by track id; None where it has
            none.
        processes, devices: rows of those tables, by their ids.
        may_be_cut: the end of the recording may have cut off the last step; the steps of a phase are whole.
        memo: results of memoised functions of this frame.
    """

    kind: NDArray[np.uint8]
    ts: Ints
    end: Ints
    track: NDArray[np.int32]
    parent: NDArray[np.int32]
    launch: NDArray[np.int32]
    name: NDArray[np.int32]
    file_order: NDArray[np.int32]
    in_order: bool
    names: list[str]
    track_kind: list[str]
    track_process: NDArray[np.int32]
    track_device: NDArray[np.int32]
    track_native: list[int | None]
    processes: list[ProcessRow]
    devices: list[DeviceRow]
    may_be_cut: bool = True
    memo: Memo = field(default_factory=Memo, repr=False)

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def dur(self) -> Ints:
        """ns of each slice; a new array at every call, so use ``durs`` for a few."""
        return self.end - self.ts

    def durs(self, ids: Index | slice) -> Ints:
        """ns of these slices."""
        return self.end[ids] - self.ts[ids]

    @memoised
    def of(self, *kinds: str) -> NDArray[np.intp]:
        """Ids of all slices of these kinds, in id order."""
        return np.flatnonzero(self.kinds(*kinds)[self.kind])

    @staticmethod
    def kinds(*kinds: str) -> Mask:
        """True at the codes of these kinds, shape (256,): ``kinds('op')[frame.kind]`` is a mask of slices."""
        mask = np.zeros(256, dtype=bool)
        mask[[KIND[kind] for kind in kinds]] = True
        return mask

    def is_kind(self, ids: Index, *kinds: str) -> Mask:
        """Which of the ids have one of these kinds."""
        return np.asarray(self.kinds(*kinds)[self.kind[ids]])

    def process_of(self, ids: Index) -> NDArray[np.int32]:
        """Process id of each slice."""
        return np.asarray(self.track_process[self.track[ids]])

    def by_track(self, ids: Index) -> Index:
        """The slices sorted by thread or stream, then by start."""
        return np.asarray(ids[np.lexsort((ids, self.ts[ids], self.track[ids]))])

    def by_process(self, ids: Index) -> list[Index]:
        """The ids of each process, in their order, by process id; one pass for all processes."""
        return [ids[places] for places in places_of(self.process_of(ids), len(self.processes))]

    @cached_property
    def gpu_by_process(self) -> list[Index]:
        """``gpu_by_time`` of each process."""
        return self.by_process(self.gpu_by_time)

    @cached_property
    def host_by_process(self) -> list[Index]:
        """``host_order`` of each process."""
        return self.by_process(self.host_order)

    def device_of(self, ids: Index) -> NDArray[np.int32]:
        """Device id of each slice, -1 for slices that lie on no GPU track."""
        return np.asarray(self.track_device[self.track[ids]])

    @cached_property
    def by_rank(self) -> list[int]:
        """Process ids by rank."""
        return sorted(range(len(self.processes)), key=lambda number: (self.processes[number]["rank"], number))

    @cached_property
    def on_gpu(self) -> Mask:
        """True for tracks (by id) that belong to a device."""
        return self.track_device >= 0

    @cached_property
    def gpu(self) -> NDArray[np.intp]:
        """Kernels, memcpys and memsets, in id order."""
        return self.of("kernel", "memcpy", "memset")

    @cached_property
    def gpu_by_time(self) -> NDArray[np.intp]:
        """``gpu`` by start, so that unions need not sort again."""
        return self.gpu[np.argsort(self.ts[self.gpu], kind="stable")]

    @cached_property
    def host_order(self) -> NDArray[np.intp]:
        """Host slices (op, range, step, api, python, sync) in pre-order: by track, start, longest first."""
        wanted = self.kinds("op", "range", "step", "api", "python", "sync")[self.kind]
        wanted &= ~self.on_gpu[self.track]
        ids = self.file_order[wanted[self.file_order]]
        if not self.in_order:  # a trace that was not written by TraceWriter
            ids = ids[np.lexsort((ids, -self.end[ids], self.ts[ids], self.track[ids]))]
        return ids.astype(np.intp)  # an index is converted to this at every use

    @cached_property
    def extent(self) -> tuple[int, int]:
        """First start and last end of all slices, ns; (0, 0) when there is none."""
        used = self.kind != UNUSED
        if not used.any():
            return 0, 0
        return int(self.ts[used].min()), int(self.end[used].max())

    @memoised
    def nearest(self, *kinds: str) -> NDArray[np.int32]:
        """For every slice the innermost enclosing slice (not itself) of these kinds on its track, or -1."""
        return self.chase(self.kinds(*kinds)[self.kind])

    def chase(self, wanted: Mask) -> NDArray[np.int32]:
        """For every slice its nearest ancestor with ``wanted``, or -1. Work: one gather per level of
        depth."""
        padded = np.append(wanted, True)  # -1 indexes the pad: a missing parent ends the chase
        up = np.append(self.parent, np.int32(-1))
        current = self.parent.copy()
        open_ = np.flatnonzero(~padded[current])
        while len(open_):
            current[open_] = up[current[open_]]
            open_ = open_[~padded[current[open_]]]
        return current

    def inside(self, ids: Index) -> Mask:
        """Which slices lie in one of these, shape (slices,); a slice does not lie in itself."""
        wanted = np.zeros(len(self), dtype=bool)
        wanted[ids] = True
        return self.chase(wanted) >= 0

    @cached_property
    def launched(self) -> NDArray[np.intp]:
        """GPU slices whose launching host slice is known."""
        return self.gpu[self.launch[self.gpu] >= 0]

    def text(self, slice_id: int) -> str:
        """Name of one slice."""
        return self.names[int(self.name[slice_id])]

    def op_of(self, calls: Index) -> Index:
        """The innermost op of each enqueueing host slice, -1 for none.

        A launch is a runtime call or, where the recording has none, the op itself that the tool named.
        """
        return np.where(self.is_kind(calls, "op"), calls, self.nearest("op")[calls])

    def launching_op(self, ids: Index) -> Index:
        """The innermost op round the launch of each GPU slice, -1 where there is none."""
        calls = self.launch[ids]
        return np.where(calls >= 0, self.op_of(calls), -1)

    def innermost_at(self, ids: Index, parent: NDArray[np.int32], times: Ints) -> NDArray[np.intp]:
        """The innermost slice that is open at each time, -1 for none.

        Args:
            ids: slices that nest, by start.
            parent: for every slice id of the frame its parent among ``ids``, as ``nearest`` gives it.
            times: int64 ns, shape (times,); a slice that ends at a time is not open then.
        """
        if not len(ids):
            return np.full(len(times), -1, dtype=np.intp)
        place = np.searchsorted(self.ts[ids], times, side="right") - 1
        found = np.where(place >= 0, ids[np.maximum(place, 0)], -1).astype(np.intp)
        late = np.flatnonzero((found >= 0) & (self.end[found] <= times))
        while len(late):
            found[late] = parent[found[late]]
            late = late[(found[late] >= 0) & (self.end[found[late]] <= times[late])]
        return found

    def name_ids(self, matches: Callable[[str], bool]) -> NDArray[np.intp]:
        """Name ids whose text satisfies the predicate."""
        return np.array([number for number, text in enumerate(self.names) if matches(text)], dtype=np.intp)

    def named(self, ids: Index, matches: Callable[[str], bool]) -> Mask:
        """Which of the ids have a name that satisfies the predicate."""
        return self.has_name(ids, self.name_ids(matches))

    def has_name(self, ids: Index, names: Index | list[int]) -> Mask:
        """Which of the ids have one of these name ids."""
        table = np.zeros(len(self.names) + 1, dtype=bool)  # one more, for the name -1 of an unused id
        table[names] = True
        return np.asarray(table[self.name[ids]])


@memoised
def frame(trace: Trace) -> Frame:
    """The frame of a trace; read at the first call."""
    con = trace.tables
    ids = int_column(con, "slices", "slice::INTEGER", np.int32)
    columns, in_order, names = _columns(con, ids)
    tracks = trace.sql(
        "SELECT track, kind, process, coalesce(device, -1), native_id FROM tracks ORDER BY track"
    ).rows
    count = max((row[0] for row in tracks), default=-1) + 1
    track_kind = ["thread"] * count
    native: list[int | None] = [None] * count
    process, device = np.zeros(count, dtype=np.int32), np.full(count, -1, dtype=np.int32)
    for number, kind, owner, gpu, native_id in tracks:
        track_kind[number], process[number], device[number] = kind, owner, gpu
        native[number] = native_id
    return Frame(
        kind=columns["kind"].astype(np.uint8, copy=False),
        ts=columns["ts"].astype(np.int64, copy=False),
        end=columns["end"].astype(np.int64, copy=False),
        track=columns["track"].astype(np.int32, copy=False),
        parent=columns["parent"].astype(np.int32, copy=False),
        launch=columns["launch"].astype(np.int32, copy=False),
        name=columns["name"].astype(np.int32, copy=False),
        file_order=ids,
        in_order=in_order,
        names=names,
        track_kind=track_kind,
        track_process=process,
        track_device=device,
        track_native=native,
        processes=cast("list[ProcessRow]", trace.sql("SELECT * FROM processes ORDER BY process").dicts()),
        devices=cast("list[DeviceRow]", trace.sql("SELECT * FROM devices ORDER BY device").dicts()),
    )


_CASES = " ".join(f"WHEN '{kind}' THEN {code}" for kind, code in KIND.items())

_COLUMNS: dict[str, tuple[str, type[np.integer]]] = {
    "ts": ("ts_ns", np.int64),
    "end": ("dur_ns", np.int64),  # added to ts afterwards: reading ts again costs more
    "track": ("track::INTEGER", np.int32),
    "parent": ("coalesce(parent, -1)::INTEGER", np.int32),
    "launch": ("coalesce(launch, -1)::INTEGER", np.int32),
    # a CASE runs once for each distinct kind of a block, a cast to ENUM once for each row
    "kind": (f"(CASE kind {_CASES} ELSE {UNUSED} END)::UTINYINT", np.uint8),
}
"""SQL and type of each column but the names. One query each: a result holds all its columns in memory."""

_LONG = 100_000
"""Rows from which a second thread saves more than it costs."""
_FILL = {"kind": UNUSED, "ts": 0, "end": 0}
"""Value of an unused id; -1 in columns that are not named here."""


def _columns(
    con: duckdb.DuckDBPyConnection, ids: NDArray[np.int32]
) -> tuple[dict[str, NDArray[np.integer]], bool, list[str]]:
    """Every column by slice id, whether the order of the file is ``_in_order``, and the texts of the names.

    Args:
        con: the tables of the trace.
        ids: slice ids in the order of the file. Writers number slices in that order, mostly; then a column is
            what was read.
    """
    if not len(ids):
        empty = {name: np.zeros(0, dtype) for name, (_, dtype) in _COLUMNS.items()}
        return empty | {"name": np.zeros(0, np.int32)}, True, []
    read, names = _read(con, len(ids))
    in_order = _in_order(read["track"], read["ts"], read["end"])
    read["end"] = read["end"] + read["ts"]
    size = int(ids.max()) + 1
    if len(ids) == size and bool((ids == np.arange(size, dtype=np.int32)).all()):
        return read, in_order, names
    place = ids.astype(np.intp)  # converted once, not for every column
    for name in list(read):
        target = np.full(size, _FILL.get(name, -1), dtype=read[name].dtype)
        target[place] = read.pop(name)
        read[name] = target
    return read, in_order, names


def _read(con: duckdb.DuckDBPyConnection, rows: int) -> tuple[dict[str, NDArray[np.integer]], list[str]]:
    """Every column in the order of the file; with a second thread where there are many rows."""

    def column(name: str) -> NDArray[np.integer]:
        sql, dtype = _COLUMNS[name]
        return int_column(con if rows < _LONG else con.cursor(), "slices", sql, dtype)

    if rows < _LONG:
        found = {name: column(name) for name in _COLUMNS}
        found["name"], names = text_codes(con, "slices", "name")
        return found, names
    with ThreadPoolExecutor(1) as pool:  # the engine takes one core per query
        others = pool.map(column, _COLUMNS)
        name, names = text_codes(con, "slices", "name")
        return dict(zip(_COLUMNS, others, strict=True)) | {"name": name}, names


def _in_order(track: NDArray[np.integer], ts: NDArray[np.integer], dur: NDArray[np.integer]) -> bool:
    """Are rows sorted by track, start, and longest first?"""
    later = track[1:] > track[:-1]
    same = track[1:] == track[:-1]
    good = (ts[1:] > ts[:-1]) | ((ts[1:] == ts[:-1]) & (dur[1:] <= dur[:-1]))
    return bool((later | (same & good)).all())
