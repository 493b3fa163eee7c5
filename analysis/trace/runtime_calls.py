"""The table of runtime and driver calls, and which of them launch kernels and graphs, NVIDIA and AMD."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.frame import Frame, frame
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

BLOCKING_SHARE = 0.9
"""Share of launches, and of their kernels' time, that must be waited for in a recording that blocks."""
BLOCKING_LAUNCHES = 5
"""Fewer placed launches tell nothing."""
RETURN_NS = 100_000
"""A call that waited returns at most so long after its kernel ended. On an H200: 3.5 us, 14 us at most."""
STRETCH = 0.5
"""Least part of a kernel's further time by which its call must be longer, where calls wait for kernels."""
SPREAD = 2.0
"""Ratio of long to short kernels from which it can be seen whether calls grow with their kernels."""

_LAUNCH_CALLS = """
cudaLaunchKernel cudaLaunchKernelExC cudaLaunchCooperativeKernel cudaGraphLaunch cuLaunchKernel
cuLaunchKernelEx cuLaunchCooperativeKernel cuGraphLaunch hipLaunchKernel hipLaunchKernelExC
hipLaunchCooperativeKernel hipLaunchByPtr hipGraphLaunch hipModuleLaunchKernel hipExtModuleLaunchKernel
hipExtLaunchKernel hipDrvLaunchKernelEx
"""
LAUNCH_CALLS = frozenset(_LAUNCH_CALLS.split())
"""Runtime and driver calls that enqueue kernels and graphs."""
_EVENT_CALLS = """
EventCreate EventCreateWithFlags EventRecord EventRecordWithFlags EventQuery EventElapsedTime EventDestroy
StreamIsCapturing StreamGetCaptureInfo
"""
EVENT_CALLS = frozenset(maker + call for maker in ("cuda", "cu", "hip") for call in _EVENT_CALLS.split())
"""Runtime and driver calls that make, record, ask or destroy an event, and those that torch asks of the
stream before it records one. None of them gives a GPU work, and none waits."""
_SYNC_WORDS = ("Synchronize", "StreamQuery", "EventQuery")
_COPY_WORDS = ("cudaMemcpy", "hipMemcpy", "cuMemcpy", "hipMemcpyWithStream")


def is_launch(name: str) -> bool:
    """Is this runtime call one that enqueues a kernel or a graph? Version and stream suffixes are ignored."""
    return _without_suffixes(name) in LAUNCH_CALLS


def is_blocking(name: str) -> bool:
    """Does a call of this name wait for the GPU? (Synchronous copies do, ``Async`` ones do not.)"""
    if any(word in name for word in _SYNC_WORDS):
        return "Query" not in name
    return name.startswith(_COPY_WORDS) and "Async" not in name


def is_event_call(name: str) -> bool:
    """Does this runtime call only handle an event (``EVENT_CALLS``)? Suffixes are ignored."""
    return _without_suffixes(name) in EVENT_CALLS


def _without_suffixes(name: str) -> str:
    """The name of a call without its version and the kind of its stream."""
    return name.split("_v")[0].removesuffix("_ptsz").removesuffix("_spt")


def is_graph_launch(name: str) -> bool:
    """Does this runtime call launch a graph?"""
    return "GraphLaunch" in name


@dataclass(frozen=True)
class LaunchWaits:
    """What the timing of launch calls tells about waiting for their kernels. Launches of graphs are left out.

    Attributes:
        launches: launch calls whose kernel is known.
        share: part of them that cover their kernel: it starts after the call began, and the call returns at
            most ``RETURN_NS`` after its end.
        time_share: part of the kernels' time that is covered.
        stretched: calls grow with their kernels, or consist of them for the most part; so it is not chance
            that short kernels lie inside of their calls.
    """

    launches: int
    share: float
    time_share: float
    stretched: bool

    @property
    def blocked(self) -> bool | None:
        """Did launches wait for their kernels? None where the timing cannot tell."""
        if self.launches < BLOCKING_LAUNCHES:
            return None
        if min(self.share, self.time_share) < BLOCKING_SHARE:
            return False
        return True if self.stretched else None

    @property
    def blocking(self) -> bool:
        """Did launches certainly wait for their kernels?"""
        return self.blocked is True


