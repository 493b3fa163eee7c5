"""What a recording can show of its GPU clock's offset, by two laws only.

A GPU record starts after the call that enqueued it began; and it has ended when a call that waits for it
returns. With the offset ``o`` = reading of the GPU's clock minus the host's time, the first law gives
``o <= start - launch`` and the second ``o >= end - return``. This is a yardstick and not the best that can be
had: it knows no events, no order of streams, no steps and no collectives. What it can see must be found.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass

from planted_damage.model import GpuRecord, HostRecord, Recording

DEVICE_WAITS = {"cudaDeviceSynchronize", "cuCtxSynchronize", "hipDeviceSynchronize"}
STREAM_WAITS = {"cudaStreamSynchronize", "cuStreamSynchronize", "hipStreamSynchronize"}
COPY_WAITS = {"cudaMemcpy", "hipMemcpy", "hipMemcpyWithStream", "cuMemcpyDtoH_v2"}
COLLECTIVE = re.compile(r"(AllReduce|AllGather|ReduceScatter|AllToAll)(?=[_ A-Za-z(]|$)")
"""In names of kernels: collectives that wait for every rank. A broadcast does not."""
READ_TO_NS = 2000
"""Two ticks of a file with whole microseconds: less than that proves nothing."""
ASYNC_COPIES = {"cudaMemcpyAsync", "hipMemcpyAsync"}


@dataclass(frozen=True)
class Slack:
    """Bounds of a process's offset, ns.

    Attributes:
        low: the offset is not below it; None where no call waits.
        high: the offset is not above it; None where no launch is known.
    """

    low: int | None
    high: int | None

    @property
    def empty(self) -> bool:
        """No constant offset obeys both laws."""
        return self.low is not None and self.high is not None and self.low > self.high

    @property
    def shows_displacement(self) -> bool:
        """An offset of 0 is impossible, by more than what clocks are read to."""
        low = -READ_TO_NS if self.low is None else self.low
        high = READ_TO_NS if self.high is None else self.high
        return low > READ_TO_NS or high < -READ_TO_NS or low - high > 2 * READ_TO_NS

    def holds(self, offset: float) -> bool:
        """Whether the offset is possible."""
        return (self.low is None or self.low <= offset) and (self.high is None or offset <= self.high)


def slack(recording: Recording) -> dict[Hashable, Slack]:
    """Bounds of each process."""
    apis: dict[Hashable, list[HostRecord]] = defaultdict(list)
    for row in recording.host:
        if row.kind == "api":
            apis[row.process].append(row)
    work: dict[Hashable, list[GpuRecord]] = defaultdict(list)
    for record in recording.work:
        work[record.process].append(record)
    return {process: _of(records, apis[process]) for process, records in work.items()}


def rank_slack(recording: Recording) -> Slack | None:
    """Bounds of what the last rank's clock differs from the first's; None without the same collectives.

    The k-th collective of its name ends on no rank before it has begun on every rank.
    """
    lists = []
    for process in (recording.processes[0], recording.processes[-1]):
        found = sorted(
            (r.start, r.end, match.group())
            for r in recording.work
            if r.process == process and (match := COLLECTIVE.search(r.name))
        )
        lists.append(found)
    one, other = lists
    if not one or [row[2] for row in one] != [row[2] for row in other]:
        return None
    pairs = list(zip(one, other, strict=True))
    return Slack(max(b[0] - a[1] for a, b in pairs), min(b[1] - a[0] for a, b in pairs))


def _of(work: list[GpuRecord], apis: list[HostRecord]) -> Slack:
    calls: dict[Hashable, HostRecord] = {}
    for api in apis:  # a call that nsys writes twice (with a backtrace): the later start is the safer one
        known = calls.get(api.correlation)
        if api.correlation is not None and (known is None or api.start > known.start):
            calls[api.correlation] = api
    pairs = [(record, calls[record.correlation]) for record in work if record.correlation in calls]
    high = min((record.start - call.start for record, call in pairs), default=None)
    ends = [record.end - call.end for record, call in pairs if _call_waits(record, call)]
    for lane in {*(record.lane for record in work), None}:
        launched = sorted((call.end, record.end) for record, call in pairs if lane in (None, record.lane))
        if not launched:
            continue
        returned = [time for time, _ in launched]
        last = list(itertools.accumulate((end for _, end in launched), max))
        for api in apis:
            waits = (
                api.name in DEVICE_WAITS
                if lane is None
                else api.name in STREAM_WAITS and api.waits_for == lane
            )
            before = bisect_left(returned, api.start) if waits else 0
            if before:
                ends.append(last[before - 1] - api.end)
    return Slack(max(ends, default=None), high)


def _call_waits(record: GpuRecord, call: HostRecord) -> bool:
    """Whether the call returns only when its own copy to the host has ended."""
    to_host = any(text in record.name for text in ("DtoH", "DeviceToHost"))
    pageable = "Pageable" in record.name
    return to_host and (call.name in COPY_WAITS or (call.name in ASYNC_COPIES and pageable))
