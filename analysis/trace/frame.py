"""A trace as columns in memory: what the sweeps over time need, read once and kept as long as the trace.

SQL says aggregates best; nesting, unions and critical paths are said best on arrays. A frame holds about
40 bytes a slice. Names stay in a dictionary; no row ever becomes a Python object.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from profrun.traces.schema import SLICE_KINDS

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

KIND = {kind: code for code, kind in enumerate(SLICE_KINDS)}
"""Codes of ``Frame.kind``."""

STEP_NAMES = (  # in order of preference: one family a process makes its steps
    re.compile(r"^profrun\.step#(\d+)$"),
    re.compile(r"^ProfilerStep#(\d+)$"),
    re.compile(r"^[Ss]tep[ #]?(\d+)$"),
)

Ints = NDArray[np.int64]
Index = NDArray[np.signedinteger[Any]]
Mask = NDArray[np.bool_]


@dataclass
class Frame:
    """Columns by slice id (dense from 0), and tables of tracks.

    Attributes:
        kind: code of the kind (``KIND``), 255 where an id is unused.
        ts, end: ns.
        track, parent, launch, name: ids, -1 for NULL.
        file_order: slice ids in the order of the file.
        in_order: is that by track, start, longest first?
        names: text of each name id.
        track_kind, track_process, track_device: by track id; device -1 for none.
        processes, devices: rows of those tables as dicts.
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
    processes: list[dict[str, Any]]
    devices: list[dict[str, Any]]
    cache: dict[Any, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def dur(self) -> Ints:
        """ns of each slice; a new array at every call, so ask ``durs`` for a few."""
        return self.end - self.ts

    def durs(self, ids: Any) -> Any:
        """ns of these slices."""
        return self.end[ids] - self.ts[ids]

    def of(self, *kinds: str) -> Index:
        """Ids of all slices of these kinds, in id order."""
        found = self.cache.get(kinds)
        if found is None:
            found = self.cache[kinds] = np.flatnonzero(self.kinds(*kinds)[self.kind])
        return np.asarray(found)

    @staticmethod
    def kinds(*kinds: str) -> Mask:
        """True at the codes of these kinds: ``kinds('op')[frame.kind]``."""
        mask = np.zeros(256, dtype=bool)
        mask[[KIND[kind] for kind in kinds]] = True
        return mask

    def is_kind(self, ids: Index, *kinds: str) -> Mask:
        """Which of the ids have one of these kinds."""
        return np.asarray(self.kinds(*kinds)[self.kind[ids]])

    @cached_property
    def on_gpu(self) -> Mask:
        """True for tracks (by id) that belong to a device."""
        return self.track_device >= 0

    @cached_property
    def gpu(self) -> Index:
        """Kernels, memcpys and memsets, in id order."""
        return self.of("kernel", "memcpy", "memset")

    @cached_property
    def gpu_by_time(self) -> Index:
        """``gpu`` by start, so that unions need not sort again."""
        return self.gpu[np.argsort(self.ts[self.gpu], kind="stable")]

    @cached_property
    def host_order(self) -> Index:
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
        used = self.kind != 255
        if not used.any():
            return 0, 0
        return int(self.ts[used].min()), int(self.end[used].max())

    def nearest(self, *kinds: str) -> NDArray[np.int32]:
        """For every slice the innermost enclosing slice (not itself) of these kinds on its track, or -1."""
        key = ("nearest", kinds)
        found = self.cache.get(key)
        if found is None:
            found = self.cache[key] = self.chase(self.kinds(*kinds)[self.kind])
        return np.asarray(found)

    def chase(self, wanted: Mask) -> NDArray[np.int32]:
        """For every slice its nearest ancestor with ``wanted``, or -1. Work: one gather a level of depth."""
        padded = np.append(wanted, True)  # -1 indexes the pad: a missing parent ends the chase
        up = np.append(self.parent, np.int32(-1))
        current = self.parent.copy()
        open_ = np.flatnonzero(~padded[current])
        while len(open_):
            current[open_] = up[current[open_]]
            open_ = open_[~padded[current[open_]]]
        return current

    def device_of(self, ids: Index) -> NDArray[np.int32]:
        """Device id of slices on GPU tracks, -1 for others."""
        return np.asarray(self.track_device[self.track[ids]])

    @cached_property
    def launched(self) -> Index:
        """GPU slices whose launching host slice is known."""
        ids = self.gpu
        return np.asarray(ids[self.launch[ids] >= 0])

    def text(self, slice_id: int) -> str:
        """Name of one slice."""
        return str(self.names[int(self.name[slice_id])])

    def op_of(self, calls: Index) -> Index:
        """The innermost op of each enqueueing host slice, -1 for none.

        A launch is a runtime call or, where the recording has none, the op itself that the tool named.
        """
        is_op = self.is_kind(calls, "op")
        return np.where(is_op, calls, self.nearest("op")[calls])

    def named(self, ids: Index, matches: Callable[[str], bool]) -> Mask:
        """Which of the ids have a name that satisfies the predicate."""
        table = np.zeros(len(self.names) + 1, dtype=bool)
        table[[number for number, text in enumerate(self.names) if matches(text)]] = True
        return np.asarray(table[self.name[ids]])

    def name_ids(self, matches: Any) -> NDArray[np.int32]:
        """Name ids whose text satisfies the predicate."""
        return np.array([number for number, text in enumerate(self.names) if matches(text)], dtype=np.int32)


_FRAMES: WeakKeyDictionary[Trace, Frame] = WeakKeyDictionary()

# a CASE is asked once a distinct kind of a block, a cast to ENUM once a row
_CASES = " ".join(f"WHEN '{kind}' THEN {code}" for kind, code in KIND.items())

# one column a query: a result holds every row of all its columns at once, and so would the memory
_COLUMNS = {
    "ts": "s.ts_ns",
    "end": "s.dur_ns",  # added to ts afterwards: reading ts again costs more
    "track": "s.track::INTEGER",
    "parent": "coalesce(s.parent, -1)::INTEGER",
    "launch": "coalesce(s.launch, -1)::INTEGER",
    "kind": f"(CASE s.kind {_CASES} ELSE 255 END)::UTINYINT",
    "name": "enum_code(s.name::frame_name)::INTEGER",
}


def distinct(values: Any) -> list[int]:
    """The different values of an array of small integers (tracks, devices), without sorting it."""
    if not len(values):
        return []
    low = int(values.min())
    return [low + int(one) for one in np.flatnonzero(np.bincount(values - low))]


def frame(trace: Trace) -> Frame:
    """The frame of a trace; made at the first call, kept while the trace lives."""
    found = _FRAMES.get(trace)
    if found is None:
        found = _FRAMES[trace] = _read(trace)
    return found


_LONG = 100_000
"""Rows from which a thread costs less than it saves."""
_FILL = {"kind": 255, "ts": 0, "end": 0}
"""Value of an unused id; -1 where none is named."""
_EMPTY: dict[str, Any] = dict.fromkeys(_COLUMNS, np.int32) | {
    "kind": np.uint8, "ts": np.int64, "end": np.int64,
}  # fmt: skip


def _column(con: Any, expression: str) -> Any:
    """One expression over all slices, in the order of the file."""
    return np.asarray(con.execute(f"SELECT {expression} AS v FROM slices s").fetchnumpy()["v"])


def _many(con: Any, expressions: list[str], size: int) -> list[Any]:
    """``_column`` of each; two at a time when they are long: the engine takes one core for one."""
    if size < _LONG:
        return [_column(con, expression) for expression in expressions]
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda expression: _column(con.cursor(), expression), expressions))


