"""Collectives: what each moves, how long it takes, and at which bandwidth.

A rank that comes early waits inside the collective for the last one, so a rank's own duration is transfer and
waiting. From the last rank's start on no rank waits. That part is the shortest duration of all ranks: it
needs no common clock, but all ranks of the group in the trace.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from profrun.analysis.trace.columns import Ints, groups
from profrun.analysis.trace.frame import Frame, Index, frame
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


@dataclass(frozen=True)
class CollectiveRow:
    """Collectives of one kind and size on one process.

    Attributes:
        op, dtype, group, group_size, bytes: what; bytes is the larger of input and output of one rank.
        process, rank: whose.
        calls, total_ns, mean_ns, min_ns, max_ns: time on the GPU (host where there is no GPU part), waiting
            for the slowest rank included.
        alg_gb_s: bytes / mean time. bus_gb_s: alg_gb_s x the factor of nccl-tests (PERFORMANCE.md): 2(n-1)/n
            for all-reduce, (n-1)/n for all-gather, reduce-scatter and all-to-all, 1 otherwise. Waiting for
            the slowest rank lowers both.
        matched: calls that all ranks of the group have in this trace; 0 where it lacks a rank.
        transfer_ns: mean over those of the time from the last rank's start to its end (the shortest duration
            of any rank), None without them.
        transfer_alg_gb_s, transfer_bus_gb_s: bytes / transfer_ns, and with the factor.
    """

    op: str
    dtype: str | None
    group: str | None
    group_size: int | None
    bytes: int | None
    process: int
    rank: int
    calls: int
    total_ns: int
    mean_ns: float
    min_ns: int
    max_ns: int
    alg_gb_s: float | None
    bus_gb_s: float | None
    matched: int = 0
    transfer_ns: float | None = None
    transfer_alg_gb_s: float | None = None
    transfer_bus_gb_s: float | None = None
    alg_gb_s_of: str = field(default="mean_ns, waiting for the slowest rank included", init=False)
    transfer_alg_gb_s_of: str = field(default="transfer_ns, from the last rank's start", init=False)


class Form(NamedTuple):
    """What a collective moves.

    Attributes:
        op: allreduce, allgather, ...; 'unknown' where neither the trace nor the kernel's name tells.
        dtype, group, group_size: element type, process group and its ranks, as in the trace.
        bytes: the larger of input and output of one rank.
    """

    op: str
    dtype: str | None
    group: str | None
    group_size: int | None
    bytes: int | None


@dataclass(frozen=True)
class Calls:
    """Every collective of a trace, by process and start.

    Attributes:
        ids: their slices, shape (calls,); kernels where there are any, else host slices.
        form: int64, index into ``forms`` of each.
        process: int64, process of each.
        forms: the distinct forms.
    """

    ids: Index
    form: Ints
    process: Ints
    forms: list[Form]


_RING = ("allgather", "all_gather", "reducescatter", "reduce_scatter", "alltoall", "all_to_all")


def bus_factor(op: str, group_size: int | None) -> float | None:
    """nccl-tests' factor from algorithm to bus bandwidth; None when the group's size is not known."""
    word = op.lower().lstrip("_")
    if word.startswith(("allreduce", "all_reduce")):
        return 2.0 * (group_size - 1) / group_size if group_size else None
    if word.startswith(_RING):
        return (group_size - 1) / group_size if group_size else None
    return 1.0


def rates(form: Form, ns: float | None) -> tuple[float | None, float | None]:
    """(algorithm, bus) bandwidth in 1e9 bytes per second; None where they cannot be known."""
    if not form.bytes or not ns:
        return None, None
    factor = bus_factor(form.op, form.group_size)
    return form.bytes / ns, None if factor is None else form.bytes / ns * factor


_NCCL_NAME = re.compile(
    r"(?:nccl|rccl)\w*?Kernel_(AllReduce|AllGather|ReduceScatter|Broadcast|Reduce|SendRecv|AllToAll|Generic)"
)
_NCCL = re.compile(r"nccl|rccl", re.IGNORECASE)


def collective_op(name: str) -> str:
    """The collective that a kernel's name tells, 'unknown' for generic kernels."""
    hit = _NCCL_NAME.search(name)
    return hit[1].lower() if hit and hit[1] != "Generic" else "unknown"


_LISTED = """
WITH forms AS MATERIALIZED (
  SELECT row_number() OVER () - 1 AS form, * FROM (
    SELECT DISTINCT op, dtype, "group", group_size, bytes FROM collectives)
)
SELECT c.slice, f.form FROM collectives c JOIN forms f ON c.op = f.op AND c.dtype IS NOT DISTINCT FROM f.dtype
  AND c."group" IS NOT DISTINCT FROM f."group" AND c.group_size IS NOT DISTINCT FROM f.group_size
  AND c.bytes IS NOT DISTINCT FROM f.bytes
"""


