"""The clocks of several ranks against each other, as far as their collectives bound them.

Collectives in which every rank needs data of every other end on no rank before the last one has begun
(``traces.causality.exchange``). They are matched by their order in each process group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.trace.collectives import Calls, collective_calls, in_order
from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.frame import Frame, frame
from profrun.traces.causality.exchange import FAR, Exchanges, RankBounds, bounds
from profrun.traces.causality.model import Mask
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

MUTUAL = (
    "allreduce", "all_reduce", "allgather", "all_gather", "reducescatter", "reduce_scatter", "alltoall",
    "all_to_all", "barrier",
)  # fmt: skip
"""Collectives in which every rank needs data of every other, by the beginning of their names."""
_PARTIAL = ("alltoallv", "all_to_allv", "all_to_all_v")
"""Of these a rank may get nothing from another."""

Key = tuple[str, str | None]
"""Collective and process group."""

TOLERANCE_NS = 2000
"""How far the times of a collective may be wrong; docs/clocks.md has what was measured."""


@dataclass(frozen=True)
class Member:
    """The collectives of one rank of one trace.

    Attributes:
        rank, trace, process: which rank; index of its trace; its process there.
        host, epoch_ns: of its process and trace, where they are known.
        source, calls: where its collectives are.
        places: for each collective and group the places in ``calls``, in the order of their starts.
    """

    rank: int
    trace: int
    process: int
    host: str | None
    epoch_ns: int | None
    source: Frame
    calls: Calls
    places: dict[Key, Ints]

    def starts(self, key: Key, length: int) -> Ints:
        """Starts of the first ``length`` calls of a kind, on the axis of the unix epoch where it is known."""
        return np.asarray(self.source.ts[self.calls.ids[self.places[key][:length]]] + (self.epoch_ns or 0))

    def durs(self, key: Key, length: int) -> Ints:
        """Durations of the first ``length`` calls of a kind."""
        return self.source.durs(self.calls.ids[self.places[key][:length]])

    def sizes(self, key: Key, length: int) -> Ints:
        """Bytes of the first ``length`` calls of a kind, -1 where they are not known."""
        size = np.array([-1 if form.bytes is None else form.bytes for form in self.calls.forms], np.int64)
        return np.asarray(size[self.calls.form[self.places[key][:length]]])


@dataclass(frozen=True)
class RankClock:
    """The clock of one rank against that of the first; ns.

    Attributes:
        rank, trace: which rank, and the index of its trace.
        low_ns, high_ns: bounds of what must be added to its times to be on the axis of the first rank; None
            where nothing bounds it. The axis is that of the unix epoch where traces state it.
        collectives: how many of its collectives bound it.
        host: on which it ran; None where nothing tells.
    """

    rank: int
    trace: int
    low_ns: int | None
    high_ns: int | None
    collectives: int
    host: str | None = None

    @property
    def offset_ns(self) -> int:
        """The offset next to 0 that is possible; 0 where nothing bounds it."""
        low = -FAR if self.low_ns is None else self.low_ns
        high = FAR if self.high_ns is None else self.high_ns
        return min(max(0, low), high)

    @property
    def agrees(self) -> bool:
        """Whether its clock can be the same as that of the first rank."""
        return self.offset_ns == 0


@dataclass(frozen=True)
class RankClocks:
    """The clocks of all ranks, in the order of ``members``.

    Attributes:
        clocks: one for each rank.
        consistent: whether any clocks fit all collectives.
        common: whether all ranks are stated to be on one axis: in one trace, or on one host with known
            epochs.
    """

    clocks: list[RankClock]
    consistent: bool
    common: bool

    @property
    def comparable(self) -> bool:
        """Whether times of different ranks can be compared as they are."""
        return self.common and self.consistent and all(clock.agrees for clock in self.clocks)


def members(traces: Sequence[Trace]) -> list[Member]:
    """Every rank that has collectives on its GPU, sorted by rank and trace."""
    found: dict[tuple[int, int], Member] = {}
    for number, trace in enumerate(traces):
        source, calls = frame(trace), collective_calls(trace)
        if not len(calls.ids) or not source.is_kind(calls.ids[:1], "kernel")[0]:
            continue
        epoch = trace.meta.get("epoch_ns")
        for key, ranks in in_order(calls).items():
            for process, places in ranks.items():
                row = source.processes[process]
                one = found.setdefault(
                    (number, process),
                    Member(row["rank"], number, process, row["host"], epoch, source, calls, {}),
                )
                one.places[key] = places
    return [found[key] for key in sorted(found, key=lambda key: (found[key].rank, key))]


def rank_clocks(ranks: Sequence[Member]) -> RankClocks:
    """Bounds of the clocks of several ranks, which ``members`` gives."""
    parts, counts = _exchanges(ranks)
    found = bounds(parts, TOLERANCE_NS)
    return RankClocks(
        clocks=[_clock(one, place, found, int(counts[place])) for place, one in enumerate(ranks)],
        consistent=found.possible,
        common=_common(ranks),
    )


@memoised
def trace_rank_clocks(trace: Trace) -> RankClocks | None:
    """The clocks of the ranks of one trace; None where fewer than two communicate."""
    ranks = members([trace]) if len(frame(trace).processes) > 1 else []
    return rank_clocks(ranks) if len(ranks) > 1 else None


def _common(ranks: Sequence[Member]) -> bool:
    """Is one clock stated? In one trace all ranks were put on one axis; else hosts and epochs tell."""
    if len({one.trace for one in ranks}) == 1:
        return True
    hosts = {one.host for one in ranks}
    return len(hosts) == 1 and None not in hosts and all(one.epoch_ns is not None for one in ranks)


def _clock(one: Member, place: int, found: RankBounds, count: int) -> RankClock:
    low, high = int(found.low[place]), int(found.high[place])
    known = found.possible
    return RankClock(
        rank=one.rank,
        trace=one.trace,
        low_ns=low if known and low > -FAR else None,
        high_ns=high if known and high < FAR else None,
        collectives=count,
        host=one.host,
    )


def mutual(op: str) -> bool:
    """Does this collective end on no rank before the last one has begun?"""
    word = op.lower().lstrip("_")
    return word.startswith(MUTUAL) and not word.startswith(_PARTIAL)


def _exchanges(ranks: Sequence[Member]) -> tuple[Exchanges, Ints]:
    """All parts of collectives that bound clocks, and how many each rank has."""
    empty = np.zeros(0, np.int64)
    rank, collective, start, end = [empty], [empty], [empty], [empty]
    counts = np.zeros(len(ranks), np.int64)
    first = 0
    for key, places in by_key(ranks).items():
        lengths = {len(ranks[place].places[key]) for place in places}
        if len(places) < 2 or len(lengths) > 1 or not mutual(key[0]):
            continue  # with other numbers of collectives their order does not tell which belong together
        if not _one_group(ranks[places[0]], key, len(places)):
            continue
        length = lengths.pop()
        same = _same_sizes([ranks[place].sizes(key, length) for place in places])
        number = first + np.arange(length)[same]
        first += length
        for place in places:
            begin = ranks[place].starts(key, length)[same]
            rank.append(np.full(len(begin), place))
            collective.append(number)
            start.append(begin)
            end.append(begin + ranks[place].durs(key, length)[same])
            counts[place] += len(begin)
    return Exchanges(
        rank=np.concatenate(rank),
        collective=np.concatenate(collective),
        start=np.concatenate(start),
        end=np.concatenate(end),
        ranks=len(ranks),
    ), counts


def by_key(ranks: Sequence[Member]) -> dict[Key, list[int]]:
    """Places of the ranks that have collectives of each kind and group."""
    found: dict[Key, list[int]] = {}
    for place, one in enumerate(ranks):
        for key in one.places:
            found.setdefault(key, []).append(place)
    return {key: found[key] for key in sorted(found, key=str)}


def _one_group(one: Member, key: Key, members_here: int) -> bool:
    """Can all ranks that name the group be in it? Some tools number the groups of each rank on their own."""
    size = one.calls.forms[int(one.calls.form[one.places[key][0]])].group_size
    return size is None or members_here <= size


def _same_sizes(sizes: Sequence[Ints]) -> Mask:
    """Collectives that move as much on every rank; others were matched wrongly."""
    same = np.ones(len(sizes[0]), bool)
    for other in sizes[1:]:
        same &= other == sizes[0]
    return same
