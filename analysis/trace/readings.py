"""What the sampler read while the program ran: ``gpu_readings`` and ``host_readings`` of a trace.

The sampler's values are counters of the trace (``contract.sampling``). A reading is the value from its time
until the next one; what the vendor's library returned may be some 100 ms older than its time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.trace.columns import Ints, int_column, text_codes
from profrun.contract.sampling import MEANINGS, TRACK, Quantity
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

Floats = NDArray[np.float64]

LATE_NS = 200_000_000
"""A reading may be of a state so long ago: on an H200 what is read was up to 200 ms old."""


@dataclass(frozen=True)
class MeanReading:
    """The mean of a quantity over some stretches of time.

    Attributes:
        value: mean over their time, in the unit of ``MEANINGS``.
        readings: how many readings hold in them, 1 or more; with few, what is read may be of another state,
            up to ``LATE_NS`` ago.
    """

    value: float
    readings: int


@dataclass(frozen=True)
class Readings:
    """The values of one quantity of one GPU or host.

    Attributes:
        times: ns on the axis of the trace, int64, shape (readings,), increasing.
        values: in the unit of ``MEANINGS``, float64, shape (readings,).
    """

    times: Ints
    values: Floats

    def between(self, start_ns: int, end_ns: int) -> Readings:
        """The readings taken in [start_ns, end_ns)."""
        low, high = np.searchsorted(self.times, (start_ns, end_ns))
        return Readings(self.times[low:high], self.values[low:high])

    def mean(self, start_ns: int, end_ns: int) -> float | None:
        """Mean over time of [start_ns, end_ns): each reading holds until the next.

        Where the stretch begins before the first reading, it is the plain mean of the readings in it; None
        where there are none.
        """
        if not len(self.times) or end_ns <= start_ns or self.times[0] > start_ns:
            inside = self.between(start_ns, end_ns)
            return float(inside.values.mean()) if len(inside.values) else None
        first = int(np.searchsorted(self.times, start_ns, side="right")) - 1
        last = int(np.searchsorted(self.times, end_ns, side="left"))
        edges = np.concatenate(([start_ns], self.times[first + 1 : last], [end_ns]))
        return float(np.average(self.values[first:last], weights=np.diff(edges)))

    def over(self, starts: Ints, ends: Ints) -> MeanReading | None:
        """Mean over the time of all stretches together; None where no reading was taken before any ends.

        Args:
            starts, ends: of the stretches, ns, int64, shape (stretches,). What lies before the first reading
                does not count.
        """
        if not len(self.times) or not len(starts):
            return None
        start = np.maximum(starts, self.times[0])
        kept = ends > start
        start, end = start[kept], ends[kept]
        total = int((end - start).sum())
        if not total:
            return None
        first = np.searchsorted(self.times, start, side="right") - 1
        last = np.searchsorted(self.times, end, side="left") - 1
        edges = np.zeros(len(self.times) + 1, dtype=np.int64)
        np.add.at(edges, first, 1)
        np.add.at(edges, last + 1, -1)
        mean = float(self._integrals(start, end).sum()) / total
        return MeanReading(mean, int((np.cumsum(edges) > 0).sum()))

    def means(self, starts: Ints, ends: Ints) -> Floats:
        """Means over time of many stretches; the first reading holds before it, too.

        Args:
            starts, ends: ns, int64, shape (n,); each end is after its start. There is at least one reading.
        """
        return np.asarray(self._integrals(starts, ends) / (ends - starts))

    def _integrals(self, starts: Ints, ends: Ints) -> Floats:
        """Value x ns of each stretch; the first reading holds before it, too."""
        sums = np.concatenate([[0.0], np.cumsum(self.values[:-1] * np.diff(self.times))])

        def until(times: Ints) -> Floats:
            place = np.clip(np.searchsorted(self.times, times, side="right") - 1, 0, None)
            return np.asarray(sums[place] + self.values[place] * (times - self.times[place]))

        return until(ends) - until(starts)


Quantities = Mapping[Quantity, Readings]


@memoised
def gpu_readings(trace: Trace) -> Mapping[int, Quantities]:
    """Device id -> quantity -> readings; no device in it where nothing was sampled."""
    return {device: found for device, found in _by_owner(trace).items() if device >= 0}


@memoised
def host_readings(trace: Trace) -> Quantities:
    """Quantity -> readings of the host on which the first process ran; empty where nothing was sampled."""
    return _by_owner(trace).get(-1, {})


def sm_clock(trace: Trace, device: int, starts: Ints, ends: Ints) -> MeanReading | None:
    """Mean clock of the SMs or compute units of a GPU over stretches of time, MHz; None without samples.

    Args:
        starts, ends: of the stretches on the axis of the trace, ns, int64, shape (stretches,).
    """
    found = gpu_readings(trace).get(device, {}).get("sm_clock")
    return None if found is None else found.over(starts, ends)


@memoised
def _by_owner(trace: Trace) -> Mapping[int, dict[Quantity, Readings]]:
    """Device id, or -1 for the host -> quantity -> readings."""
    con = trace.tables
    track = int_column(con, "counters", "track::INTEGER", np.int32)
    if not len(track):
        return {}
    owners = dict(
        con.execute("SELECT track, coalesce(device, -1) FROM tracks WHERE name = ?", [TRACK]).fetchall()
    )
    name, names = text_codes(con, "counters", "name")
    times = int_column(con, "counters", "ts_ns", np.int64)
    values = np.asarray(con.execute("SELECT value FROM counters").fetchnumpy()["value"], dtype=np.float64)
    found: dict[int, dict[Quantity, Readings]] = {}
    for number, owner in sorted(owners.items()):
        for quantity, meaning in MEANINGS.items():
            if meaning.name not in names or quantity in found.get(int(owner), {}):
                continue
            mine = np.flatnonzero((track == number) & (name == names.index(meaning.name)))
            if len(mine):
                mine = mine[np.argsort(times[mine], kind="stable")]
                found.setdefault(int(owner), {})[quantity] = Readings(times[mine], values[mine])
    return found
