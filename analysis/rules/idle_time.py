"""Idle time of GPUs inside the judged steps, and what the host did meanwhile: ``device_idle``.

The idle time of a device is what of the judged steps none of its GPU work covers. It is the host's where the
work after the gap was enqueued only when the GPU had run dry already, as in ``analysis.trace.idle``; the idle
time before the first and after the last work is the host's too.
"""

from __future__ import annotations

from dataclasses import dataclass

from profrun.analysis.rules.judged_steps import JudgedSteps
from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.frame import Frame, Index
from profrun.analysis.trace.idle import CLASSES, Gaps, gaps
from profrun.analysis.trace.intervals import EMPTY, Intervals, covered, intersect, subtract, union
from profrun.analysis.trace.roles import on_device

_HOST = CLASSES.index("host_wait")


@dataclass(frozen=True, eq=False)
class DeviceIdle:
    """One GPU inside the judged steps of its process.

    Attributes:
        device, process: which GPU, and whose.
        span: the judged steps.
        busy: kernels, copies and fills inside of them.
        idle, host: what is not busy, and the part of that in which the GPU waits for the host.
        gaps: all gaps of the device in the trace, also outside of the judged steps.
    """

    device: int
    process: int
    span: Intervals
    busy: Intervals
    idle: Intervals
    host: Intervals
    gaps: Gaps


def device_idle(source: Frame, judged: JudgedSteps) -> list[DeviceIdle]:
    """Every GPU that ran something, of a process with judged steps."""
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
        found.append(
            DeviceIdle(
                device=row["device"],
                process=row["process"],
                span=span,
                busy=intersect(span, work),
                idle=idle,
                host=subtract(idle, queued),
                gaps=holes,
            )
        )
    return found


def lies_in(source: Frame, ids: Index, process: int) -> Intervals:
    """Time that slices of one process cover together."""
    mine = ids[source.process_of(ids) == process]
    return union(source.ts[mine], source.end[mine]) if len(mine) else EMPTY


def waits_of_host(one: DeviceIdle, inside: Intervals) -> tuple[Ints, Index]:
    """Each gap that waits for the host: its time in ``inside``, ns, and the slice that ends it; (gaps,)."""
    mine = one.gaps.kind == _HOST
    start, dur = one.gaps.start[mine], one.gaps.dur[mine]
    return covered(inside, start, start + dur), one.gaps.ended_by[mine]
