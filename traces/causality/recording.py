"""The columns of a recording that the constraints are made of, and the calls that wait for a GPU."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from profrun.traces.causality.model import Ids, Ints, Mask
from profrun.traces.schema import GPU_KINDS, SLICE_KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import duckdb
    from numpy.typing import NDArray

    from profrun.traces.meta import TraceMeta

KIND = {kind: code for code, kind in enumerate(SLICE_KINDS)}

_DEVICE_WAIT = re.compile(r"(?:cuda|hip)DeviceSynchronize|(?:cu|hip)CtxSynchronize")
_STREAM_WAIT = re.compile(r"(?:cuda|cu|hip)StreamSynchronize")
_COPY = re.compile(r"(?:cuda|hip)Memcpy(?!.*Async)|cuMemcpy(?!.*Async)")
_COPY_ASYNC = re.compile(r"(?:cuda|cu|hip)Memcpy.*Async")
_STREAM_OF = re.compile(r"\(stream (\d+)\)$")
_STEP = re.compile(r"(\d+)$")
_ARCH = re.compile(r"^sm_(\d+)")

DEVICE_WAIT, STREAM_WAIT, COPY, COPY_ASYNC = 1, 2, 3, 4
"""Classes of calls; see ``call_class``."""

_NAMED = """
SELECT slice, kind, name FROM slices WHERE kind IN ('step', 'sync') OR (kind = 'api' AND
  (contains(name, 'ynchronize') OR contains(name, 'Memcpy')))
"""
_COPIES = """
SELECT slice, direction, coalesce(src_kind, '') AS src, coalesce(dst_kind, '') AS dst,
  coalesce(bytes, 0) AS size FROM copies
"""


@dataclass(frozen=True)
class Tracks:
    """Tables of tracks, by track id: int32 process and device (-1: none), and the tool's own number."""

    process: NDArray[np.int32]
    device: NDArray[np.int32]
    native: list[int | None]


@dataclass(frozen=True)
class Named:
    """What some slices are by their names.

    Attributes:
        calls, call_class: api slices that wait or copy, and which class each has.
        syncs, sync_stream: slices of kind sync, and the stream that the name tells, -1 for none.
        steps, step_number: slices of kind step, and the number in the name, -1 for none.
        step_family: steps with the same text before the number have the same.
    """

    calls: Ids
    call_class: NDArray[np.int8]
    syncs: Ids
    sync_stream: Ints
    steps: Ids
    step_number: Ints
    step_family: Ints


@dataclass(frozen=True)
class Copies:
    """Copies: their slices and bytes (0: not known), and which come from or go to memory of the host, and of
    which kind."""

    slices: Ids
    to_host: Mask
    from_host: Mask
    to_pageable: Mask
    from_pinned: Mask
    size: Ints


