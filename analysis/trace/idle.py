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

from profrun.analysis.trace.columns import Ints, distinct
from profrun.analysis.trace.frame import Frame, Index, frame
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

CONSECUTIVE_KERNEL_DELAY_NS = 30
"""HTA's default: gaps shorter than this between kernels that were both queued are the hardware's own."""
CLASSES = ("host_wait", "kernel_wait", "other", "unknown")


@dataclass(frozen=True)
class IdleRow:
    """Idle time of one stream, or of a whole device; ns.

    Attributes:
        device, track, stream: which stream. Track and stream are None in the row of the whole device, whose
            gaps are those in which none of its streams ran.
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
    """The gaps of one stream or device, in time order; every array has the shape (gaps,).

    Attributes:
        start, dur: int64 ns.
        kind: int64, class (index into ``CLASSES``).
        ended_by: the slice that ends the gap.
    """

    start: Ints
    dur: Ints
    kind: Ints
    ended_by: Index


def gaps(source: Frame, ids: Index, delay_ns: int = CONSECUTIVE_KERNEL_DELAY_NS) -> Gaps:
    """Classified gaps between GPU slices, as if all of them lay on one stream."""
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


def _row(source: Frame, ids: Index, device: int, track: int | None, delay_ns: int) -> IdleRow:
    found = gaps(source, ids, delay_ns)
    span = int(source.end[ids].max() - source.ts[ids].min())
    idle_ns = int(found.dur.sum())
    host_wait, kernel_wait, other, unknown = (
        int(found.dur[found.kind == number].sum()) for number in range(len(CLASSES))
    )
    return IdleRow(
        device=device,
        track=track,
        stream=None if track is None else source.track_native[track],
        span_ns=span,
        busy_ns=span - idle_ns,
        idle_ns=idle_ns,
        host_wait_ns=host_wait,
        kernel_wait_ns=kernel_wait,
        other_ns=other,
        unknown_ns=unknown,
        gaps={name: int((found.kind == number).sum()) for number, name in enumerate(CLASSES)},
    )


@memoised
def idle(trace: Trace, *, delay_ns: int = CONSECUTIVE_KERNEL_DELAY_NS) -> list[IdleRow]:
    """Idle time by class: a row for each device, then one for each of its streams."""
    source = frame(trace)
    rows = []
    for device in distinct(source.device_of(source.gpu)):
        mine = source.gpu_by_time[source.device_of(source.gpu_by_time) == device]
        rows.append(_row(source, mine, device, None, delay_ns))
        for track in distinct(source.track[mine]):
            rows.append(_row(source, mine[source.track[mine] == track], device, track, delay_ns))
    return rows
