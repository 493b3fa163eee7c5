"""Several ranks: which waits for which, skew at the start of collectives, imbalance of computation.

A collective ends at about the same time everywhere, and a rank that comes early waits inside it. So the rank
with the shortest collective came last, and every other rank waited (its duration - the shortest). This needs
no common clock. The skew of starts does: it is None where the clocks of the ranks cannot be compared as they
are. Bounds of skews and waits come from the collectives alone (``rank_clocks``): they hold whatever the
clocks of the ranks are, over several hosts, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.trace.collectives import rates
from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.frame import frame
from profrun.analysis.trace.gpu import DeviceMetrics, devices
from profrun.analysis.trace.rank_clocks import Key, Member, RankClock, by_key, members, mutual, rank_clocks
from profrun.analysis.trace.rank_waits import waits_of

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


@dataclass(frozen=True)
class RankRow:
    """One rank; times ns.

    Attributes:
        rank, trace: which rank, and the index of its trace.
        compute_ns, comm_ns, exposed_comm_ns, span_ns: sums over its GPUs (unions on each).
        collectives: matched collectives.
        waited_ns: time that it waited in them for later ranks.
        waited_for_ns: time that all others together waited for it.
        waited_for_share: waited_for_ns / summed span of the other ranks.
        last: in how many matched collectives it came last.
        waited_low_ns, waited_high_ns: bounds of the time that it waited in matched collectives, whatever the
            clocks of the ranks are; None where nothing bounds them.
        last_low, last_high: in how many matched collectives it came last for certain, and at most.
        clock_low_ns, clock_high_ns: bounds of what must be added to its times to be on the axis of the first
            rank; None where nothing bounds it.
        host: on which it ran; None where nothing tells.
    """

    rank: int
    trace: int
    compute_ns: int
    comm_ns: int
    exposed_comm_ns: int
    span_ns: int
    collectives: int
    waited_ns: int
    waited_for_ns: int
    waited_for_share: float | None
    last: int
    waited_low_ns: int | None = None
    waited_high_ns: int | None = None
    last_low: int | None = None
    last_high: int | None = None
    clock_low_ns: int | None = None
    clock_high_ns: int | None = None
    host: str | None = None
    waited_for_share_of: str = field(default="span_ns of the other ranks", init=False)


@dataclass(frozen=True)
class CollectiveSkew:
    """All matched collectives of one kind; times ns.

    Attributes:
        op, group, bytes, group_size, ranks, count: what, how many ranks of it there are here, and how many
            collectives were matched over all of them.
        latency_ns: mean over collectives of the shortest duration of any rank here: the transfer without
            waiting where all ranks of the group are here, at most that much otherwise.
        wait_ns: mean over collectives of the longest duration - the shortest.
        skew_p50_ns, skew_max_ns: last start - first start; None without comparable clocks.
        skew_p50_low_ns, skew_p50_high_ns, skew_max_low_ns, skew_max_high_ns: bounds of the two, whatever the
            clocks of the ranks are; None where nothing bounds them.
        alg_gb_s, bus_gb_s: bytes / latency_ns, and with nccl-tests' factor.
    """

    op: str
    group: str | None
    bytes: int | None
    group_size: int | None
    ranks: int
    count: int
    latency_ns: float
    wait_ns: float
    skew_p50_ns: float | None
    skew_max_ns: int | None
    alg_gb_s: float | None
    bus_gb_s: float | None
    skew_p50_low_ns: float | None = None
    skew_p50_high_ns: float | None = None
    skew_max_low_ns: int | None = None
    skew_max_high_ns: int | None = None


@dataclass(frozen=True)
class RankReport:
    """What several ranks show together.

    Attributes:
        ranks: by rank.
        collectives: by time.
        matched: collectives found on all their ranks.
        unmatched: those that some rank lacks.
        clocks_comparable: whether start skews are given: the ranks are stated to be on one axis, and their
            collectives allow it.
        clocks_consistent: whether any clocks of the ranks fit all collectives.
        imbalance: most compute_ns of a rank / mean of the ranks - 1.
    """

    ranks: list[RankRow]
    collectives: list[CollectiveSkew]
    matched: int
    unmatched: int
    clocks_comparable: bool
    clocks_consistent: bool
    imbalance: float | None


@dataclass
class _Tally:
    """What the comparison adds up for one rank."""

    member: Member
    clock: RankClock
    matched: int = 0
    waited_ns: int = 0
    waited_for_ns: int = 0
    last: int = 0
    waited_low_ns: int | None = 0
    waited_high_ns: int | None = 0
    last_low: int | None = 0
    last_high: int | None = 0


@dataclass(frozen=True)
class _Starts:
    """Bounds of the starts of some collectives on the axis of the first rank, shape (ranks, collectives).

    Attributes:
        low, high: int64 ns.
        durs: durations; of collectives in which every rank waits for all, else None.
    """

    low: Ints
    high: Ints
    durs: Ints | None

    def waits(self) -> tuple[Ints, Ints]:
        """Bounds of last start - own start."""
        least = np.maximum(self.low.max(axis=0) - self.high, 0)
        most = np.maximum(_most_of_others(self.high) - self.low, 0)
        return least, most if self.durs is None else np.maximum(np.minimum(most, self.durs), least)

    def last(self) -> tuple[Ints, Ints]:
        """In how many collectives each rank came last for certain, and at most."""
        certain = self.low >= _most_of_others(self.high)
        possible = self.high >= _most_of_others(self.low)
        return certain.sum(axis=1), possible.sum(axis=1)

    def skews(self) -> tuple[Ints, Ints]:
        """Bounds of last start - first start."""
        least = np.maximum(self.low.max(axis=0) - self.high.min(axis=0), 0)
        most = self.high.max(axis=0) - self.low.min(axis=0)
        return least, most if self.durs is None else np.maximum(
            np.minimum(most, self.durs.max(axis=0)), least
        )


def _most_of_others(values: Ints) -> Ints:
    """For each rank and collective the largest value of the other ranks."""
    order = np.argsort(values, axis=0)
    columns = np.arange(values.shape[1])
    found = np.broadcast_to(values[order[-1], columns], values.shape).copy()
    found[order[-1], columns] = values[order[-2], columns]
    return found


def compare_ranks(traces: Sequence[Trace]) -> RankReport | None:
    """Compare all ranks of one or several traces; None when fewer than two ranks communicate.

    Ranks are matched by the order of their collectives in each process group.
    """
    if sum(len(frame(trace).processes) for trace in traces) < 2:
        return None
    ranks = members(traces)
    if len(ranks) < 2:
        return None
    clocks = rank_clocks(ranks)
    tallies = [_Tally(one, clock) for one, clock in zip(ranks, clocks.clocks, strict=True)]
    skews: list[CollectiveSkew] = []
    matched = unmatched = 0
    for key, places in by_key(ranks).items():
        mine = [tallies[place] for place in places]
        counts = [len(one.member.places[key]) for one in mine]
        length = min(counts)
        if len(mine) < 2:
            unmatched += counts[0]
            continue
        unmatched += sum(counts) - length * len(mine)
        matched += length
        skews += _match(key, mine, length, clocks.comparable)
    rows = _rows(traces, tallies)
    mean = sum(row.compute_ns for row in rows) / len(rows)
    return RankReport(
        ranks=rows,
        collectives=sorted(skews, key=lambda row: -row.latency_ns * row.count),
        matched=matched,
        unmatched=unmatched,
        clocks_comparable=clocks.comparable,
        clocks_consistent=clocks.consistent,
        imbalance=max(row.compute_ns for row in rows) / mean - 1 if mean else None,
    )


def _starts(key: Key, mine: Sequence[_Tally], length: int, durs: Ints) -> _Starts | None:
    """Bounds of all starts; None where a clock is not bounded."""
    low, high = [], []
    for one in mine:
        if one.clock.low_ns is None or one.clock.high_ns is None:
            return None
        starts = one.member.starts(key, length)
        low.append(starts + one.clock.low_ns)
        high.append(starts + one.clock.high_ns)
    return _Starts(np.array(low), np.array(high), durs if mutual(key[0]) else None)


def _add(mine: Sequence[_Tally], starts: _Starts | None) -> None:
    """Add bounds of waits to the ranks; without bounds of one collective there are none of the sum."""
    if starts is None:
        for one in mine:
            one.waited_low_ns = one.waited_high_ns = one.last_low = one.last_high = None
        return
    waits, last = starts.waits(), starts.last()
    for number, one in enumerate(mine):
        for name, value in (
            ("waited_low_ns", waits[0][number].sum()),
            ("waited_high_ns", waits[1][number].sum()),
            ("last_low", last[0][number]),
            ("last_high", last[1][number]),
        ):
            before = getattr(one, name)
            setattr(one, name, None if before is None else before + int(value))


def _match(key: Key, mine: Sequence[_Tally], length: int, comparable: bool) -> list[CollectiveSkew]:
    """Match the first ``length`` collectives of a group over its ranks; adds the waits to ``mine``.

    Returns:
        One row per size of the collective.
    """
    durs = np.array([one.member.durs(key, length) for one in mine])
    waits, late = waits_of(durs)
    for number, one in enumerate(mine):
        one.matched += length
        one.waited_ns += int(waits[number].sum())
        one.waited_for_ns += int(waits[:, late == number].sum())
        one.last += int((late == number).sum())
    bounded = _starts(key, mine, length, durs)
    _add(mine, bounded)
    skews = bounded.skews() if bounded else None
    starts = np.array([one.member.starts(key, length) for one in mine])
    first = mine[0].member
    sizes = first.sizes(key, length)
    forms = first.calls.form[first.places[key][:length]]
    found = []
    for size in np.unique(sizes):
        mask = sizes == size
        form = first.calls.forms[int(forms[np.flatnonzero(mask)[0]])]
        latency = float(durs[:, mask].min(axis=0).mean())
        spread = starts[:, mask].max(axis=0) - starts[:, mask].min(axis=0)
        alg, bus = rates(form, latency)
        found.append(
            CollectiveSkew(
                op=form.op,
                group=form.group,
                bytes=form.bytes,
                group_size=form.group_size,
                ranks=len(mine),
                count=int(mask.sum()),
                latency_ns=latency,
                wait_ns=float(waits[:, mask].max(axis=0).mean()),
                skew_p50_ns=float(np.median(spread)) if comparable else None,
                skew_max_ns=int(spread.max()) if comparable else None,
                alg_gb_s=alg,
                bus_gb_s=bus,
                skew_p50_low_ns=float(np.median(skews[0][mask])) if skews else None,
                skew_p50_high_ns=float(np.median(skews[1][mask])) if skews else None,
                skew_max_low_ns=int(skews[0][mask].max()) if skews else None,
                skew_max_high_ns=int(skews[1][mask].max()) if skews else None,
            )
        )
    return found


def _rows(traces: Sequence[Trace], tallies: Sequence[_Tally]) -> list[RankRow]:
    by_rank: dict[tuple[int, int], list[DeviceMetrics]] = {}
    for number in sorted({one.member.trace for one in tallies}):
        for row in devices(traces[number]):
            by_rank.setdefault((number, row.process), []).append(row)
    mine = [by_rank.get((one.member.trace, one.member.process), []) for one in tallies]
    spans = [sum(row.span_ns for row in rows) for rows in mine]
    total = sum(spans)
    return [
        RankRow(
            rank=one.member.rank,
            trace=one.member.trace,
            compute_ns=sum(row.compute_ns for row in rows),
            comm_ns=sum(row.comm_ns for row in rows),
            exposed_comm_ns=sum(row.exposed_comm_ns for row in rows),
            span_ns=span,
            collectives=one.matched,
            waited_ns=one.waited_ns,
            waited_for_ns=one.waited_for_ns,
            waited_for_share=one.waited_for_ns / (total - span) if total > span else None,
            last=one.last,
            waited_low_ns=one.waited_low_ns,
            waited_high_ns=one.waited_high_ns,
            last_low=one.last_low,
            last_high=one.last_high,
            clock_low_ns=one.clock.low_ns,
            clock_high_ns=one.clock.high_ns,
            host=one.member.host,
        )
        for one, rows, span in zip(tallies, mine, spans, strict=True)
    ]
