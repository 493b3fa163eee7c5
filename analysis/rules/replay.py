"""Replays of the judged steps: how long would they take if some GPU work were shorter? ``Replay``.

The host runs as it did, but for its waits; a piece of GPU work starts when its launch has arrived and the
work before it has ended; a wait ends when the work that ended last before its end in the recording has
ended. So work that the GPU finishes long before the next piece arrives can be shortened without a gain, and
the replay shows that. The host can be made faster, because a profiler makes it slower.

Copies and kernels that overlap count for the time by which they prolong the busy time of the GPU.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.rules.idle_time import DeviceIdle
from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.frame import Frame, Index, Mask
from profrun.analysis.trace.intervals import EMPTY, Intervals, covered, subtract, union

Floats = NDArray[np.float64]

MOST_WAITS = 2000
"""More waits than this take too long to replay."""
FAITHFUL = 0.15
"""A replay whose time differs from the recorded one by a larger part is not used."""
REPLAY_ERROR = 0.05
"""Part by which the time of a replay may be wrong. Measured: replays of 30 recordings of one GPU, in which
nothing was changed, differ from the recorded times by at most 0.044."""
LATENCY_PERCENTILE = 5.0
RETURN_NS = 10_000
"""The most that a wait takes to return after the work that it waited for has ended."""


@dataclass(frozen=True)
class Replay:
    """The judged steps of one GPU; times in ns from the start of the first step.

    Attributes:
        ids: its GPU slices that judged steps launched, by start, shape (slices,).
        advance: time by which each prolongs the busy time, shape (slices,).
        threads: tracks of the threads that launched it.
        called: when each was launched, in the time of the trace, shape (slices,).
        call: host time without waits at which each was launched, shape (slices,).
        cut: for each wait the number of slices that were launched before it, shape (waits,).
        wait: host time without waits at which it begins, shape (waits,).
        held: when each wait was, in the time of the trace; waits of several threads at once are one.
        target: place of the slice that it waits for, -1 for none, shape (waits,).
        back: time from the end of that slice to the return, shape (waits,).
        latency: time from a launch to the start of its work where nothing is before it.
        ended: when the host has ended the last step, in the time of the trace.
        host_end: host time without waits at that moment.
        recorded: time of the steps in the recording.
    """

    ids: Index
    advance: Floats
    threads: Ints
    called: Ints
    call: Ints
    cut: Ints
    wait: Ints
    held: Intervals
    target: Ints
    back: Ints
    latency: float
    ended: int
    host_end: int
    recorded: int

    def time(self, scale: float = 1.0, kept: Floats | None = None, skipped: Mask | None = None) -> float:
        """How long the steps take.

        Args:
            scale: factor on the host's time; 0.5 is a host that is twice as fast.
            kept: part of each slice's time that remains, shape (slices,); None for all of it.
            skipped: True for each wait that the host does not wait in, shape (waits,); None for none.
        """
        work = self.advance if kept is None else self.advance * kept
        total = np.concatenate(([0.0], np.cumsum(work)))
        ends = np.empty(len(work))
        clock = own = gpu = 0.0  # of the host, of the host without its waits, of the GPU
        begin = 0
        for place in range(len(self.cut) + 1):
            until = int(self.cut[place]) if place < len(self.cut) else len(work)
            if until > begin:
                ready = clock + scale * (self.call[begin:until] - own) + self.latency
                late = np.maximum.accumulate(ready - total[begin:until])
                ends[begin:until] = total[begin + 1 : until + 1] + np.maximum(late, gpu - total[begin])
                gpu, begin = float(ends[until - 1]), until
            if place < len(self.cut):
                clock += scale * (self.wait[place] - own)
                own = float(self.wait[place])
                target = -1 if skipped is not None and skipped[place] else int(self.target[place])
                if 0 <= target < begin and ends[target] > clock:
                    clock = float(ends[target] + self.back[place])
        return max(gpu, clock + scale * (self.host_end - own))

    def most_saved(
        self, scales: Floats, kept: Floats | None = None, without: Intervals = EMPTY, gone: Intervals = EMPTY
    ) -> float:
        """The most by which the steps get shorter on hosts of several speeds, ns, at least 0.

        Args:
            scales: factors on the host's time, shape (n,), n > 0.
            kept: as in ``time``.
            without: host slices in which the host does not wait, in the time of the trace.
            gone: host slices that take no time at all.
        """
        less, skipped = self._without(gone), self.waits_in(without)
        return max(0.0, *(self.time(scale) - less.time(scale, kept, skipped) for scale in scales))

    def _without(self, gone: Intervals) -> Replay:
        """The same without the host's own time in these slices; what it waits in them stays."""
        own = subtract(gone, self.held)
        end = np.array([self.ended])
        return replace(
            self,
            call=self.call - _inside(own, self.called),
            wait=self.wait - _inside(own, self.held.starts),
            host_end=self.host_end - int(_inside(own, end)[0]),
        )

    def waits_in(self, inside: Intervals) -> Mask:
        """Which waits lie in these times for the most part, shape (waits,)."""
        part = covered(inside, self.held.starts, self.held.ends)
        return np.asarray(2 * part > self.held.ends - self.held.starts)

    @property
    def faithful(self) -> bool:
        """Does it take as long as the recording when nothing is changed?"""
        return abs(self.time() - self.recorded) <= FAITHFUL * self.recorded

    def shorter(self, kept: Floats) -> Replay:
        """The same with less of some slices' time; ``kept`` as in ``time``."""
        return replace(self, advance=self.advance * kept)

    def scale_for(self, wanted: float, fastest: float) -> float:
        """The factor on the host's time with which the steps take as long as wanted, at least ``fastest``."""
        low, high = fastest, 1.0
        if self.time(low) >= wanted:
            return low
        for _ in range(14):
            middle = (low + high) / 2
            low, high = (middle, high) if self.time(middle) < wanted else (low, middle)
        return (low + high) / 2


