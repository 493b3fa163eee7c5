"""Bounds of a GPU clock's offset: what launches and waits say of it.

With d the offset that must be added to GPU times:

* a GPU slice starts after the call that launched it began: d >= start of the call - start of the slice;
* it ends before a call that waited for it returned: d <= end of the call - end of the slice.

Which work a call waits for is taken from what is known, never guessed:

* a wait for the device waits for all work of the process, where the process uses one device;
* a wait for a stream waits for the work of that stream, where the recording names the stream;
* a long wait for a stream waits for the work of the process, where all of that lies on one stream;
* a wait for a stream that follows an asynchronous copy inside the same op waits for the copy's stream: the op
  enqueues the copy and waits for it;
* a blocking copy to the host, or an asynchronous one to pageable memory, returns when the copy has ended;
* a launch that was stated to be blocking returns when its kernel has ended.

A wait for an event is left out, since no recording tells which work the event stands behind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from profrun.traces.causality.model import Ids, Ints, Mask
from profrun.traces.causality.recording import COPY_ASYNC, DEVICE_WAIT, KIND, STREAM_WAIT, Recording

if TYPE_CHECKING:
    from numpy.typing import NDArray


LONG_NS = 50_000
"""A wait for an empty stream returns at once; one that takes longer than this waited for some work."""


@dataclass(frozen=True)
class Bounds:
    """Bounds of one clock's offset.

    Attributes:
        gpu: int64, GPU time (of the file) that each speaks of.
        value: int64, the bound in ns.
        host: int64, start of the host call that it comes from.
    """

    gpu: Ints
    value: Ints
    host: Ints

    def __len__(self) -> int:
        return len(self.value)

    def where(self, keep: Mask) -> Bounds:
        """Some of them."""
        return Bounds(self.gpu[keep], self.value[keep], self.host[keep])


def joined(parts: list[Bounds]) -> Bounds:
    """All bounds of several sets."""
    empty = np.zeros(0, np.int64)
    return Bounds(
        np.concatenate([empty, *(part.gpu for part in parts)]),
        np.concatenate([empty, *(part.value for part in parts)]),
        np.concatenate([empty, *(part.host for part in parts)]),
    )


def lower(rec: Recording, ids: Ids) -> Bounds:
    """One bound for each of these GPU slices; their launches are known."""
    calls = rec.launch[ids]
    return Bounds(rec.ts[ids], rec.ts[calls] - rec.ts[ids], rec.ts[calls])


def upper(rec: Recording, ids: Ids, *, alone: bool) -> Bounds:
    """One bound for each call that waited for these slices.

    Args:
        rec: the recording.
        ids: the GPU slices of one device with known launches.
        alone: whether the process has no GPU work on another device.
    """
    process = int(rec.process_of(ids[:1])[0])
    calls = rec.named.calls
    mine = rec.process_of(calls) == process
    calls, classes = calls[mine], rec.named.call_class[mine]
    parts = [_direct(rec, ids[rec.ends_in_call[ids]])]
    if alone:
        parts.append(_after(rec, ids, calls[classes == DEVICE_WAIT]))
        long = (classes == STREAM_WAIT) & (rec.end[calls] - rec.ts[calls] >= LONG_NS)
        if long.any() and len(np.unique(rec.track[ids])) == 1:
            parts.append(_after(rec, ids, calls[long]))
    parts += _streams(rec, ids, process)
    parts += _copy_and_wait(rec, ids, calls, classes)
    return joined(parts)


def _direct(rec: Recording, ids: Ids) -> Bounds:
    """Bounds of slices whose own launching call waits for them."""
    calls = rec.launch[ids]
    return Bounds(rec.end[ids], rec.end[calls] - rec.end[ids], rec.ts[calls])


def _after(rec: Recording, ids: Ids, waits: Ids) -> Bounds:
    """Bounds of calls that wait for all of ``ids`` that was enqueued before they began.

    Each bounds what was enqueued since the call before it, which waited for everything earlier.
    """
    if not len(ids) or not len(waits):
        return joined([])
    enqueued = rec.end[rec.launch[ids]]
    order = np.argsort(enqueued, kind="stable")
    waits = waits[np.argsort(rec.ts[waits], kind="stable")]
    stop = np.searchsorted(enqueued[order], rec.ts[waits], side="right")
    start = np.append(0, stop[:-1])
    waits, start, stop = (one[stop > start] for one in (waits, start, stop))
    if not len(waits):
        return joined([])
    latest = np.maximum.reduceat(rec.end[ids[order[: stop[-1]]]], start)
    return Bounds(latest, rec.end[waits] - latest, rec.ts[waits])


def _streams(rec: Recording, ids: Ids, process: int) -> list[Bounds]:
    """Waits of which a record of the recording names the stream."""
    named = rec.named
    syncs, stream = named.syncs, named.sync_stream
    keep = (rec.process_of(syncs) == process) & (rec.launch[syncs] >= 0)
    keep[keep] &= rec.call_class[rec.launch[syncs[keep]]] == STREAM_WAIT
    syncs, stream = syncs[keep], stream[keep]
    if not len(syncs):
        return []
    gpu_tracks = np.flatnonzero((rec.tracks.process == process) & (rec.tracks.device >= 0))
    natives = [rec.tracks.native[int(track)] for track in gpu_tracks]
    parts = []
    for track in np.unique(rec.track[ids]):
        mine = rec.track[syncs] == track
        native = rec.tracks.native[int(track)]
        if native is not None and natives.count(native) == 1:
            mine |= stream == native
        if mine.any():
            parts.append(_after(rec, ids[rec.track[ids] == track], rec.launch[syncs[mine]]))
    return parts


def _copy_and_wait(rec: Recording, ids: Ids, calls: Ids, classes: NDArray[np.int8]) -> list[Bounds]:
    """Waits for a stream that come next after an asynchronous copy inside the same op."""
    order = np.lexsort((rec.ts[calls], rec.track[calls]))
    calls, classes = calls[order], classes[order]
    before, after = calls[:-1], calls[1:]
    pair = (classes[:-1] == COPY_ASYNC) & (classes[1:] == STREAM_WAIT)
    pair &= (rec.track[before] == rec.track[after]) & (rec.parent[before] == rec.parent[after])
    pair &= rec.parent[after] >= 0
    pair[pair] &= rec.kind[rec.parent[after[pair]]] == KIND["op"]
    before, after = before[pair], after[pair]
    copy = rec.copy_of_call(before)
    after, copy = after[copy >= 0], copy[copy >= 0]
    tracks = rec.track[copy]
    own = rec.track[ids]
    return [
        _after(rec, ids[own == track], after[tracks == track])
        for track in np.unique(tracks)
        if (own == track).any()
    ]
