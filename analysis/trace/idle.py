"""Why a stream was idle: host wait, kernel wait or other; HTA's classes at ns, without its flooring to us.

A gap on a stream lies between the end of everything before it and the start of the next slice (HTA,
``breakdown_analysis.py``):

* host_wait: the next slice was enqueued only after the one before had ended: the host was late;
* kernel_wait: it was enqueued in time and the gap is shorter than the usual delay between kernels;
* other: it was enqueued in time and something else held it back (an event of another stream, a busy GPU);
* unknown: the call that enqueued it is not in the trace.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.trace.frame import Frame, Index, Ints, distinct, frame

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

CONSECUTIVE_KERNEL_DELAY_NS = 30
"""HTA's default: gaps shorter than this between kernels that were both queued are the hardware's own."""
CLASSES = ("host_wait", "kernel_wait", "other", "unknown")


@dataclass(frozen=True)
class IdleRow:
    """Idle time of one lane; ns.

    Attributes:
        device, track, stream: the lane; track and stream None for the row of the whole device, whose gaps
            are those in which none of its streams ran.
        span_ns: first start to last end. busy_ns + idle_ns = span_ns.
        host_wait_ns, kernel_wait_ns, other_ns, unknown_ns: parts of idle_ns.
        gaps: number of gaps by class.
    """

    device: int
    track: int | None
    stream: int | None
    span_ns: int
    busy_ns: int
    idle_ns: int
    host_wait_ns: int
    kernel_wait_ns: int
    other_ns: int
    unknown_ns: int
    gaps: dict[str, int]
    idle_of: str = field(default="span_ns", init=False)


@dataclass(frozen=True)
class Gaps:
    """The gaps of one lane, in time order: start, ns, class (index into CLASSES), the slice that ends it."""

    start: Ints
    dur: Ints
    kind: Ints
    ended_by: Index


def gaps(source: Frame, ids: Index, delay_ns: int = CONSECUTIVE_KERNEL_DELAY_NS) -> Gaps:
    """Classified gaps between GPU slices taken as one lane."""
    if (np.diff(source.ts[ids]) < 0).any():
        ids = ids[np.argsort(source.ts[ids], kind="stable")]
    if not len(ids):
        none = np.zeros(0, np.int64)
        return Gaps(none, none, none, np.zeros(0, np.intp))
    reach = np.maximum.accumulate(source.end[ids])
    length = source.ts[ids[1:]] - reach[:-1]
    place = np.flatnonzero(length > 0)
    after, before, size = ids[place + 1], reach[place], length[place]
    call = source.launch[after]
    kind = np.where(size < delay_ns, 1, 2)
    kind = np.where(source.is_kind(call, "api"), kind, 3)  # an op tells only that it was not earlier
    kind = np.where(source.ts[call] > before, 0, kind)
    kind = np.where(call < 0, 3, kind)
    return Gaps(before, size, kind.astype(np.int64), after)


def _row(
    source: Frame, ids: Index, device: int, track: int | None, stream: int | None, delay_ns: int
) -> IdleRow:
    found = gaps(source, ids, delay_ns)
    span = int(source.end[ids].max() - source.ts[ids].min())
    idle = int(found.dur.sum())
    parts = [int(found.dur[found.kind == number].sum()) for number in range(4)]
    count = {name: int((found.kind == number).sum()) for number, name in enumerate(CLASSES)}
    return IdleRow(
        device, track, stream, span, span - idle, idle, parts[0], parts[1], parts[2], parts[3], count
    )


def idle(trace: Trace, *, delay_ns: int = CONSECUTIVE_KERNEL_DELAY_NS) -> list[IdleRow]:
    """Idle time by class: a row for each device, then one for each of its streams."""
    source = frame(trace)
    native = dict(trace.sql("SELECT track, native_id FROM tracks").rows)
    rows = []
    for device in distinct(source.device_of(source.gpu)):
        mine = source.gpu_by_time[source.device_of(source.gpu_by_time) == device]
        rows.append(_row(source, mine, int(device), None, None, delay_ns))
        for track in distinct(source.track[mine]):
            lane = mine[source.track[mine] == track]
            rows.append(_row(source, lane, int(device), int(track), native.get(int(track)), delay_ns))
    return rows