def replay(source: Frame, one: DeviceIdle, work: Index, waits: Index, host_end: int) -> Replay | None:
    """The replay of one GPU; None where it launched nothing inside of the steps, or waits too often.

    Args:
        source: the frame of the trace.
        one: the GPU and the judged steps of its process.
        work: GPU slices that judged steps launched.
        waits: blocking runtime calls inside of the judged steps.
        host_end: when the host has ended the last of these steps; GPU work may end later.
    """
    first, last = int(one.span.starts[0]), int(one.span.ends[-1])
    ids = work[(source.device_of(work) == one.device) & (source.launch[work] >= 0)]
    ids = ids[np.lexsort((ids, source.ts[ids]))]
    if not len(ids):
        return None
    calls = source.launch[ids]
    threads = np.unique(source.track[calls])
    mine = waits[np.isin(source.track[waits], threads)]
    held = union(source.ts[mine], source.end[mine])
    if len(held) > MOST_WAITS:
        return None
    start, called = source.ts[ids], source.ts[calls]
    reach = np.maximum.accumulate(source.end[ids])
    before = np.concatenate(([first], reach[:-1]))
    latency = (start - called)[called >= before]
    if not len(latency):
        latency = start - called
    target = np.searchsorted(reach, held.ends, side="right") - 1
    return Replay(
        ids=ids,
        advance=np.maximum(0, source.end[ids] - np.maximum(start, before)).astype(np.float64),
        threads=threads,
        called=called,
        call=_own(held, first, called),
        cut=np.searchsorted(np.maximum.accumulate(called), held.starts),
        wait=_own(held, first, held.starts),
        held=held,
        target=target,
        back=np.clip(held.ends - reach[np.maximum(target, 0)], 0, RETURN_NS),
        latency=float(max(0, np.percentile(latency, LATENCY_PERCENTILE))),
        ended=host_end,
        host_end=int(_own(held, first, np.array([host_end]))[0]),
        recorded=last - first,
    )


def _inside(what: Intervals, times: Ints) -> Ints:
    """How much of these intervals lies before each time."""
    first = int(what.starts[0]) if len(what) else 0
    return np.asarray(covered(what, np.minimum(times, first), times), dtype=np.int64)


def _own(held: Intervals, first: int, times: Ints) -> Ints:
    """Host time without waits from the first step's start to each time."""
    return np.asarray(times - first - covered(held, np.full(len(times), first), times), dtype=np.int64)