def _listed(trace: Trace) -> tuple[Index, Ints, list[Form]]:
    """Slices of the collectives table, the form of each, and the forms."""
    if not trace.sql("SELECT count(*) FROM collectives").scalar():
        return np.zeros(0, np.intp), np.zeros(0, np.int64), []
    got = trace.tables.execute(_LISTED).fetchnumpy()
    slices, form = np.asarray(got["slice"], dtype=np.intp), np.asarray(got["form"], dtype=np.int64)
    _, first = np.unique(form, return_index=True)
    rows = trace.sql(
        'SELECT slice, op, dtype, "group", group_size, bytes FROM collectives '
        f"WHERE slice IN ({', '.join(map(str, slices[first]))})"
    ).rows
    by_slice = {row[0]: Form(*row[1:]) for row in rows}
    return slices, form, [by_slice[int(one)] for one in slices[first]]


@memoised
def collective_calls(trace: Trace) -> Calls:
    """The collectives of a trace: those of its table, and kernels whose names are those of NCCL or RCCL."""
    source = frame(trace)
    listed, listed_form, forms = _listed(trace)
    kernels = source.of("kernel")
    named = kernels[source.named(kernels, lambda name: bool(_NCCL.search(name)))]
    ids = np.union1d(named, listed[source.is_kind(listed, "kernel")]).astype(np.intp)
    if not len(ids):
        ids = np.sort(listed)
    process = source.process_of(ids).astype(np.int64)
    order = np.lexsort((ids, source.ts[ids], process))
    ids, process = ids[order], process[order]
    row = np.full(len(source), -1, dtype=np.int32)
    row[listed] = listed_form
    first, group = groups(row[ids], source.name[ids])
    known: dict[Form, int] = {}
    number = []
    for slice_id in ids[first]:
        one = forms[row[slice_id]] if row[slice_id] >= 0 else Form("unknown", None, None, None, None)
        if one.op == "unknown":
            one = one._replace(op=collective_op(source.text(slice_id)))
        number.append(known.setdefault(one, len(known)))
    return Calls(ids, np.array(number, dtype=np.int64)[group], process, list(known))


def in_order(calls: Calls) -> dict[tuple[str, str | None], dict[int, Ints]]:
    """(op, group) -> process -> places in ``calls``, in the order of their starts."""
    keys = sorted({(form.op, form.group) for form in calls.forms}, key=str)
    place = {key: number for number, key in enumerate(keys)}
    number = np.array([place[form.op, form.group] for form in calls.forms], np.int64)
    found: dict[tuple[str, str | None], dict[int, Ints]] = {key: {} for key in keys}
    if not len(calls.ids):
        return found
    kind = number[calls.form]
    order = np.lexsort((calls.process, kind))  # keeps the order of starts inside
    cuts = np.flatnonzero((np.diff(kind[order]) != 0) | (np.diff(calls.process[order]) != 0)) + 1
    for places in np.split(order, cuts):
        found[keys[int(kind[places[0]])]][int(calls.process[places[0]])] = places
    return found


def _transfers(source: Frame, calls: Calls) -> Ints:
    """For each call the shortest duration of any rank, -1 where the trace lacks a rank of the group."""
    found = np.full(len(calls.ids), -1, dtype=np.int64)
    for (op, _), ranks in in_order(calls).items():
        used = np.unique(np.concatenate([calls.form[places] for places in ranks.values()]))
        members = {calls.forms[int(number)].group_size for number in used}
        if len(ranks) < 2 or members != {len(ranks)} or op.lower().lstrip("_").startswith(("send", "recv")):
            continue
        length = min(len(places) for places in ranks.values())
        places = np.array([mine[:length] for mine in ranks.values()])
        found[places] = source.durs(calls.ids[places]).min(axis=0)
    return found


def collectives(trace: Trace) -> list[CollectiveRow]:
    """Collectives by what they move, most time first; kernels where there are any, else host slices."""
    source = frame(trace)
    calls = collective_calls(trace)
    dur, transfer = source.durs(calls.ids), _transfers(source, calls)
    _, group = groups(calls.form, calls.process)
    order = np.argsort(group, kind="stable")
    rows = []
    for places in np.split(order, np.flatnonzero(np.diff(group[order])) + 1) if len(order) else ():
        form, process = calls.forms[int(calls.form[places[0]])], int(calls.process[places[0]])
        mine, moved = dur[places], transfer[places]
        moved = moved[moved >= 0]
        shortest = float(moved.mean()) if len(moved) else None
        alg, bus = rates(form, float(mine.mean()))
        transfer_alg, transfer_bus = rates(form, shortest)
        rows.append(
            CollectiveRow(
                *form,
                process=process,
                rank=source.processes[process]["rank"],
                calls=len(mine),
                total_ns=int(mine.sum()),
                mean_ns=float(mine.mean()),
                min_ns=int(mine.min()),
                max_ns=int(mine.max()),
                alg_gb_s=alg,
                bus_gb_s=bus,
                matched=len(moved),
                transfer_ns=shortest,
                transfer_alg_gb_s=transfer_alg,
                transfer_bus_gb_s=transfer_bus,
            )
        )
    return sorted(rows, key=lambda row: (-row.total_ns, row.op, row.rank, str(row.group)))