@dataclass
class Recording:
    """Columns by slice id; ids are dense from 0, -1 is NULL.

    Attributes:
        kind: code of the kind (``KIND``).
        ts, end: int64 ns.
        track, launch, parent: int32 ids.
        tracks: see there.
        load_named, load_copies: give ``named`` and ``copies``, when they are asked for.
        texts: gives the names of slices.
        early_launch: devices on which programmatic dependent launch is possible.
        blocking: each launch returns when its kernel has ended.
        session_starts: process -> where its second and later sessions begin, as the files show them, ns.
    """

    kind: NDArray[np.uint8]
    ts: Ints
    end: Ints
    track: NDArray[np.int32]
    launch: NDArray[np.int32]
    parent: NDArray[np.int32]
    tracks: Tracks
    load_named: Callable[[], Named]
    load_copies: Callable[[], Copies]
    texts: Callable[[Ids], list[str]]
    early_launch: frozenset[int] = frozenset()
    blocking: bool = False
    session_starts: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    @cached_property
    def named(self) -> Named:
        """Slices that mean something by their names."""
        return self.load_named()

    @cached_property
    def copies(self) -> Copies:
        """The copies."""
        return self.load_copies()

    def again(self) -> Recording:
        """The same columns without what was worked out of them."""
        named, copies = self.named, self.copies
        return replace(self, load_named=lambda: named, load_copies=lambda: copies)

    def of(self, *kinds: str) -> Ids:
        """Ids of all slices of these kinds."""
        mask = np.zeros(256, dtype=bool)
        mask[[KIND[kind] for kind in kinds]] = True
        return np.flatnonzero(mask[self.kind])

    @cached_property
    def gpu(self) -> Ids:
        """Kernels, copies and fills, by track and start."""
        ids = self.of(*GPU_KINDS)
        track, ts = self.track[ids], self.ts[ids]
        if (
            len(ids)
            and not ((track[1:] > track[:-1]) | ((track[1:] == track[:-1]) & (ts[1:] >= ts[:-1]))).all()
        ):
            ids = ids[np.lexsort((ts, track))]
        return ids

    @cached_property
    def launched(self) -> Ids:
        """GPU slices whose launching host slice is known, by track and start."""
        return self.gpu[self.launch[self.gpu] >= 0]

    def device_of(self, ids: Ids) -> NDArray[np.int32]:
        """Device of each slice, -1 for none."""
        return np.asarray(self.tracks.device[self.track[ids]])

    def process_of(self, ids: Ids) -> NDArray[np.int32]:
        """Process of each slice."""
        return np.asarray(self.tracks.process[self.track[ids]])

    @cached_property
    def calls(self) -> Ids:
        """Runtime and driver calls, by track, start, and longest first."""
        ids = self.of("api")
        return ids[np.lexsort((-self.end[ids], self.ts[ids], self.track[ids]))]

    @cached_property
    def work(self) -> Ids:
        """Slices whose times are those of the program: all but the profiler's own work."""
        return np.flatnonzero((self.kind != KIND["overhead"]) & (self.kind < len(KIND)))

    def parent_is_no_call(self, ids: Ids) -> Mask:
        """Slices that do not lie inside a call."""
        parent = self.parent[ids]
        return np.asarray((parent < 0) | (self.kind[parent] != KIND["api"]))

    @cached_property
    def extents(self) -> dict[int, tuple[int, int]]:
        """First start and last end of the GPU slices of each device, ns."""
        device = self.device_of(self.gpu)
        order = np.argsort(device, kind="stable")
        ids = self.gpu[order]
        found, first = np.unique(device[order], return_index=True)
        if not len(ids):
            return {}
        starts, ends = np.minimum.reduceat(self.ts[ids], first), np.maximum.reduceat(self.end[ids], first)
        return {int(one): (int(a), int(b)) for one, a, b in zip(found, starts, ends, strict=True)}

    @cached_property
    def devices(self) -> dict[int, Ids]:
        """``launched`` by device: by track and start inside each."""
        device = self.device_of(self.launched)
        order = np.argsort(device, kind="stable")
        found, first = np.unique(device[order], return_index=True)
        if not len(order):
            return {}
        parts = np.split(self.launched[order], first[1:])
        return {int(one): part for one, part in zip(found, parts, strict=True)}

    def alone(self, ids: Ids) -> bool:
        """Is the device of these slices the only one that their process used?"""
        process = self.process_of(ids[:1])[0]
        return [self.process_of(mine[:1])[0] for mine in self.devices.values()].count(process) == 1

    @cached_property
    def call_class(self) -> NDArray[np.int8]:
        """Class of every slice as a call; 0 for what neither waits nor copies."""
        found = np.zeros(len(self.kind), np.int8)
        found[self.named.calls] = self.named.call_class
        return found

    @cached_property
    def ends_in_call(self) -> Mask:
        """GPU slices, by slice id, whose own launching call returns when they have ended."""
        copies, found = self.copies, np.zeros(len(self.kind), bool)
        launch = self.launch[copies.slices]
        kind = np.where(launch >= 0, self.call_class[launch], 0)
        ends = (kind == COPY) & (copies.to_host | copies.from_pinned)
        ends |= (kind == COPY_ASYNC) & copies.to_host & copies.to_pageable
        found[copies.slices[ends]] = True
        if self.blocking:
            ids = self.launched
            calls = self.launch[ids]
            count = np.bincount(calls, minlength=1)
            single = (count[calls] == 1) & (self.kind[ids] == KIND["kernel"])
            found[ids[single & (self.kind[calls] == KIND["api"])]] = True
        return found

    def copy_of_call(self, calls: Ids) -> Ids:
        """The copy that each call enqueued, -1 for none."""
        slices = self.copies.slices[self.launch[self.copies.slices] >= 0]
        slices = slices[np.argsort(self.launch[slices], kind="stable")]
        if not len(slices):
            return np.full(len(calls), -1, np.int64)
        place = np.minimum(np.searchsorted(self.launch[slices], calls), len(slices) - 1)
        return np.where(self.launch[slices[place]] == calls, slices[place], -1)

    @cached_property
    def resolution(self) -> int:
        """1000 where all times are whole microseconds, else 1."""
        times = self.ts[self.gpu]
        if not len(times):
            return 1
        return 1 if (times[:1000] % 1000).any() or (times % 1000).any() else 1000


def launches_wait(meta: TraceMeta) -> bool:
    """Does each launch return when its kernel has ended? Where the recording states it; known for NVIDIA."""
    return meta.get("launch_blocking") is True and meta.get("vendor") == "nvidia"


