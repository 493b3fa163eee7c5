"""The rank of each part of the kineto files: as its events, its collectives or its file state it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profrun.collectors.beside import Beside
from profrun.collectors.torch.reader_parts import Divided, ranks_of
from profrun.collectors.torch.reader_sessions import Session, homes
from profrun.collectors.torch.reader_stage import FILE_BITS
from profrun.collectors.torch.reader_tracks import Keys, PartRank, distributed, host_events, number
from profrun.collectors.values import whole
from profrun.traces.writer import TraceWriter

if TYPE_CHECKING:
    import duckdb

Extent = tuple[int, int]
"""First and last start of an event, ns."""
_WITHOUT_ROOT = ("allreduce", "allgather", "reducescatter", "alltoall", "barrier")
"""Beginnings of the collectives, without underscores, whose ``Rank`` is the process's own.

For broadcast, reduce, gather and scatter torch writes the root's rank into the same key
(torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, RECORD_PARAM_COMMS_DATA).
"""


@dataclass(frozen=True)
class Placed:
    """Whose recording each part is.

    Attributes:
        ranks: the rank of each part.
        homes: for each part the number of the part that is the first session of its process.
    """

    ranks: list[PartRank]
    homes: list[int]


def placed(
    writer: TraceWriter,
    divided: Divided,
    keys: Sequence[Keys],
    besides: Sequence[Beside],
    extents: Sequence[Extent | None],
) -> Placed:
    """The rank and the process of each part; what was guessed or contradicted becomes an issue of the trace.

    The first of these that is there counts: the rank that the events state, the rank that the file's
    collectives ran as, ``distributedInfo.rank`` of the file, what profrun's hook left beside the file, the
    place of the file in the order given.

    Args:
        writer: holds the staged events (``reader_handover``) and takes the issues.
        divided: the parts of all files.
        keys: top-level keys of each file.
        besides: what the hook left beside each file.
        extents: first and last time of each file on the axis of all files; None for those not on one axis.
    """
    stated = _stated(writer, divided, keys, besides)
    first = homes(_sessions(divided, stated, besides, extents))
    of_process = {home: rank for home, rank in zip(first, stated, strict=True) if rank is not None}
    own = [place for place, home in enumerate(first) if place == home]
    rank_of = dict(zip(own, ranks_of([of_process.get(place) for place in own]), strict=True))
    writer.issue(
        "ranks_by_order",
        sum(one.guessed for one in rank_of.values()),
        "nothing states the rank, or two files state the same one: the rank is a guess, "
        "numbered in the order given",
        ", ".join(f"rank {one.rank}" for one in rank_of.values() if one.guessed)[:200],
    )
    writer.issue(
        "event_ranks_ignored",
        divided.ignored,
        "events state a rank, but most of their file do not: it is not taken as the rank of the process",
    )
    return Placed([rank_of[home] for home in first], first)


def _sessions(
    divided: Divided,
    stated: Sequence[int | None],
    besides: Sequence[Beside],
    extents: Sequence[Extent | None],
) -> list[Session]:
    found = []
    for place, part in enumerate(divided.parts):
        alone = part.src not in divided.split
        extent = extents[part.src] if alone else None
        begin, end = (None, None) if extent is None else extent
        busiest = host_events(divided.by_part[place]).most_common(1)
        pid = busiest[0][0] if busiest else None
        found.append(Session(pid, stated[place], besides[part.src].host, begin, end))
    return found


def _stated(
    writer: TraceWriter, divided: Divided, keys: Sequence[Keys], besides: Sequence[Beside]
) -> list[int | None]:
    """The rank of each part as something states it, None where nothing does."""
    ran_as = _ranks_of_collectives(writer.con, keys)
    stated: list[int | None] = []
    contradicted: list[str] = []
    for place, part in enumerate(divided.parts):
        known = part.stated
        if known is None and part.src not in divided.split:
            of_file, of_events = whole(distributed(keys[part.src]).get("rank")), ran_as.get(part.src)
            if None not in (of_file, of_events) and of_file != of_events:
                contradicted.append(f"file of rank {of_file}, collectives of rank {of_events}")
            known = of_file if of_events is None else of_events
            if known is None:
                known = besides[part.src].rank(pids(divided, place))
        stated.append(known)
    writer.issue(
        "rank_contradicted",
        len(contradicted),
        "the rank that the file states is not the rank that its collectives ran as: "
        "the rank of the collectives is used",
        "; ".join(contradicted)[:200],
    )
    return stated


def pids(divided: Divided, part: int) -> set[int | None]:
    """Process ids of a part's events."""
    return {number(group.pid) for group in divided.by_part[part]}


def _ranks_of_collectives(con: duckdb.DuckDBPyConnection, keys: Sequence[Keys]) -> dict[int, int]:
    """File -> the one rank that its collectives over all ranks ran as.

    ``Rank`` counts within the process group, so only groups count in which each rank stands at its own place.
    """
    wanted = " OR ".join(f"starts_with(replace(lower(coll), '_', ''), '{name}')" for name in _WITHOUT_ROOT)
    rows = con.execute(
        f'SELECT DISTINCT "row" >> {FILE_BITS}, own_rank, pg_ranks, group_size FROM k_coll '
        f"WHERE own_rank >= 0 AND pg_ranks IS NOT NULL AND ({wanted})"
    ).fetchall()
    found: dict[int, set[int]] = {}
    for src, rank, members, size in rows:
        if _covers_all(members, size, keys[src]) and rank < size:
            found.setdefault(src, set()).add(rank)
    return {src: next(iter(seen)) for src, seen in found.items() if len(seen) == 1}


def _covers_all(members: str, size: int | None, keys: Keys) -> bool:
    """Whether a group is [0, 1, ..., size - 1] with two ranks or more; kineto cuts long lists short."""
    if size is None or size < 2:
        return False
    try:
        return bool(json.loads(members) == list(range(size)))
    except ValueError:
        return size == distributed(keys).get("world_size") and members.replace(" ", "").startswith("[0,1,2,")
