"""Counters of a trace over time, for the tracks of a timeline: allocated memory, power, clocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.trace.columns import Ints, groups, int_column, text_codes
from profrun.analysis.trace.frame import frame
from profrun.traces.labels import labels

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


class TimelineCounter(NamedTuple):
    """The samples of one counter on one track.

    Attributes:
        name: in words, with the GPU or rank it belongs to.
        unit: of the values, as the trace has it.
        process: place of its process by rank.
        times: int64 ns from the start of the timeline, shape (samples,), not decreasing.
        values: float64, shape (samples,).
    """

    name: str
    unit: str
    process: int
    times: Ints
    values: NDArray[np.float64]


def timeline_counters(trace: Trace, start_ns: int) -> list[TimelineCounter]:
    """Every counter of a trace, without changes of memory where their sum is recorded.

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
    for number, at in enumerate(first.tolist()):
        if "memory change" in names[name[at]] and int(track[at]) in totals:
            continue  # the sum of the changes stands beside it
        mine = order[cuts[number] : cuts[number + 1]]
        process, device = int(source.track_process[track[at]]), int(source.track_device[track[at]])
        owner = labels(trace).gpus[device] if device >= 0 else ""
        if not owner and len(source.processes) > 1:
            owner = labels(trace).rank(source.processes[process]["rank"])
        label = f"{owner}: {names[name[at]]}" if owner else names[name[at]]
        found.append(
            TimelineCounter(label, units[unit[at]], source.by_rank.index(process), times[mine], values[mine])
        )
    return sorted(found, key=lambda one: (one.process, one.name))