@memoised
def launch_waits(source: Frame) -> LaunchWaits | None:
    """Where launch calls lie in time, relative to their kernels; None without launches whose kernel is known.

    That a kernel ended before its launch returned is not enough: GPU times that are some microseconds early
    give that too. A call that waits covers its kernel from begin to end, long kernels as well as short ones.
    """
    kernels = source.of("kernel")
    kernels = kernels[source.launch[kernels] >= 0]
    calls = source.launch[kernels]
    graphs = source.named(calls, is_graph_launch)
    kernels = kernels[source.is_kind(calls, "api") & ~graphs]
    if not len(kernels):
        return None
    calls = source.launch[kernels]
    late = source.end[calls] - source.end[kernels]
    covered = (source.ts[kernels] >= source.ts[calls]) & (late >= 0) & (late <= RETURN_NS)
    work, call = source.durs(kernels), source.durs(calls)
    total = int(work.sum())
    return LaunchWaits(
        launches=len(kernels),
        share=float(covered.mean()),
        time_share=float(work[covered].sum() / total) if total else 0.0,
        stretched=_stretched(work[covered], call[covered]),
    )


def _stretched(work: Ints, call: Ints) -> bool:
    """Do calls consist of their kernels for the most part, or grow with them? Both ns, shape (launches,)."""
    if not len(work):
        return False
    if 2 * int(work.sum()) >= int(call.sum()):
        return True
    order = np.argsort(work, kind="stable")
    quarter = max(1, len(order) // 4)
    short, long = order[:quarter], order[-quarter:]
    further = float(np.median(work[long]) - np.median(work[short]))
    if np.median(work[long]) < SPREAD * max(1.0, float(np.median(work[short]))):
        return False
    return float(np.median(call[long]) - np.median(call[short])) >= STRETCH * further


def looks_blocking(source: Frame) -> bool:
    """Does the timing of the launches say that they were blocking?"""
    waits = launch_waits(source)
    return waits is not None and waits.blocking


def launches_blocked(trace: Trace) -> bool:
    """Did launches wait for their kernels: by the recording's own statement, else by their timing?"""
    stated = trace.meta.get("launch_blocking")
    return looks_blocking(frame(trace)) if stated is None else bool(stated)


@dataclass(frozen=True)
class ApiRow:
    """One runtime or driver function; times in ns, of host threads.

    Attributes:
        name, calls: the function, and how often it was called.
        total_ns, mean_ns, p50_ns, p99_ns, max_ns: time in it; percentiles interpolate linearly.
        gpu_slices: GPU slices that its calls enqueued.
    """

    name: str
    calls: int
    total_ns: int
    mean_ns: float
    p50_ns: float
    p99_ns: float
    max_ns: int
    gpu_slices: int


def apis(trace: Trace) -> list[ApiRow]:
    """Every runtime function, most time first."""
    source = frame(trace)
    ids = source.of("api")
    calls = source.launch[source.launched]
    made = np.bincount(source.name[calls[source.is_kind(calls, "api")]], minlength=len(source.names))
    names = source.name[ids]
    order = np.argsort(names, kind="stable")
    rows = []
    for mine in np.split(ids[order], np.flatnonzero(np.diff(names[order])) + 1) if len(ids) else ():
        dur = source.durs(mine)
        p50, p99 = np.percentile(dur, [50, 99])
        rows.append(
            ApiRow(
                name=source.text(mine[0]),
                calls=len(dur),
                total_ns=int(dur.sum()),
                mean_ns=float(dur.mean()),
                p50_ns=float(p50),
                p99_ns=float(p99),
                max_ns=int(dur.max()),
                gpu_slices=int(made[source.name[mine[0]]]),
            )
        )
    return sorted(rows, key=lambda row: (-row.total_ns, row.name))
