"""Memory over time from allocator records: peaks, and what was allocated inside ops.

Source: counters with unit 'byte' whose name holds 'allocated' or 'reserved' (torch's ``profile_memory``
instants: totals after each allocation or free). Numbers are those of torch's caching allocators, not of the
driver.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.frame import Frame, Index, Mask, frame
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


@dataclass(frozen=True)
class MemorySeries:
    """One allocator counter.

    Attributes:
        device: device id, None for host memory.
        process: process id.
        name: the counter's name.
        times, values: int64, shape (records,): ns and bytes, in time order.
    """

    device: int | None
    process: int
    name: str
    times: Ints
    values: Ints


@dataclass(frozen=True)
class MemoryPeak:
    """The peak of one device (or the host); bytes.

    Attributes:
        device: device id, None for host memory.
        peak_bytes, at_ns: the highest allocated total and its first moment.
        reserved_bytes: highest total that the caching allocator held, None when not recorded.
        first_bytes, last_bytes: totals at the first and last record.
        records: allocations and frees recorded.
        ops: innermost ops running at the peak's moment, one per thread.
        capacity_bytes: memory of the device, None when not known.
        share: peak_bytes / capacity_bytes.
    """

    device: int | None
    peak_bytes: int
    at_ns: int
    reserved_bytes: int | None
    first_bytes: int
    last_bytes: int
    records: int
    ops: tuple[str, ...]
    capacity_bytes: int | None
    share: float | None
    share_of: str = field(default="capacity_bytes", init=False)


@memoised
def series(trace: Trace) -> list[MemorySeries]:
    """Every allocator counter of the trace."""
    got = trace.tables.execute(
        "SELECT c.track, c.name, c.ts_ns, c.value::BIGINT AS value, coalesce(t.device, -1) AS device, "
        "t.process FROM counters c JOIN tracks t USING (track) WHERE c.unit IN ('byte', 'bytes') "
        "AND regexp_matches(c.name, '(?i)allocated|reserved|memory change') ORDER BY c.track, c.name, c.ts_ns"
    ).fetchnumpy()
    names = np.asarray(got["name"], dtype=object)
    if not len(names):
        return []
    tracks = np.asarray(got["track"])
    cut = np.flatnonzero(np.append(True, (tracks[1:] != tracks[:-1]) | (names[1:] != names[:-1])))
    found = []
    for start, stop in zip(cut, np.append(cut[1:], len(names)), strict=True):
        device = int(got["device"][start])
        found.append(
            MemorySeries(
                None if device < 0 else device,
                int(got["process"][start]),
                str(names[start]),
                np.asarray(got["ts_ns"][start:stop], np.int64),
                np.asarray(got["value"][start:stop], np.int64),
            )
        )
    return found


def changes(trace: Trace) -> list[MemorySeries]:
    """The series of single allocations (positive) and frees (negative)."""
    return [one for one in series(trace) if "change" in one.name.lower()]


def allocated(trace: Trace) -> list[MemorySeries]:
    """The series of allocated totals."""
    return [one for one in series(trace) if "alloc" in one.name.lower()]


def op_memory(
    trace: Trace, ids: Index, row: NDArray[np.intp], rows: int, calls: Mask
) -> tuple[Ints, Ints] | None:
    """Net bytes allocated inside op calls, by row of a table; None without memory records.

    torch's rule (``MemRecordsAcc.in_interval``): every record of the process between a call's start and its
    end, both included, whichever thread made it.

    Args:
        trace: the trace.
        ids: slices of the calls.
        row: the row of each of them.
        rows: number of rows.
        calls: which of them count.

    Returns:
        (host bytes, device bytes), int64, shape (rows,).
    """
    found = net_bytes(trace, ids)
    if found is None:
        return None
    host, device = (
        np.bincount(row, weights=np.where(calls, values, 0), minlength=rows).astype(np.int64)
        for values in found
    )
    return host, device


def net_bytes(trace: Trace, ids: Index) -> tuple[Ints, Ints] | None:
    """Bytes allocated minus freed inside each of these slices, by torch's rule (``op_memory``).

    Returns:
        (host bytes, device bytes), int64, shape (slices,); None without memory records.
    """
    single = changes(trace)
    found = single or allocated(trace)
    if not found:
        return None
    source = frame(trace)
    total = [np.zeros(len(ids), np.int64), np.zeros(len(ids), np.int64)]
    for number, one in enumerate(found):
        if single:  # as running totals from 0
            one = found[number] = replace(one, values=np.cumsum(one.values))
        before = np.searchsorted(one.times, source.ts[ids], side="left") - 1
        after = np.searchsorted(one.times, source.end[ids], side="right") - 1
        first = 0 if single else one.values[0]
        delta = np.where(after >= 0, one.values[after], first) - np.where(
            before >= 0, one.values[before], first
        )
        total[one.device is not None] += np.where(source.process_of(ids) == one.process, delta, 0)
    return total[0], total[1]


def _running(source: Frame, process: int, at: int) -> tuple[str, ...]:
    """Names of the innermost ops that run at a time, one per thread."""
    ids = source.of("op")
    ids = ids[(source.process_of(ids) == process) & (source.ts[ids] <= at) & (source.end[ids] > at)]
    inner: dict[int, int] = {}
    for slice_id in ids:
        track = int(source.track[slice_id])
        if track not in inner or source.ts[slice_id] >= source.ts[inner[track]]:
            inner[track] = int(slice_id)
    return tuple(sorted(source.text(slice_id) for slice_id in inner.values()))


@memoised
def memory(trace: Trace) -> list[MemoryPeak]:
    """Peak of every device with allocator records, and of host memory."""
    source = frame(trace)
    every = series(trace)
    reserved = {(one.device, one.process): one for one in every if "reserved" in one.name.lower()}
    capacity = {row["device"]: row["memory_bytes"] for row in source.devices}
    rows = []
    for one in allocated(trace):
        place = int(np.argmax(one.values))
        peak = int(one.values[place])
        held = reserved.get((one.device, one.process))
        size = capacity.get(one.device) if one.device is not None else None
        rows.append(
            MemoryPeak(
                device=one.device,
                peak_bytes=peak,
                at_ns=int(one.times[place]),
                reserved_bytes=int(held.values.max()) if held is not None else None,
                first_bytes=int(one.values[0]),
                last_bytes=int(one.values[-1]),
                records=len(one.times),
                ops=_running(source, one.process, int(one.times[place])),
                capacity_bytes=size,
                share=peak / size if size else None,
            )
        )
    return rows
