"""Several ranks: who waits for whom, skew at the start of collectives, imbalance of computation.

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
from profrun.analysis.trace.frame import Frame, Index, Ints, frame
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
        waited_ns: time it waited in them for later ranks. waited_for_ns: time all others together waited for
            it.
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
        matched: collectives found on all their ranks; unmatched: those that some rank lacks.
        clocks_comparable: whether start skews are given.
        imbalance: most compute_ns of a rank / mean of the ranks - 1.
    """

    ranks: list[RankRow]
    collectives: list[CollectiveSkew]
    matched: int
    unmatched: int
    clocks_comparable: bool
    imbalance: float | None


@dataclass
class _Unit:
    rank: int
    trace: int
    host: str | None
    offset: int | None
    source: Frame
    calls: Calls
    places: dict[tuple[str, str | None], Ints]
    """(op, group) -> places in ``calls``, in the order of their starts"""

    def ids(self, key: tuple[str, str | None], length: int) -> Index:
        """Slices of the first ``length`` calls of a kind."""
        return np.asarray(self.calls.ids[self.places[key][:length]])


def _units(traces: Sequence[Trace]) -> list[_Unit]:
    units: list[_Unit] = []
    for number, trace in enumerate(traces):
        source, calls = frame(trace), collective_calls(trace)
        mine: dict[int, _Unit] = {}
        if len(calls.ids) and source.is_kind(calls.ids[:1], "kernel")[0]:
            for key, ranks in in_order(calls).items():
                for process, places in ranks.items():
                    row = source.processes[process]
                    unit = mine.setdefault(
                        process,
                        _Unit(
                            int(row["rank"]),
                            number,
                            row["host"],
                            trace.meta.get("epoch_ns"),
                            source,
                            calls,
                            {},
                        ),
                    )
                    unit.places[key] = places
        units += [mine[process] for process in sorted(mine)]
    return units


def _comparable(units: Sequence[_Unit]) -> bool:
    if len({unit.trace for unit in units}) == 1:
        return True
    hosts = {unit.host for unit in units}
    return all(unit.offset is not None for unit in units) and len(hosts) == 1 and None not in hosts


def compare_ranks(traces: Sequence[Trace]) -> RankReport | None:
    """Compare all ranks of one or several traces; None when fewer than two ranks communicate.

    Ranks are matched by the order of their collectives in each process group.
    """
    if sum(len(frame(trace).processes) for trace in traces) < 2:
        return None
    units = sorted(_units(traces), key=lambda unit: (unit.rank, unit.trace))
    if len(units) < 2:
        return None
    comparable = _comparable(units)
    one_trace = len({unit.trace for unit in units}) == 1
    offsets = np.array([0 if one_trace or not comparable else unit.offset or 0 for unit in units], np.int64)
    waited, waited_for = np.zeros(len(units), np.int64), np.zeros(len(units), np.int64)
    count, last = np.zeros(len(units), np.int64), np.zeros(len(units), np.int64)
    skews: list[CollectiveSkew] = []
    matched = unmatched = 0
    for key in sorted({key for unit in units for key in unit.places}, key=str):
        have = [place for place, unit in enumerate(units) if key in unit.places]
        counts = [len(units[place].places[key]) for place in have]
        length = min(counts)
        if len(have) < 2:
            unmatched += counts[0]
            continue
        unmatched += sum(counts) - length * len(have)
        matched += length
        starts = np.array([units[place].source.ts[units[place].ids(key, length)] for place in have])
        durs = np.array([units[place].source.durs(units[place].ids(key, length)) for place in have])
        shortest = durs.min(axis=0)
        waits = durs - shortest
        late = durs.argmin(axis=0)
        for row, place in enumerate(have):
            waited[place] += waits[row].sum()
            waited_for[place] += waits[:, late == row].sum()
            count[place] += length
            last[place] += int((late == row).sum())
        skews += _skews(key, units[have[0]], length, starts + offsets[have][:, None], durs, comparable)
    return RankReport(
        _rows(traces, units, waited, waited_for, count, last),
        sorted(skews, key=lambda row: -row.latency_ns * row.count),
        matched, unmatched, comparable, _imbalance(traces, units),
    )  # fmt: skip


def _skews(
    key: tuple[str, str | None], unit: _Unit, length: int, starts: Ints, durs: Ints, comparable: bool
) -> list[CollectiveSkew]:
    forms = [unit.calls.forms[int(number)] for number in unit.calls.form[unit.places[key][:length]]]
    sizes = np.array([-1 if form.bytes is None else form.bytes for form in forms], np.int64)
    found = []
    for size in np.unique(sizes):
        mask = sizes == size
        form = forms[int(np.flatnonzero(mask)[0])]
        latency = float(durs[:, mask].min(axis=0).mean())
        spread = starts[:, mask].max(axis=0) - starts[:, mask].min(axis=0)
        alg, bus = rates(form.op, form.group_size, form.bytes, latency)
        found.append(
            CollectiveSkew(
                *key, form.bytes, form.group_size, len(durs), int(mask.sum()), latency,
                float((durs[:, mask].max(axis=0) - durs[:, mask].min(axis=0)).mean()),
                float(np.median(spread)) if comparable else None,
                int(spread.max()) if comparable else None, alg, bus,
            )
        )  # fmt: skip
    return found


def _device_sums(traces: Sequence[Trace], unit: _Unit) -> tuple[int, int, int, int]:
    rows = [row for row in devices(traces[unit.trace]) if row.rank == unit.rank]
    return (
        sum(row.compute_ns for row in rows), sum(row.comm_ns for row in rows),
        sum(row.exposed_comm_ns for row in rows), sum(row.span_ns for row in rows),
    )  # fmt: skip


def _imbalance(traces: Sequence[Trace], units: Sequence[_Unit]) -> float | None:
    work = [_device_sums(traces, unit)[0] for unit in units]
    mean = sum(work) / len(work)
    return max(work) / mean - 1 if mean else None


def _rows(
    traces: Sequence[Trace], units: Sequence[_Unit], waited: Ints, waited_for: Ints, count: Ints, last: Ints
) -> list[RankRow]:
    sums = [_device_sums(traces, unit) for unit in units]
    spans = sum(values[3] for values in sums)
    rows = []
    for place, unit in enumerate(units):
        others = spans - sums[place][3]
        rows.append(
            RankRow(
                unit.rank,
                unit.trace,
                *sums[place],
                int(count[place]),
                int(waited[place]),
                int(waited_for[place]),
                float(waited_for[place] / others) if others else None,
                int(last[place]),
            )
        )
    return rows
