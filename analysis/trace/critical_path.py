"""The critical path: the chain of host work, launches, GPU work and waits that set the time of a window.

Found backwards from the end, always stepping to what the current activity waited for last:

* a GPU slice waits for its launching call, for the slice before it on its stream, and, when it starts later
  than both allow, for work of another stream of the device (an event, inferred from the end that came last);
* a host thread that returns from a blocking call (synchronise, a copy that waits) waits for the GPU slice
  that ended last inside that call;
* a host thread that does nothing of its own while another thread of the process works (backward) waits for
  it.

The segments do not overlap and cover the window from its first to its last moment, so they add up to it. What
no record explains is 'unexplained'.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.trace.frame import KIND, UNUSED, Frame, Index, frame
from profrun.analysis.trace.roles import COMM, MEMCPY, MEMSET, roles
from profrun.analysis.trace.runtime_calls import is_blocking
from profrun.analysis.trace.steps import step_index

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

KINDS = ("host", "launch", "kernel", "memcpy", "memset", "comm", "sync", "gpu_gap", "unexplained")
"""host: ops, ranges and Python; launch: runtime calls, and the way from a call to the start on the GPU; sync:
returning from a blocking call; gpu_gap: between GPU slices that were both queued."""


@dataclass(frozen=True)
class Segment:
    """One piece of the path.

    Attributes:
        start_ns, end_ns: [start, end).
        kind: one of ``KINDS``.
        slice, name: the slice that it lies in, and its name; -1 and '-' for none.
    """

    start_ns: int
    end_ns: int
    kind: str
    slice: int
    name: str


@dataclass(frozen=True)
class CriticalPath:
    """The path through one window of one process.

    Attributes:
        process, start_ns, end_ns: the window.
        total_ns: end_ns - start_ns, which is the sum of ``by_kind``.
        segments: in time order.
        by_kind: ns by kind.
        by_name: (kind, name, ns), most first.
    """

    process: int
    start_ns: int
    end_ns: int
    total_ns: int
    segments: list[Segment]
    by_kind: dict[str, int]
    by_name: list[tuple[str, str, int]] = field(default_factory=list)


def critical_path(
    trace: Trace, *, process: int | None = None, step: int | None = None
) -> CriticalPath | None:
    """The critical path of a step (by number), or of all steps, or of everything when there are no steps.

    A step's window runs from its host start to the later of its host end and the end of its GPU work.
    None when the process recorded nothing.
    """
    source = frame(trace)
    window = _window(source, process, step)
    if window is None:
        return None
    number, start, end, last = window
    walk = _Walk(source, roles(trace), number, start)
    walk.run(last, end)
    segments = walk.segments[::-1]
    by_kind = dict.fromkeys(KINDS, 0)
    by_name: dict[tuple[str, str], int] = {}
    for segment in segments:
        size = segment.end_ns - segment.start_ns
        by_kind[segment.kind] += size
        key = (segment.kind, segment.name)
        by_name[key] = by_name.get(key, 0) + size
    ranked = sorted(
        ((kind, name, size) for (kind, name), size in by_name.items()), key=lambda row: (-row[2], row)
    )
    return CriticalPath(number, start, end, end - start, segments, by_kind, ranked)


def _window(source: Frame, process: int | None, step: int | None) -> tuple[int, int, int, int] | None:
    """(process, start, end, the GPU slice that ends the window or -1)."""
    index = step_index(source)
    mask = np.ones(len(index.slices), dtype=bool)
    if process is not None:
        mask &= index.process == process
    if step is not None:
        mask &= index.numbers == step
    chosen = np.flatnonzero(mask)
    if len(chosen):
        number = int(index.process[chosen[0]])
        chosen = chosen[index.process[chosen] == number]
        slices = index.slices[chosen]
        start, end = int(source.ts[slices].min()), int(source.end[slices].max())
        gpu = source.gpu[np.isin(index.of_gpu[source.gpu], chosen)]
    elif step is not None:
        return None
    else:
        number = process if process is not None else 0
        ids = np.flatnonzero((source.kind != UNUSED) & (source.track >= 0))
        ids = ids[source.process_of(ids) == number]
        if not len(ids):
            return None
        start, end = int(source.ts[ids].min()), int(source.end[ids].max())
        gpu = source.gpu[source.process_of(source.gpu) == number]
    last = int(gpu[np.argmax(source.end[gpu])]) if len(gpu) else -1
    if last >= 0 and source.end[last] >= end:
        return number, start, int(source.end[last]), last
    return number, start, end, -1


class _Walk:
    """The walk from the end of the window back to its start; each move is a few binary searches."""

    def __init__(self, source: Frame, role: NDArray[np.int8], process: int, start: int) -> None:
        self.source, self.role, self.start = source, role, start
        self.segments: list[Segment] = []
        gpu = source.gpu[source.process_of(source.gpu) == process]
        self.by_end = gpu[np.argsort(source.end[gpu], kind="stable")]
        self.gpu_ends = source.end[self.by_end]
        self.streams: dict[int, tuple[Index, dict[int, int]]] = {}
        for track in np.unique(source.track[gpu]):
            stream = gpu[source.track[gpu] == track]
            stream = stream[np.lexsort((stream, source.ts[stream]))]
            self.streams[int(track)] = (stream, {slice_id: at for at, slice_id in enumerate(stream.tolist())})
        host = source.host_order
        host = host[source.process_of(host) == process]
        self.threads: dict[int, Index] = {
            int(track): host[source.track[host] == track] for track in np.unique(source.track[host])
        }
        self.thread_starts = {track: source.ts[ids] for track, ids in self.threads.items()}
        self.blocking = source.named(np.arange(len(source)), is_blocking)
        index = step_index(source)
        mine = index.slices[index.process == process]
        self.main = int(source.track[mine[0]]) if len(mine) else (next(iter(self.threads), -1))
        leaf = np.ones(len(source) + 1, dtype=bool)
        leaf[source.parent] = False
        leaves = host[leaf[host] & (source.end[host] > source.ts[host])]  # instants hold no time to walk over
        self.leaves = leaves[np.argsort(source.end[leaves], kind="stable")]
        self.leaf_ends = source.end[self.leaves]

    def add(self, start: int, end: int, kind: str, slice_id: int) -> int:
        """Record a segment clipped to the window; returns its start, where the walk goes on."""
        start = max(start, self.start)
        if end > start:
            name = self.source.text(slice_id) if slice_id >= 0 else "-"
            self.segments.append(Segment(start, end, kind, slice_id, name))
        return start

    def run(self, last: int, end: int) -> None:
        """Walk from the end of the window to its start."""
        at, gpu, thread = end, last, self.main
        while at > self.start:
            if gpu >= 0:
                at, gpu, thread = self.on_gpu(gpu, at, thread)
            elif thread in self.threads:
                at, gpu, thread = self.on_host(thread, at)
            else:
                at = self.add(self.start, at, "unexplained", -1)

    def on_gpu(self, gpu: int, at: int, thread: int) -> tuple[int, int, int]:
        """From inside or the end of a GPU slice to what it waited for."""
        source = self.source
        role = int(self.role[gpu])
        kind = {COMM: "comm", MEMCPY: "memcpy", MEMSET: "memset"}.get(role, "kernel")
        begin = self.add(int(source.ts[gpu]), at, kind, gpu)
        if begin <= self.start:
            return begin, -1, thread
        stream, places = self.streams[int(source.track[gpu])]
        place = places[gpu]
        before = int(stream[place - 1]) if place else -1
        ready = int(source.end[before]) if before >= 0 else self.start - 1
        call = int(source.launch[gpu])
        called = int(source.ts[call]) if call >= 0 else self.start - 1
        other = self.ended_between(max(ready, called), begin, gpu)
        if other >= 0:
            return self.add(min(int(source.end[other]), begin), begin, "gpu_gap", gpu), other, thread
        if before >= 0 and ready >= called and ready > self.start:
            return self.add(min(ready, begin), begin, "gpu_gap", gpu), before, thread
        if call >= 0:
            return self.add(called, begin, "launch", call), -1, int(source.track[call])
        return self.add(max(ready, self.start), begin, "unexplained", gpu), before, thread

    def ended_between(self, low: int, high: int, gpu: int) -> int:
        """The GPU slice of the same device, other stream, that ended last in (low, high], -1 for none."""
        source = self.source
        place = int(np.searchsorted(self.gpu_ends, high, side="right")) - 1
        device, track = source.track_device[source.track[gpu]], source.track[gpu]
        while place >= 0 and self.gpu_ends[place] > low:
            one = int(self.by_end[place])
            if (
                source.track[one] != track
                and source.track_device[source.track[one]] == device
                and (source.ts[one] < high)
            ):
                return one
            place -= 1
        return -1

    def on_host(self, thread: int, at: int) -> tuple[int, int, int]:
        """Back along a thread to the start of the piece of work that ends at ``at``."""
        source, ids = self.source, self.threads[thread]
        place = int(np.searchsorted(self.thread_starts[thread], at, side="left")) - 1
        inner = int(ids[place]) if place >= 0 else -1
        edge = self.start
        while inner >= 0 and source.end[inner] < at:  # it ended before: the innermost open one is above it
            edge = max(edge, int(source.end[inner]))
            inner = int(source.parent[inner])
        if inner >= 0:
            edge = max(edge, int(source.ts[inner]))
        waited = self.waited_for(inner, at)
        if waited >= 0:
            return self.add(min(int(source.end[waited]), at), at, "sync", inner), waited, thread
        helper = self.helper(thread, edge, at)
        if helper >= 0:
            turn = int(source.end[helper])
            return self.add(turn, at, "host", inner), -1, int(source.track[helper])
        if inner < 0:
            return self.idle_host(thread, edge, at)
        kind = "launch" if source.kind[inner] == KIND["api"] else "host"
        return self.add(edge, at, kind, inner), -1, thread

    def idle_host(self, thread: int, edge: int, at: int) -> tuple[int, int, int]:
        """Nothing recorded on this thread up to ``at``: code without a record, or another thread's turn."""
        place = int(np.searchsorted(self.leaf_ends, at, side="right")) - 1
        if place >= 0 and int(self.leaf_ends[place]) > edge:
            one = int(self.leaves[place])
            turn = self.add(int(self.leaf_ends[place]), at, "unexplained", -1)
            return turn, -1, int(self.source.track[one])
        if thread != self.main and edge <= self.start:
            return at if self.switch(at) else self.add(edge, at, "unexplained", -1), -1, self.main
        return self.add(edge, at, "unexplained", -1), -1, thread

    def switch(self, at: int) -> bool:
        """Has the main thread anything recorded before ``at``?"""
        ids = self.threads.get(self.main)
        return ids is not None and len(ids) > 0 and int(self.source.ts[ids[0]]) < at

    def waited_for(self, inner: int, at: int) -> int:
        """The GPU slice that a blocking call waited for: the last to end inside it, -1 for none."""
        source = self.source
        if inner < 0 or not self.blocking[inner]:
            return -1
        place = int(np.searchsorted(self.gpu_ends, at, side="right")) - 1
        if place < 0 or self.gpu_ends[place] <= source.ts[inner]:
            return -1
        return int(self.by_end[place])

    def helper(self, thread: int, edge: int, at: int) -> int:
        """The leaf of another thread that ended last in (edge, at), where this thread had no work of its
        own."""
        source = self.source
        place = int(np.searchsorted(self.leaf_ends, at, side="left")) - 1
        while place >= 0 and self.leaf_ends[place] > edge:
            one = int(self.leaves[place])
            if source.track[one] != thread:
                return one
            place -= 1
        return -1
