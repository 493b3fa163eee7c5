"""Several ranks: which waits for which, skew at the start of collectives, imbalance of computation.

A collective ends at about the same time everywhere, and a rank that comes early waits inside it. So the rank
with the shortest collective came last, and every other rank waited (its duration - the shortest). This needs
no common clock; the skew of starts does, and is None where the clocks of the ranks cannot be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.trace.collectives import Calls, collective_calls, in_order, rates
from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.frame import Frame, Index, frame
from profrun.analysis.trace.gpu import devices

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


@dataclass(frozen=True)
class RankReport:
    """What several ranks show together.

    Attributes:
        ranks: by rank.
        collectives: by time.
        matched: collectives found on all their ranks.
        unmatched: those that some rank lacks.
        clocks_comparable: whether start skews are given.
        imbalance: most compute_ns of a rank / mean of the ranks - 1.
    """

    ranks: list[RankRow]
    collectives: list[CollectiveSkew]
    matched: int
    unmatched: int
    clocks_comparable: bool
    imbalance: float | None


_Key = tuple[str, str | None]
"""Collective and process group."""


@dataclass
class _Rank:
    """One rank's collectives, and what the comparison adds up for it.

    Attributes:
        places: for each collective and group the places in ``calls``, in the order of their starts.
    """

    rank: int
    trace: int
    host: str | None
    epoch_ns: int | None
    source: Frame
    calls: Calls
    places: dict[_Key, Ints] = field(default_factory=dict)
    matched: int = 0
    waited_ns: int = 0
    waited_for_ns: int = 0
    last: int = 0

    def ids(self, key: _Key, length: int) -> Index:
        """Slices of the first ``length`` calls of a kind."""
        return np.asarray(self.calls.ids[self.places[key][:length]])


def _ranks(traces: Sequence[Trace]) -> list[_Rank]:
    """Every rank that has collectives on its GPU, sorted by rank and trace."""
    found: dict[tuple[int, int], _Rank] = {}
    for number, trace in enumerate(traces):
        source, calls = frame(trace), collective_calls(trace)
        if not len(calls.ids) or not source.is_kind(calls.ids[:1], "kernel")[0]:
            continue
        epoch = trace.meta.get("epoch_ns")
        for key, ranks in in_order(calls).items():
            for process, places in ranks.items():
                row = source.processes[process]
                one = _Rank(row["rank"], number, row["host"], epoch, source, calls)
                found.setdefault((number, process), one).places[key] = places
    return [found[key] for key in sorted(found, key=lambda key: (found[key].rank, key))]


def _comparable(ranks: Sequence[_Rank]) -> bool:
    """Can start times of different ranks be compared? In one trace, or on one host with known epochs."""
    if len({one.trace for one in ranks}) == 1:
        return True
    hosts = {one.host for one in ranks}
    return all(one.epoch_ns is not None for one in ranks) and len(hosts) == 1 and None not in hosts


def compare_ranks(traces: Sequence[Trace]) -> RankReport | None:
    """Compare all ranks of one or several traces; None when fewer than two ranks communicate.

    Ranks are matched by the order of their collectives in each process group.
    """
    if sum(len(frame(trace).processes) for trace in traces) < 2:
        return None
    ranks = _ranks(traces)
    if len(ranks) < 2:
        return None
    comparable = _comparable(ranks)
    skews: list[CollectiveSkew] = []
    matched = unmatched = 0
    for key in sorted({key for one in ranks for key in one.places}, key=str):
        members = [one for one in ranks if key in one.places]
        counts = [len(one.places[key]) for one in members]
        length = min(counts)
        if len(members) < 2:
            unmatched += counts[0]
            continue
        unmatched += sum(counts) - length * len(members)
        matched += length
        skews += _match(key, members, length, comparable)
    rows = _rows(traces, ranks)
    mean = sum(row.compute_ns for row in rows) / len(rows)
    return RankReport(
        ranks=rows,
        collectives=sorted(skews, key=lambda row: -row.latency_ns * row.count),
        matched=matched,
        unmatched=unmatched,
        clocks_comparable=comparable,
        imbalance=max(row.compute_ns for row in rows) / mean - 1 if mean else None,
    )


def _match(key: _Key, members: Sequence[_Rank], length: int, comparable: bool) -> list[CollectiveSkew]:
    """Match the first ``length`` collectives of a group over its ranks; adds the waits to ``members``.

    Returns:
        One row per size of the collective.
    """
    durs = np.array([one.source.durs(one.ids(key, length)) for one in members])
    waits = durs - durs.min(axis=0)
    late = durs.argmin(axis=0)
    for number, one in enumerate(members):
        one.matched += length
        one.waited_ns += int(waits[number].sum())
        one.waited_for_ns += int(waits[:, late == number].sum())
        one.last += int((late == number).sum())
    one_trace = len({one.trace for one in members}) == 1
    starts = np.array(
        [one.source.ts[one.ids(key, length)] + (0 if one_trace else one.epoch_ns or 0) for one in members]
    )
    first = members[0]
    forms = [first.calls.forms[int(number)] for number in first.calls.form[first.places[key][:length]]]
    sizes = np.array([-1 if form.bytes is None else form.bytes for form in forms], np.int64)
    found = []
    for size in np.unique(sizes):
        mask = sizes == size
        form = forms[int(np.flatnonzero(mask)[0])]
        latency = float(durs[:, mask].min(axis=0).mean())
        spread = starts[:, mask].max(axis=0) - starts[:, mask].min(axis=0)
        alg, bus = rates(form, latency)
        found.append(
            CollectiveSkew(
                op=form.op,
                group=form.group,
                bytes=form.bytes,
                group_size=form.group_size,
                ranks=len(members),
                count=int(mask.sum()),
                latency_ns=latency,
                wait_ns=float(waits[:, mask].max(axis=0).mean()),
                skew_p50_ns=float(np.median(spread)) if comparable else None,
                skew_max_ns=int(spread.max()) if comparable else None,
                alg_gb_s=alg,
                bus_gb_s=bus,
            )
        )
    return found


def _rows(traces: Sequence[Trace], ranks: Sequence[_Rank]) -> list[RankRow]:
    metrics = [devices(trace) for trace in traces]
    mine = [[row for row in metrics[one.trace] if row.rank == one.rank] for one in ranks]
    spans = [sum(row.span_ns for row in rows) for rows in mine]
    return [
        RankRow(
            rank=one.rank,
            trace=one.trace,
            compute_ns=sum(row.compute_ns for row in rows),
            comm_ns=sum(row.comm_ns for row in rows),
            exposed_comm_ns=sum(row.exposed_comm_ns for row in rows),
            span_ns=span,
            collectives=one.matched,
            waited_ns=one.waited_ns,
            waited_for_ns=one.waited_for_ns,
            waited_for_share=one.waited_for_ns / (sum(spans) - span) if sum(spans) > span else None,
            last=one.last,
        )
        for one, rows, span in zip(ranks, mine, spans, strict=True)
    ]
