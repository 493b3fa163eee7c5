"""Idle time of GPUs inside the judged steps, and what the host did meanwhile: ``device_idle``.

The idle time of a device is what of the judged steps none of its GPU work covers. It is the host's where the
work after the gap was enqueued only when the GPU had run dry already, as in ``analysis.trace.idle``; the idle
time before the first and after the last work is the host's too.

A run that counts as one step has its set-up in it: the program loads what it needs, and what runs for the
first time is compiled and loaded. That idle time is kept apart, because it is the fault of no loop.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profrun.analysis.rules.judged_steps import JudgedSteps
from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.frame import Frame, Index
from profrun.analysis.trace.idle import CLASSES, Gaps, gaps
from profrun.analysis.trace.intervals import EMPTY, Intervals, covered, intersect, merge, subtract, union
from profrun.analysis.trace.roles import on_device

_HOST = CLASSES.index("host_wait")


@dataclass(frozen=True, eq=False)
class DeviceIdle:
    """One GPU inside the judged steps of its process.

    Attributes:
        device, process: which GPU, and whose.
        span: the judged steps.
        busy: kernels, copies and fills inside of them.
        idle, host: what is not busy, and the part of that in which the GPU waits for the host, without
            ``set_up``.
        set_up: of a run the idle time before its first GPU work, before the first execution of each kernel or
            kind of copy, and after its last GPU work; empty for steps.
        gaps: all gaps of the device in the trace, also outside of the judged steps.
    """

    device: int
    process: int
    span: Intervals
    busy: Intervals
    idle: Intervals
    host: Intervals
    set_up: Intervals
    gaps: Gaps


def device_idle(source: Frame, judged: JudgedSteps, *, run: bool = False) -> list[DeviceIdle]:
    """Every GPU that ran something, of a process with judged steps.

    Args:
        run: the one step is a run with its set-up.
    """
    found = []
    for row in source.devices:
        ids = on_device(source, source.gpu_by_time, row["device"])
        if not len(ids) or row["process"] not in judged.spans:
            continue
        span = union(*judged.spans[row["process"]])
        work = union(source.ts[ids], source.end[ids])
        holes = gaps(source, ids)
        other = holes.kind != _HOST
        queued = union(holes.start[other], (holes.start + holes.dur)[other])
        idle = subtract(span, work)
        set_up = intersect(idle, _set_up(source, ids, holes, span)) if run else EMPTY
        found.append(
            DeviceIdle(
                device=row["device"],
                process=row["process"],
                span=span,
                busy=intersect(span, work),
                idle=idle,
                host=subtract(idle, merge(queued, set_up)),
                set_up=set_up,
                gaps=holes,
            )
        )
    return found


def _set_up(source: Frame, ids: Index, holes: Gaps, span: Intervals) -> Intervals:
    """The span before the first and after the last GPU work, and gaps before what runs for the first time.

    Args:
        ids: GPU work of the device by time, at least one slice.
    """
    _, place = np.unique(source.name[ids], return_index=True)
    mine = np.isin(holes.ended_by, ids[place])
    first, last = int(source.ts[ids[0]]), int(source.end[ids].max())
    low, high = min(int(span.starts[0]), first), max(int(span.ends[-1]), last)
    starts = np.concatenate(([low, last], holes.start[mine]))
    ends = np.concatenate(([first, high], (holes.start + holes.dur)[mine]))
    return union(starts, ends)


def lies_in(source: Frame, ids: Index, process: int) -> Intervals:
    """Time that slices of one process cover together."""
    mine = ids[source.process_of(ids) == process]
    return union(source.ts[mine], source.end[mine]) if len(mine) else EMPTY


def waits_of_host(one: DeviceIdle, inside: Intervals) -> tuple[Ints, Index]:
    """Each gap that waits for the host: its time in ``inside``, ns, and the slice that ends it; (gaps,)."""
    mine = one.gaps.kind == _HOST
    start, dur = one.gaps.start[mine], one.gaps.dur[mine]
    return covered(inside, start, start + dur), one.gaps.ended_by[mine]
