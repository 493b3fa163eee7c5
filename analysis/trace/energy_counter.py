"""Energy of a stretch of time by a GPU's total-energy counter: ``stretch_energy`` of its readings.

The counter is updated from time to time, and what it shows then is of a moment before the update. So the
moment of a value is known to lie between two readings: the last one with the old value and the first one with
the new value, both minus the age of the value. Two things follow.

* Power: the difference of two values inside the stretch by the time between them. It does not depend on what
  the GPU did outside of the stretch. The energy of the stretch is this power times its length.
* Bounds: energy never falls, so that the values around both ends of the stretch bound its energy, whatever
  the power did. The energy that is stated is always inside these bounds.

The resolution is twice the longer of the periods of updates and of readings, of the length of the stretch:
one period at each end. A stretch is refused where this is more than ``MOST_UNCERTAIN``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.readings import Floats, Readings

Age = tuple[int, int]
"""How old a value is at least, and at most, when the counter shows it first, ns."""
MEASURED_AGE_NS: Age = (100_000_000, 100_000_000)
"""Of NVIDIA's GPUs: on an H200 (driver 580) what is read is the energy of 100 to 200 ms before, and it
changes every 100 ms."""
UNKNOWN_AGE_NS: Age = (0, 200_000_000)
"""Where nobody has measured it: the bounds of an energy are wider then."""
UPDATE_NS = 100_000_000
"""Time between two updates where the readings do not tell it."""
MOST_UNCERTAIN = 0.05
"""Largest resolution, as a part of the energy: with 100 ms between updates a stretch lasts 4 s at least."""
MOST_WATTS = 20_000.0
"""No board uses so much: a counter that rises faster was set anew, or was misread once."""


@dataclass(frozen=True)
class StretchEnergy:
    """Energy of one GPU in a stretch of time; times are ns on the axis of the trace.

    Attributes:
        watts: mean power by the counter; None where the stretch is too short for the counter.
        joules: ``watts`` times the length of the measured part.
        low_j, high_j: bounds of ``joules`` that hold whatever the power did.
        start_ns, end_ns: the part of the stretch that the counter covers: it is shorter where readings begin
            late, end early, or where the counter was set anew.
        resolution: uncertainty of ``joules`` by the periods of updates and readings, as a part of it.
        needed_ns: length from which a stretch is measured.
    """

    watts: float | None
    joules: float | None
    low_j: float | None
    high_j: float | None
    start_ns: int
    end_ns: int
    resolution: float | None
    needed_ns: int

    @property
    def length_ns(self) -> int:
        """Length of the measured part."""
        return self.end_ns - self.start_ns


def stretch_energy(
    counter: Readings, start_ns: int, end_ns: int, *, age_ns: Age = MEASURED_AGE_NS
) -> StretchEnergy:
    """Energy of [start_ns, end_ns) by the counter.

    Args:
        counter: readings of the total energy, J; a value that is no number counts as not read.
        age_ns: of its values.

    Returns:
        Without ``watts`` where the counter covers too little of the stretch.
    """
    period = _period(counter)
    needed = round(2 * period / MOST_UNCERTAIN)
    best = StretchEnergy(None, None, None, None, start_ns, start_ns, None, needed)
    for updates in _pieces(counter, age_ns):
        found = _measured(updates, start_ns, end_ns, period, needed)
        if found is not None and found.length_ns > best.length_ns:
            best = found
    return best


@dataclass(frozen=True)
class _Updates:
    """Values of the counter, each with the bounds of its moment, ns; all of shape (updates,), increasing."""

    low: Ints
    high: Ints
    values: Floats


def _pieces(counter: Readings, age_ns: Age) -> Iterator[_Updates]:
    """The updates of each part of the readings in which the counter was not set anew."""
    known = np.isfinite(counter.values)
    times, values = counter.times[known], counter.values[known]
    if len(times) < 2:
        return
    rises, gaps = np.diff(values), np.diff(times)
    anew = (rises < 0) | (rises > MOST_WATTS * (gaps + UPDATE_NS + age_ns[1]) / 1e9)
    for part in np.split(np.arange(len(times)), np.flatnonzero(anew) + 1):
        new = part[1:][values[part[1:]] > values[part[:-1]]]
        if len(new):
            yield _Updates(times[new - 1] - age_ns[1], times[new] - age_ns[0], values[new])


def _period(counter: Readings) -> float:
    """The longer of the usual times between two updates and between two readings, ns."""
    if len(counter.times) < 3:
        return float(UPDATE_NS)
    changes = counter.times[1:][np.diff(counter.values) != 0]
    updates = float(np.median(np.diff(changes))) if len(changes) > 2 else float(UPDATE_NS)
    return max(updates, float(np.median(np.diff(counter.times))))


def _measured(
    updates: _Updates, start_ns: int, end_ns: int, period: float, needed: int
) -> StretchEnergy | None:
    """The energy of the part of the stretch that these updates cover; None where they cover none."""
    start, end = max(start_ns, int(updates.high[0])), min(end_ns, int(updates.low[-1]))
    if end <= start:
        return None
    resolution = 2 * period / (end - start)
    refused = StretchEnergy(None, None, None, None, start, end, None, needed)
    inside = np.flatnonzero((updates.low >= start) & (updates.high <= end))
    if resolution > MOST_UNCERTAIN or len(inside) < 2:
        return refused
    first, last = int(inside[0]), int(inside[-1])
    middles = (updates.low + updates.high) / 2
    watts = 1e9 * (updates.values[last] - updates.values[first]) / (middles[last] - middles[first])
    ends = [
        (
            updates.values[np.searchsorted(updates.high, moment, side="right") - 1],
            updates.values[np.searchsorted(updates.low, moment, side="left")],
        )
        for moment in (start, end)
    ]
    low, high = max(0.0, float(ends[1][0] - ends[0][1])), float(ends[1][1] - ends[0][0])
    joules = min(max(float(watts) * (end - start) / 1e9, low), high)
    return StretchEnergy(1e9 * joules / (end - start), joules, low, high, start, end, resolution, needed)
