"""Why no clock fits: one stream, a jump in the middle, or another unit."""

from __future__ import annotations

import numpy as np

from profrun.traces.causality import bounds
from profrun.traces.causality.clocks import TOLERANCE_NS, fit
from profrun.traces.causality.damage import UNIT
from profrun.traces.causality.model import Clock, Contradiction, Ids, Ints, Mask
from profrun.traces.causality.recording import Recording

FEWEST = 10
"""Fewer launches say nothing of a unit."""
SPREAD = 0.5
"""How far the ratio of the spans may be from the factor, either way, as a part of it."""
MOST_STREAMS = 64
"""More streams of one device are not tried one by one."""
LATE_NS = 1_000_000_000
"""Without a call that waits, GPU work is late when even its quickest launch took this long, and"""
LATE = 10
"""this many times as long as all launches together."""


def time_unit(rec: Recording, ids: Ids, clocks: list[Clock]) -> Contradiction | None:
    """Is the GPU's axis 1000 times as long or as short as the host's?

    Only asked where the clock does not fit: the spans must then be about 1000 times as different, and
    another unit must make everything fit.

    Args:
        rec: the recording.
        ids: the GPU slices of one device with known launches.
        clocks: what was found for the device.
    """
    if len(ids) < FEWEST or all(clock.verdict in ("consistent", "unknown") for clock in clocks):
        return None
    for factor in (UNIT, 1 / UNIT):
        if _fits(rec, ids, factor):
            return _about(rec, "gpu_time_unit", ids, ids, float(factor))
    return None


def _fits(rec: Recording, ids: Ids, factor: float) -> bool:
    """Do all bounds fit when GPU times are divided by the factor?"""
    ratio = _span(rec.ts[ids]) / max(_span(rec.ts[rec.launch[ids]]), 1)
    if not (1 - SPREAD) * factor < ratio < factor / (1 - SPREAD):
        return False
    first = int(rec.ts[ids].min())
    lower = _scaled(bounds.lower(rec, ids), first, factor)
    upper = _scaled(bounds.upper(rec, ids, alone=rec.alone(ids)), first, factor)
    return fit(lower, upper, 0, rec.resolution * UNIT).verdict != "contradiction"


def _scaled(found: bounds.Bounds, first: int, factor: float) -> bounds.Bounds:
    gpu = np.rint((found.gpu - first) / factor).astype(np.int64)
    return bounds.Bounds(gpu, found.value + found.gpu - gpu, found.host)


def _span(times: Ints) -> int:
    """From the 5th to the 95th percentile."""
    edge = len(times) // 20
    ordered = np.partition(times, [edge, len(times) - 1 - edge])
    return int(ordered[len(times) - 1 - edge] - ordered[edge])


def one_stream(rec: Recording, ids: Ids) -> tuple[Contradiction, Ids] | None:
    """The one stream without which everything fits, and the slices of the others; smaller streams first."""
    tracks, count = np.unique(rec.track[ids], return_counts=True)
    if not 1 < len(tracks) <= MOST_STREAMS:
        return None
    tolerance = TOLERANCE_NS + rec.resolution
    few = tracks[count <= len(ids) / 2]
    for track in few[np.argsort(count[count <= len(ids) / 2], kind="stable")]:
        rest = ids[rec.track[ids] != track]
        low, high = bounds.lower(rec, rest), bounds.upper(rec, rest, alone=rec.alone(rest))
        if fit(low, high, int(rec.ts[rest].min()), tolerance).verdict in ("consistent", "offset"):
            mine = ids[rec.track[ids] == track]
            late = bounds.lower(rec, mine).value.max()
            return _about(rec, "stream_displaced", mine, ids, float(late) if late > 0 else None), rest
    return None


def jump(rec: Recording, ids: Ids, low: bounds.Bounds, high: bounds.Bounds) -> Contradiction | None:
    """The one time at which the clock jumps: everything before it fits, and everything after it."""
    if not len(low) or not len(high):
        return None
    host = np.concatenate((low.host, high.host))
    order = np.argsort(host, kind="stable")
    tolerance = TOLERANCE_NS + rec.resolution
    far = np.iinfo(np.int64)
    floor = np.concatenate((low.value - tolerance, np.full(len(high), far.min)))[order]
    ceiling = np.concatenate((np.full(len(low), far.max), high.value + tolerance))[order]
    before = _fitting(floor, ceiling)
    after = _fitting(floor[::-1], ceiling[::-1])[::-1]
    cuts = np.flatnonzero(before[:-1] & after[1:])
    if not len(cuts):
        return None
    cut = int(cuts[len(cuts) // 2])
    late = ids[rec.ts[rec.launch[ids]] >= host[order[cut + 1]]]
    if not len(late):
        return None
    change = float(
        _least(floor[cut + 1 :], ceiling[cut + 1 :]) - _least(floor[: cut + 1], ceiling[: cut + 1])
    )
    return _about(rec, "clock_jump", late, ids, change)


def _fitting(floor: Ints, ceiling: Ints) -> Mask:
    """Is a constant offset possible for all constraints up to each?"""
    return np.asarray(np.maximum.accumulate(floor) <= np.minimum.accumulate(ceiling))


def _least(floor: Ints, ceiling: Ints) -> int:
    """The constant offset next to 0."""
    return min(max(0, int(floor.max())), int(ceiling.min()))


def late_work(rec: Recording, ids: Ids, clocks: list[Clock]) -> Contradiction | None:
    """GPU work far behind all launches, in a recording without any call that waits for it."""
    if any(clock.waits or clock.verdict != "consistent" for clock in clocks):
        return None
    calls = rec.launch[ids]
    quickest = int((rec.ts[ids] - rec.ts[calls]).min())
    span = int(rec.end[calls].max() - rec.ts[calls].min())
    if quickest < LATE_NS or quickest < LATE * span:
        return None
    return _about(rec, "gpu_work_late", ids, ids, float(quickest))


def _about(rec: Recording, code: str, ids: Ids, every: Ids, amount: float | None) -> Contradiction:
    tracks = np.unique(rec.track[ids])
    return Contradiction(
        code=code,
        count=len(ids),
        total=len(every),
        process=int(rec.process_of(ids[:1])[0]),
        device=int(rec.device_of(ids[:1])[0]),
        track=int(tracks[0]) if len(tracks) == 1 else None,
        first_ns=int(rec.ts[ids].min()),
        last_ns=int(rec.end[ids].max()),
        amount=amount,
        example=int(ids[0]),
    )
