"""Counters of a trace over time, for the tracks of a timeline: allocated memory, power, clocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.trace.columns import Ints, groups, int_column, text_codes
from profrun.analysis.trace.frame import frame
from profrun.contract.sampling import MEANINGS, TRACK, Quantity, reasons_in
from profrun.traces.labels import labels

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


class TimelineCounter(NamedTuple):
    """The samples of one counter on one track.

    Attributes:
        name: in words, with the GPU or rank it belongs to.
        unit: of the values, as the trace has it.
        process: place of its process by rank.
        times: int64 ns from the start of the timeline, shape (samples,), not decreasing. A value holds until
            the next; the first sample may lie before the start.
        values: float64, shape (samples,).
        words: where the values are states: what each whole number means, 0 is nothing to be shown.
    """

    name: str
    unit: str
    process: int
    times: Ints
    values: NDArray[np.float64]
    words: tuple[str, ...] = ()


def timeline_counters(trace: Trace, start_ns: int) -> list[TimelineCounter]:
    """The counters of a trace, those of the profiler before the sampler's.

    Changes of memory are left out where their sum is recorded. Of the samples of the whole trial only those
    within the timeline are shown, and the last before it. The energy counter is left out: the power says it;
    so is the averaged power where the power of the moment is there. What is 0 throughout is left out, and of
    some quantities (``_WHERE_IT_VARIES``) what does not change.

    Args:
        trace: any trace.
        start_ns: start of the timeline on the axis of the trace.
    """
    con, source = trace.tables, frame(trace)
    track = int_column(con, "counters", "track::INTEGER", np.int32)
    if not len(track):
        return []
    times = int_column(con, "counters", "ts_ns", np.int64) - start_ns
    values = np.asarray(con.execute("SELECT value FROM counters").fetchnumpy()["value"], dtype=np.float64)
    (name, names), (unit, units) = (text_codes(con, "counters", column) for column in ("name", "unit"))
    first, group = groups(track, name, unit)
    order = np.lexsort((times, group))
    cuts = np.searchsorted(group[order], np.arange(len(first) + 1))
    totals = {int(track[at]) for at in first if "allocated" in names[name[at]]}
    found = []
    sampled = {one for (one,) in con.execute("SELECT track FROM tracks WHERE name = ?", [TRACK]).fetchall()}
    instant = {int(track[at]) for at in first if names[name[at]] == MEANINGS["power"].name}
    for number, at in enumerate(first.tolist()):
        called, on = names[name[at]], int(track[at])
        if "memory change" in called and on in totals:
            continue  # the sum of the changes stands beside it
        mine = order[cuts[number] : cuts[number + 1]]
        place = _PLACES.get(called, -1) if on in sampled else -1
        if place >= 0:
            mine = _within(times, mine, source.extent[0] - start_ns, source.extent[1] - start_ns)
            if not _shown(called, values[mine], instant=on in instant):
                continue
        process, device = int(source.track_process[on]), int(source.track_device[on])
        owner = labels(trace).gpus[device] if device >= 0 else ""
        if not owner and len(source.processes) > 1:
            owner = labels(trace).rank(source.processes[process]["rank"])
        label = f"{owner}: {called}" if owner else called
        rank = source.by_rank.index(process)
        counter = TimelineCounter(label, units[unit[at]], rank, times[mine], values[mine])
        if place == _PLACES[MEANINGS["reasons"].name]:
            counter = _in_words(counter)
        after = (device < 0, owner, place) if place >= 0 else ()  # the sampler's, GPUs before the host
        found.append(((rank, place >= 0, after, label), counter))
    return [counter for _, counter in sorted(found, key=lambda one: one[0])]


_PLACES = {meaning.name: place for place, meaning in enumerate(MEANINGS.values())}
"""Name of a sampled counter -> its place among them."""


_QUIET: tuple[Quantity, ...] = ("memory_clock", "utilization", "processes", "cpu_clock")
_WHERE_IT_VARIES = {MEANINGS[quantity].name for quantity in _QUIET}
"""Sampled counters that tell nothing where they stay as they are."""


def _within(times: Ints, mine: Ints, low: int, high: int) -> Ints:
    """Those of the samples ``mine`` that lie in [low, high), and the last before them."""
    begin = int(np.searchsorted(times[mine], low, side="right")) - 1
    return mine[max(begin, 0) : int(np.searchsorted(times[mine], high, side="left"))]


def _shown(name: str, values: NDArray[np.float64], *, instant: bool) -> bool:
    """Whether a sampled counter is shown; ``instant``: the power of the moment stands beside the average."""
    hidden = {MEANINGS["energy"].name} | ({MEANINGS["power_average"].name} if instant else set())
    varies = bool(np.any(values)) and not bool(name in _WHERE_IT_VARIES and np.all(values == values[0]))
    return name not in hidden and varies


def _in_words(mask: TimelineCounter) -> TimelineCounter:
    """The reasons as states: a sample at each change, its value the place of the reasons in ``words``."""
    kept = np.flatnonzero(np.diff(mask.values, prepend=np.nan) != 0)
    found, place = np.unique(np.append(0, mask.values[kept].astype(np.int64)), return_inverse=True)
    words = tuple(", ".join(reasons_in(int(one))) for one in found)
    return mask._replace(unit="1", times=mask.times[kept], values=place[1:].astype(np.float64), words=words)
