"""Several ranks: who waits for whom, skew at the start of collectives, imbalance of computation.

A collective ends at about the same time everywhere, and a rank that comes early waits inside it. So the rank
with the shortest collective came last, and every other rank waited (its duration - the shortest). This needs
no common clock; the skew of starts does, and is None where the clocks of the ranks cannot be compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from profrun.analysis.frame import Ints, frame
from profrun.analysis.gpu import devices
from profrun.analysis.tables import bus_factor, collective_op

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
        op, group, bytes, group_size, count: what, and how many were matched over all its ranks.
        latency_ns: mean over collectives of the shortest duration of any rank: the transfer without waiting.
        wait_ns: mean over collectives of the longest duration - the shortest.
        skew_p50_ns, skew_max_ns: last start - first start; None without comparable clocks.
        alg_gb_s, bus_gb_s: bytes / latency_ns, and with nccl-tests' factor.
    """

    op: str
    group: str | None
    bytes: int | None
    group_size: int | None
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
    calls: dict[tuple[Any, ...], list[tuple[int, int, int | None, int | None]]]


_QUERY = """
WITH spoken AS MATERIALIZED (
  SELECT name FROM (SELECT DISTINCT name FROM slices WHERE kind = 'kernel')
  WHERE regexp_matches(name, '(?i)nccl|rccl')
)
SELECT p.process, p.rank, p.host, s.ts_ns, s.dur_ns, coalesce(c.op, 'unknown'), c."group", c.bytes,
c.group_size,
  s.name
FROM slices s JOIN tracks t USING (track) JOIN processes p USING (process) LEFT JOIN collectives c USING
(slice)
WHERE s.kind = 'kernel' AND (c.slice IS NOT NULL OR s.name IN (SELECT name FROM spoken))
ORDER BY p.process, s.ts_ns, s.slice
"""


def _units(traces: Sequence[Trace]) -> list[_Unit]:
    units: list[_Unit] = []
    for number, trace in enumerate(traces):
        mine: dict[int, _Unit] = {}
        for process, rank, host, ts, dur, op, group, size, members, name in trace.sql(_QUERY).rows:
            unit = mine.setdefault(
                process, _Unit(rank, number, host, trace.meta.get("epoch_ns"), defaultdict(list))
            )
            what = op if op != "unknown" else collective_op(name)
            unit.calls[(what, group)].append((ts, dur, size, members))
        units += mine.values()
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
    for key in sorted({key for unit in units for key in unit.calls}, key=str):
        have = [place for place, unit in enumerate(units) if key in unit.calls]
        lists = [units[place].calls[key] for place in have]
        length = min(len(calls) for calls in lists)
        if len(have) < 2:
            unmatched += len(lists[0])
            continue
        unmatched += sum(len(calls) - length for calls in lists)
        matched += length
        starts = np.array([[call[0] for call in calls[:length]] for calls in lists], np.int64)
        durs = np.array([[call[1] for call in calls[:length]] for calls in lists], np.int64)
        shortest = durs.min(axis=0)
        waits = durs - shortest
        late = durs.argmin(axis=0)
        for row, place in enumerate(have):
            waited[place] += waits[row].sum()
            waited_for[place] += waits[:, late == row].sum()
            count[place] += length
            last[place] += int((late == row).sum())
        skews += _skews(key, lists[0][:length], starts + offsets[have][:, None], durs, comparable)
    return RankReport(
        _rows(traces, units, waited, waited_for, count, last),
        sorted(skews, key=lambda row: -row.latency_ns * row.count),
        matched, unmatched, comparable, _imbalance(traces, units),
    )  # fmt: skip


def _skews(
    key: tuple[Any, ...], calls: Sequence[Any], starts: Ints, durs: Ints, comparable: bool
) -> list[CollectiveSkew]:
    found = []
    sizes = np.array([-1 if call[2] is None else call[2] for call in calls], np.int64)
    for size in np.unique(sizes):
        mask = sizes == size
        members = calls[int(np.flatnonzero(mask)[0])][3]
        latency = float(durs[:, mask].min(axis=0).mean())
        spread = starts[:, mask].max(axis=0) - starts[:, mask].min(axis=0)
        payload = None if size < 0 else int(size)
        alg = payload / latency if payload and latency else None
        factor = bus_factor(key[0], members)
        found.append(
            CollectiveSkew(
                key[0],
                key[1],
                payload,
                members,
                int(mask.sum()),
                latency,
                float((durs[:, mask].max(axis=0) - durs[:, mask].min(axis=0)).mean()),
                float(np.median(spread)) if comparable else None,
                int(spread.max()) if comparable else None,
                alg,
                alg * factor if alg is not None and factor is not None else None,
            )
        )
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


def gpu_starts(trace: Trace) -> dict[int, int]:
    """First GPU start of every process, ns."""
    source = frame(trace)
    process = source.track_process[source.track[source.gpu]]
    return {int(one): int(source.ts[source.gpu[process == one]].min()) for one in np.unique(process)}
