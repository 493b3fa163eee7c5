"""Launch latency, queue length, and time blocked on a full queue.

Queue length of a stream (HTA, ``trace_counters.py``): +1 when a call that enqueues work for it starts, -1
when that work starts on the GPU. GPU slices whose call is not in the trace are left out and counted.
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

MAX_QUEUE_LENGTH = 1024
"""Work a CUDA stream takes before a launch blocks (HTA's default)."""


@dataclass(frozen=True)
class Distribution:
    """Summary of a sample in ns; percentiles interpolate linearly."""

    count: int
    mean: float
    p50: float
    p99: float
    min: int
    max: int


@dataclass(frozen=True)
class LaunchStats:
    """How long work waits between its call and its start.

    Attributes:
        latency: start of the GPU slice - start of the call.
        delay: start of the GPU slice - end of the call; negative when it starts while the call still runs.
        call: time in the enqueueing calls; a graph launch counts once.
        unplaced: GPU slices without a known call, not in these numbers.
    """

    latency: Distribution | None
    delay: Distribution | None
    call: Distribution | None
    unplaced: int


@dataclass(frozen=True)
class QueueRow:
    """Queue of one stream; lengths in GPU slices, times ns.

    Attributes:
        device, track, stream: the stream.
        max_length, mean_length: mean over the time from the first call to the last start (``span_ns``).
        blocked_ns: time with at least ``limit`` queued; blocked_of: span_ns.
    """

    device: int
    track: int
    stream: int | None
    max_length: int
    mean_length: float
    blocked_ns: int
    span_ns: int
    limit: int
    blocked_of: str = field(default="span_ns", init=False)


def distribution(values: Ints) -> Distribution | None:
    """Summary of a sample, None when it is empty."""
    if not len(values):
        return None
    p50, p99 = np.percentile(values, [50, 99])
    return Distribution(
        len(values), float(values.mean()), float(p50), float(p99), int(values.min()), int(values.max())
    )


def called(source: Frame) -> Index:
    """GPU slices whose enqueueing runtime call is known (an op instead of a call does not tell when)."""
    ids = source.launched
    return ids[source.is_kind(source.launch[ids], "api")]


def _distinct(ids: Index, size: int) -> Index:
    """Ids without repeats, in order."""
    seen = np.zeros(size, dtype=bool)
    seen[ids] = True
    return np.flatnonzero(seen)


def launch_stats(trace: Trace) -> LaunchStats:
    """Launch latency over all GPU slices with a known call."""
    source = frame(trace)
    ids = called(source)
    calls = source.launch[ids]
    return LaunchStats(
        distribution(source.ts[ids] - source.ts[calls]),
        distribution(source.ts[ids] - source.end[calls]),
        distribution(source.durs(_distinct(calls, len(source)))),
        len(source.gpu) - len(ids),
    )


def queue_series(source: Frame, ids: Index) -> tuple[Ints, Ints]:
    """Queue length over time for GPU slices of one stream.

    Returns:
        (times in ns, length from that time on), int64, shape (2 x slices,).
    """
    calls = source.launch[ids]
    times = np.concatenate((source.ts[calls], source.ts[ids]))
    change = np.concatenate((np.ones(len(ids), np.int64), -np.ones(len(ids), np.int64)))
    order = np.lexsort((-change, times))
    return times[order], np.cumsum(change[order])


@memoised
def queues(trace: Trace, *, limit: int = MAX_QUEUE_LENGTH) -> list[QueueRow]:
    """Queue length of every stream that has placed work."""
    source = frame(trace)
    ids = called(source)
    rows = []
    for track in distinct(source.track[ids]):
        times, length = queue_series(source, ids[source.track[ids] == track])
        lasts = np.diff(times)
        span = int(times[-1] - times[0])
        rows.append(
            QueueRow(
                device=int(source.track_device[track]),
                track=track,
                stream=source.track_native[track],
                max_length=int(length.max()),
                mean_length=float((length[:-1] * lasts).sum() / span) if span else 0.0,
                blocked_ns=int(lasts[length[:-1] >= limit].sum()),
                span_ns=span,
                limit=limit,
            )
        )
    return rows
