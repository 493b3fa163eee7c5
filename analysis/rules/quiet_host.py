"""Time in which a GPU waits and the host is in no recorded op or call: ``quiet_host``.

It is time of the program's own code: Python between two calls of the framework, garbage collection, files,
sleeping. Short pieces are left out, because the framework's Python needs some microseconds between two ops.
"""

from __future__ import annotations

import numpy as np

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.host_causes import CAUSES
from profrun.analysis.rules.idle_time import DeviceIdle, lies_in
from profrun.analysis.trace.frame import Index
from profrun.analysis.trace.intervals import Intervals, merge, subtract
from profrun.traces.memo import memoised

QUIET_NS = 1_000_000
"""Least length of a piece, ns. Between two ops of a training step lie 5 to 50 us of Python."""


@memoised
def caused(ctx: Context, one: DeviceIdle) -> Intervals:
    """When the host of a GPU does something that is a cause of its own (``host_causes.CAUSES``)."""
    return merge(*(lies_in(ctx.frame, find(ctx), one.process) for find in CAUSES))


@memoised
def host_work(ctx: Context, process: int) -> Index:
    """Recorded ops, calls and work of the profiler on the host's threads, by time."""
    ids = _work(ctx)[process]
    return np.asarray(ids[np.argsort(ctx.frame.ts[ids], kind="stable")])


@memoised
def _work(ctx: Context) -> list[Index]:
    """The same of each process, in the order of the file."""
    return ctx.frame.by_process(ctx.frame.of("op", "api", "overhead"))


@memoised
def quiet_host(ctx: Context, one: DeviceIdle) -> Intervals:
    """When a GPU waits for the host, and the host is in no recorded op or call for at least ``QUIET_NS``."""
    work = lies_in(ctx.frame, host_work(ctx, one.process), one.process)
    quiet = subtract(one.host, merge(work, caused(ctx, one)))
    long = quiet.ends - quiet.starts >= QUIET_NS
    return Intervals(quiet.starts[long], quiet.ends[long])