def _in_order(track: Any, ts: Any, dur: Any) -> bool:
    """Are rows sorted by track, start, and longest first?"""
    later = track[1:] > track[:-1]
    same = track[1:] == track[:-1]
    good = (ts[1:] > ts[:-1]) | ((ts[1:] == ts[:-1]) & (dur[1:] <= dur[:-1]))
    return bool((later | (same & good)).all())


def _columns(con: Any, ids: Any) -> tuple[dict[str, Any], bool]:
    """Every column by slice id, and whether the order of the file is ``_in_order``; ``ids`` is that order.

    Writers number slices in the order of the file, mostly; then a column is what was read.
    """
    size = int(ids.max()) + 1
    straight = len(ids) == size and bool((ids == np.arange(size, dtype=np.int32)).all())
    place = None if straight else ids.astype(np.intp)  # converted once, not at every column
    read = dict(zip(_COLUMNS, _many(con, list(_COLUMNS.values()), size), strict=True))
    in_order = _in_order(read["track"], read["ts"], read["end"])
    read["end"] = read["end"] + read["ts"]
    found: dict[str, Any] = {}
    for name in _COLUMNS:
        values = read.pop(name)
        if place is not None:
            target = np.full(size, _FILL.get(name, -1), dtype=values.dtype)
            target[place] = values
            values = target
        found[name] = values
    return found, in_order


def _read(trace: Trace) -> Frame:
    con = trace.tables
    ids = np.asarray(_column(con, "s.slice::INTEGER"), dtype=np.int32)
    names: list[str] = []
    if len(ids):  # an enumeration is a dictionary of names that keeps the order of the rows
        con.execute("DROP TYPE IF EXISTS frame_name")
        con.execute("CREATE TYPE frame_name AS ENUM (SELECT DISTINCT name FROM slices)")
        names = list(con.execute("SELECT enum_range(NULL::frame_name)").fetchall()[0][0])
        columns, in_order = _columns(con, ids)
    else:
        columns = {name: np.zeros(0, dtype) for name, dtype in _EMPTY.items()}
        in_order = True
    tracks = trace.sql("SELECT track, kind, process, coalesce(device, -1) FROM tracks ORDER BY track").rows
    count = max((row[0] for row in tracks), default=-1) + 1
    track_kind = ["thread"] * count
    process, device = np.zeros(count, dtype=np.int32), np.full(count, -1, dtype=np.int32)
    for number, kind, owner, gpu in tracks:
        track_kind[number], process[number], device[number] = kind, owner, gpu
    return Frame(
        **columns,
        file_order=ids,
        in_order=in_order,
        names=names,
        track_kind=track_kind,
        track_process=process,
        track_device=device,
        processes=trace.sql("SELECT * FROM processes ORDER BY process").dicts(),
        devices=trace.sql("SELECT * FROM devices ORDER BY device").dicts(),
    )
