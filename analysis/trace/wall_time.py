"""What the time of a step is spent on, by the wall clock: ``wall_breakdown``.

Each instant counts for one role only, so that the roles add up to the step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.frame import frame
from profrun.analysis.trace.intervals import EMPTY, Intervals, covered, merge, union
from profrun.analysis.trace.roles import COMM, COMPUTE, MEMCPY, MEMSET, roles
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

WALL_ROLES = ("kernel", "memcpy", "memset", "comm", "runtime", "dataloader", "cpu_op", "other")
"""Wall-clock roles in falling priority: each instant counts for the first that is active (kineto's
TensorBoard plugin, ``overall_parser.py``)."""


def is_dataloader(text: str) -> bool:
    """Is this the name that torch gives to fetching a batch?"""
    if text.startswith("enumerate(DataPipe)#"):
        return True
    return text.startswith("enumerate(DataLoader)#") and text.endswith("__next__")


def is_host_collective(text: str) -> bool:
    """Is this the name that torch gives to a collective on the CPU?"""
    return text.startswith("gloo:")


@memoised
def wall_sets(trace: Trace, process: int) -> list[tuple[str, Intervals]]:
    """Interval sets of a process by wall role, in priority order, without 'other'."""
    source, role = frame(trace), roles(trace)
    gpu = source.gpu_by_process[process]
    found = []
    for name, wanted in (("kernel", COMPUTE), ("memcpy", MEMCPY), ("memset", MEMSET), ("comm", COMM)):
        ids = gpu[role[gpu] == wanted]
        found.append((name, union(source.ts[ids], source.end[ids])))
    host = source.host_by_process[process]
    loader = source.named(host, is_dataloader)
    gloo = source.named(host, is_host_collective)
    runtime = source.is_kind(host, "api")
    cpu = source.is_kind(host, "op", "range") & ~loader & ~gloo
    inside = np.zeros(len(source) + 1, dtype=bool)  # what lies in a slice of the same set adds nothing to it
    inside[host[cpu]] = True
    cpu &= ~inside[source.parent[host]]
    if gloo.any():
        found[3] = ("comm", merge(found[3][1], union(source.ts[host[gloo]], source.end[host[gloo]])))
    for name, mask in (("runtime", runtime), ("dataloader", loader), ("cpu_op", cpu)):
        found.append((name, union(source.ts[host[mask]], source.end[host[mask]]) if mask.any() else EMPTY))
    return found


def wall_breakdown(trace: Trace, process: int, starts: Ints, ends: Ints) -> dict[str, Ints]:
    """Exclusive wall-clock ns by role inside each window; the roles add up to the window."""
    found: dict[str, Ints] = {}
    together, before = EMPTY, np.zeros(len(starts), np.int64)
    for name, intervals in wall_sets(trace, process):
        together = merge(together, intervals)
        now = covered(together, starts, ends)
        found[name] = now - before
        before = now
    found["other"] = (ends - starts) - before
    return found
