"""Files that one process wrote one after the other, as torch's ``schedule(repeat=2)`` makes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Session:
    """What tells whether a part goes on where another part of the same process ended.

    Attributes:
        pid: the process that most host events belong to; None without any.
        rank: the rank that something states; None where nothing does.
        host: name of the host; None where nothing states it.
        begin: earliest time on the axis of all files, ns; None where the files have no common axis.
        end: latest start of an event on that axis, ns.
    """

    pid: int | None
    rank: int | None
    host: str | None
    begin: int | None
    end: int | None

    def follows(self, other: Session) -> bool:
        """Whether this is a later session of the process that recorded ``other``."""
        return (
            self.pid is not None
            and self.pid == other.pid
            and _agree(self.rank, other.rank)
            and _agree(self.host, other.host)
            and self.begin is not None
            and other.end is not None
            and self.begin > other.end
        )


def _agree(one: object, other: object) -> bool:
    return one is None or other is None or one == other


def homes(parts: Sequence[Session]) -> list[int]:
    """For each part the number of the part that is the first session of its process.

    Parts whose times overlap are never sessions of one process: containers often give several ranks the same
    process id.
    """
    home = list(range(len(parts)))
    last: dict[int, list[int]] = {}  # pid -> the last session so far of each process with that pid
    timed = [place for place, part in enumerate(parts) if part.pid is not None and part.begin is not None]
    for place in sorted(timed, key=lambda place: (parts[place].begin or 0, place)):
        pid = parts[place].pid or 0
        known = last.setdefault(pid, [])
        before = [other for other in known if parts[place].follows(parts[other])]
        if len(before) == 1:  # with more than one it is not known whose session it is
            home[place] = home[before[0]]
            known.remove(before[0])
        known.append(place)
    return home
