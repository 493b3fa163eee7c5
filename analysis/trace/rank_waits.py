"""How long each collective waits for the rank that comes last, and for which rank: ``rank_waits``.

A collective ends at about the same time on all ranks. So the rank with the shortest one came last, and on
every other rank the beginning of the collective, by which it is longer, is waiting. This needs no common
clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.frame import Index
from profrun.analysis.trace.rank_clocks import by_key, members
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


@dataclass(frozen=True)
class RankWaits:
    """The matched collectives of all ranks of a trace, in no order; every array has the shape (calls,).

    Attributes:
        ids: their slices.
        wait_ns: int64, how long each waits: from its start on; 0 for that of the rank that came last.
        late: int64, the rank that came last.
    """

    ids: Index
    wait_ns: Ints
    late: Ints


def waits_of(durs: Ints) -> tuple[Ints, Ints]:
    """Waiting time inside of collectives, and who came last.

    Args:
        durs: durations, ns, shape (ranks, collectives).

    Returns:
        The wait of each, ns, the same shape; and the place of the rank that came last, shape (collectives,).
    """
    return durs - durs.min(axis=0), durs.argmin(axis=0)


@memoised
def rank_waits(trace: Trace) -> RankWaits:
    """The collectives of a trace that several ranks have, matched by their order in each process group."""
    ranks = members([trace])
    ids, wait, late = [np.zeros(0, np.intp)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for key, places in by_key(ranks).items():
        mine = [ranks[place] for place in places]
        if len(mine) < 2:
            continue
        length = min(len(one.places[key]) for one in mine)
        waits, last = waits_of(np.array([one.durs(key, length) for one in mine]))
        named = np.array([one.rank for one in mine], np.int64)[last]
        for one, own in zip(mine, waits, strict=True):
            ids.append(one.calls.ids[one.places[key][:length]])
            wait.append(own)
            late.append(named)
    return RankWaits(np.concatenate(ids), np.concatenate(wait), np.concatenate(late))
