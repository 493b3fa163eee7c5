"""Which rank recorded an event: the parts of kineto files, one for each rank.

torch writes one file per rank, and such a file is one part. Tools that merge the files of several ranks into
one write the rank into the arguments of each event; such a file has a part for each rank. Numbers that only
one process makes unique (correlation, External id, device) are compared inside a part only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from profrun.collectors.torch.reader_tracks import Group, PartRank, kind_of

NO_RANK = -1
"""Stands for "no rank" in SQL, so that joins need no NULL-safe comparison."""


@dataclass(frozen=True)
class Part:
    """The events of one rank in one file.

    Attributes:
        src: number of the file.
        rank: rank that selects its events in a file of several ranks; ``NO_RANK``: those that belong to none
            of them, or all events of a file of one rank.
        stated: rank that its events state, None where they state none.
    """

    src: int
    rank: int = NO_RANK
    stated: int | None = None


@dataclass(frozen=True)
class Divided:
    """Files as parts.

    Attributes:
        parts: in the order of files and ranks.
        groups: owners of events, ``src`` is the number of the part.
        split: files that hold several ranks -> these ranks.
        ignored: events with a rank, in files in which most events have none.
    """

    parts: list[Part]
    groups: list[Group]
    split: dict[int, list[int]]
    ignored: int

    @cached_property
    def by_part(self) -> list[list[Group]]:
        """Owners of the events of each part."""
        found: list[list[Group]] = [[] for _ in self.parts]
        for group in self.groups:
            found[group.src].append(group)
        return found

    def key(self, src: str, rank: str) -> str:
        """SQL of ``Part.rank`` of the part that an event belongs to, from its file and the rank it states."""
        cases = (
            f"WHEN {src} = {file} AND {rank} IN ({', '.join(map(str, ranks))}) THEN {rank}"
            for file, ranks in self.split.items()
        )
        return f"(CASE {' '.join(cases)} ELSE {NO_RANK} END)" if self.split else str(NO_RANK)


def divide(groups: Sequence[Group], files: int, samples: Sequence[tuple[int, int | None]] = ()) -> Divided:
    """Parts of all files, by what their events state.

    Args:
        groups: owners of the complete events, ``src`` is the number of the file.
        files: how many files there are.
        samples: (file, rank or None) of the allocator's records.
    """
    parts: list[Part] = []
    found: list[Group] = []
    split: dict[int, list[int]] = {}
    ignored = 0
    of_file: list[list[Group]] = [[] for _ in range(files)]
    for group in groups:
        of_file[group.src].append(_sound(group))
    for src in range(files):
        mine = of_file[src]
        stating = sum(group.count for group in mine if group.rank is not None)
        if 2 * stating < sum(group.count for group in mine):
            ignored += stating  # an argument of these events, not the rank of their process
            mine = [replace(group, rank=None) for group in mine]
        ranks = sorted({group.rank for group in mine if group.rank is not None})
        if len(ranks) < 2:
            found += [replace(group, src=len(parts)) for group in mine]
            parts.append(Part(src, NO_RANK, ranks[0] if ranks else None))
            continue
        split[src] = ranks
        mine = _adopted(mine)
        number = {rank: len(parts) + place for place, rank in enumerate(ranks)}
        parts += [Part(src, rank, rank) for rank in ranks]
        lost = any(file == src and rank not in number for file, rank in samples)
        if lost or any(group.rank is None for group in mine):
            number[NO_RANK] = len(parts)
            parts.append(Part(src))
        found += [replace(group, src=number[NO_RANK if group.rank is None else group.rank]) for group in mine]
    return Divided(parts, found, split, ignored)


def _sound(group: Group) -> Group:
    return group if group.rank is None or 0 <= group.rank < 2**31 else replace(group, rank=None)


def _adopted(groups: Sequence[Group]) -> list[Group]:
    """Groups of one file; those without a rank get that of the same process or GPU, where there is one."""
    ranks: dict[tuple[bool, str | None], Counter[int]] = {}
    for group in groups:
        if group.rank is not None:
            ranks.setdefault((kind_of(group.cat)[1], group.pid), Counter())[group.rank] += 1
    found = []
    for group in groups:
        known = ranks.get((kind_of(group.cat)[1], group.pid), Counter())
        alone = group.rank is None and len(known) == 1
        found.append(replace(group, rank=next(iter(known))) if alone else group)
    return found


def ranks_of(stated: Sequence[int | None]) -> list[PartRank]:
    """Rank of each part.

    A stated rank is kept. Parts that state none, or one that an earlier part has, get the lowest free ranks
    in the order given. A single part without a rank has rank 0.
    """
    if list(stated) == [None]:
        return [PartRank(0, False)]
    taken = {rank for rank in stated if rank is not None}
    free = (rank for rank in range(len(stated) + len(taken)) if rank not in taken)
    seen: set[int] = set()
    found: list[PartRank] = []
    for rank in stated:
        known = None if rank in seen else rank
        found.append(PartRank(next(free), True) if known is None else PartRank(known, False))
        seen.add(found[-1].rank)
    return found
