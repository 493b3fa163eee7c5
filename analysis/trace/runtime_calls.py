"""The table of runtime and driver calls, and which of them launch kernels and graphs, NVIDIA and AMD."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.trace.frame import Frame, frame

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

BLOCKING_SHARE = 0.9
"""Share of launches that return after their kernel from which a recording counts as blocking."""
BLOCKING_LAUNCHES = 5
"""Fewer placed launches tell nothing."""

_LAUNCH_CALLS = """
cudaLaunchKernel cudaLaunchKernelExC cudaLaunchCooperativeKernel cudaGraphLaunch cuLaunchKernel
cuLaunchKernelEx cuLaunchCooperativeKernel cuGraphLaunch hipLaunchKernel hipLaunchKernelExC
hipLaunchCooperativeKernel hipLaunchByPtr hipGraphLaunch hipModuleLaunchKernel hipExtModuleLaunchKernel
hipExtLaunchKernel hipDrvLaunchKernelEx
"""
LAUNCH_CALLS = frozenset(_LAUNCH_CALLS.split())
"""Runtime and driver calls that enqueue kernels and graphs."""


def is_launch(name: str) -> bool:
    """Is this runtime call one that enqueues a kernel or a graph? Version and stream suffixes are ignored."""
    base = name.split("_v")[0].removesuffix("_ptsz").removesuffix("_spt")
    return base in LAUNCH_CALLS


def is_graph_launch(name: str) -> bool:
    """Does this runtime call launch a graph?"""
    return "GraphLaunch" in name


def blocking_share(source: Frame) -> float | None:
    """Share of placed launches whose call returned only after their kernel had ended; None without any."""
    kernels = source.of("kernel")
    kernels = kernels[source.launch[kernels] >= 0]
    kernels = kernels[source.is_kind(source.launch[kernels], "api")]
    if not len(kernels):
        return None
    return float((source.end[source.launch[kernels]] >= source.end[kernels]).mean())


def looks_blocking(source: Frame) -> bool:
    """Does the timing of the launches say that they were blocking?"""
    share = blocking_share(source)
    enough = int((source.launch[source.of("kernel")] >= 0).sum()) >= BLOCKING_LAUNCHES
    return share is not None and share >= BLOCKING_SHARE and enough


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