def recording_of(
    con: duckdb.DuckDBPyConnection, columns: Mapping[str, NDArray[np.integer]], meta: TraceMeta
) -> Recording:
    """The recording of a trace's tables.

    Args:
        con: offers the tables of the trace.
        columns: kind, ts, end, track, launch and parent by slice id, as ``Recording`` holds them.
        meta: meta of the trace.
    """
    starts: dict[int, tuple[int, ...]] = {}
    for entry in meta.get("sessions", ()):
        starts[entry["process"]] = (*starts.get(entry["process"], ()), entry["begin_ns"])
    return Recording(
        kind=columns["kind"].astype(np.uint8, copy=False),
        ts=columns["ts"].astype(np.int64, copy=False),
        end=columns["end"].astype(np.int64, copy=False),
        track=columns["track"].astype(np.int32, copy=False),
        launch=columns["launch"].astype(np.int32, copy=False),
        parent=columns["parent"].astype(np.int32, copy=False),
        tracks=read_tracks(con),
        load_named=lambda: read_named(con),
        load_copies=lambda: read_copies(con),
        texts=lambda ids: _texts(con, ids),
        early_launch=read_early_launch(con),
        blocking=launches_wait(meta),
        session_starts=starts,
    )


def _texts(con: duckdb.DuckDBPyConnection, ids: Ids) -> list[str]:
    """Names of some slices, in their order."""
    wanted = np.unique(ids)
    con.register("wanted", {"slice": wanted})
    rows = con.execute("SELECT s.slice, s.name FROM slices s JOIN wanted USING (slice)").fetchall()
    con.unregister("wanted")
    known = dict(rows)
    return [known[int(one)] for one in ids]


def read_early_launch(con: duckdb.DuckDBPyConnection) -> frozenset[int]:
    """Devices on which a kernel may start before the one before it ends: from compute capability 9.0 on, or
    of unknown architecture."""
    rows = con.execute("SELECT device, arch FROM devices WHERE vendor = 'nvidia'").fetchall()
    return frozenset(device for device, arch in rows if arch is None or _number(_ARCH, arch) >= 90)


def read_tracks(con: duckdb.DuckDBPyConnection) -> Tracks:
    """The tracks of a trace."""
    rows = con.execute(
        "SELECT track, process, coalesce(device, -1), native_id FROM tracks ORDER BY track"
    ).fetchall()
    size = max((row[0] for row in rows), default=-1) + 1
    process, device = np.zeros(size, np.int32), np.full(size, -1, np.int32)
    native: list[int | None] = [None] * size
    for track, owner, gpu, number in rows:
        process[track], device[track], native[track] = owner, gpu, number
    return Tracks(process, device, native)


def read_named(con: duckdb.DuckDBPyConnection) -> Named:
    """Slices that mean something by their names: one query over the slices."""
    got = con.execute(_NAMED).fetchnumpy()
    ids = np.asarray(got["slice"], np.int64)
    kinds, names = np.asarray(got["kind"], object), np.asarray(got["name"], object)
    calls, syncs, steps = (np.asarray(kinds == kind, bool) for kind in ("api", "sync", "step"))
    classes = _each(names[calls], call_class).astype(np.int8)
    return Named(
        calls=ids[calls],
        call_class=classes,
        syncs=ids[syncs],
        sync_stream=_each(names[syncs], lambda name: _number(_STREAM_OF, name)),
        steps=ids[steps],
        step_number=_each(names[steps], lambda name: _number(_STEP, name)),
        step_family=_numbered([_STEP.sub("", name) for name in names[steps]]),
    )


def read_copies(con: duckdb.DuckDBPyConnection) -> Copies:
    """The copies of a trace."""
    got = con.execute(_COPIES).fetchnumpy()
    way, source, target = (np.asarray(got[name], object) for name in ("direction", "src", "dst"))
    return Copies(
        slices=np.asarray(got["slice"], np.int64),
        to_host=np.asarray(way == "DtoH", bool),
        from_host=np.asarray(way == "HtoD", bool),
        to_pageable=np.asarray(target == "pageable", bool),
        from_pinned=np.asarray(source == "pinned", bool),
        size=np.asarray(got["size"], np.int64),
    )


def _each(names: NDArray[np.object_], what: object) -> Ints:
    """A function of every name, called once for each distinct one."""
    assert callable(what)
    known = {name: what(name) for name in set(names)}
    return np.array([known[name] for name in names], np.int64)


def _numbered(texts: list[str]) -> Ints:
    """A number for each distinct text."""
    known: dict[str, int] = {}
    return np.array([known.setdefault(text, len(known)) for text in texts], np.int64)


def _number(pattern: re.Pattern[str], name: str) -> int:
    hit = pattern.search(name)
    return int(hit[1]) if hit and len(hit[1]) < 18 else -1


def call_class(name: str) -> int:
    """The class of a call by its name; 0 for one that neither waits nor copies."""
    if _DEVICE_WAIT.match(name):
        return DEVICE_WAIT
    if _STREAM_WAIT.match(name):
        return STREAM_WAIT
    if _COPY_ASYNC.match(name):
        return COPY_ASYNC
    return COPY if _COPY.match(name) else 0
