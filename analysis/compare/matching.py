"""Kernel groups of two sides that are being matched: what is matched already, and what is left of each side.

``Matching`` holds both; the passes of ``align`` take from it. Calls and times are split in proportion, so
that all matches together hold exactly the work of both sides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from profrun.analysis.compare.compared_trial import KernelGroup
from profrun.analysis.compare.kernel_identity import kernel_identity

EPSILON = 1e-9
"""Calls per step up to which nothing is left of a piece."""
Key = Callable[[KernelGroup], Hashable]
"""What two kernel groups must have in common to be matched; None is no key."""


@dataclass
class Piece:
    """Part of a kernel group: calls per step, and their time in ns per step."""

    group: KernelGroup
    calls: float
    ns: float

    def take(self, calls: float) -> Piece:
        """Cut off so many calls with their share of the time."""
        share = 1.0 if self.calls <= EPSILON else min(1.0, calls / self.calls)
        cut = Piece(self.group, self.calls * share, self.ns * share)
        self.calls -= cut.calls
        self.ns -= cut.ns
        return cut


@dataclass
class Match:
    """Work of both sides that corresponds; one side is empty for what was added or removed.

    Attributes:
        by: how the sides were matched, None where one side is empty.
    """

    by: str | None
    a: list[Piece] = field(default_factory=list)
    b: list[Piece] = field(default_factory=list)

    @property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Distinct kernel names of each side, most time first."""
        return _names(self.a), _names(self.b)


def _names(pieces: Iterable[Piece]) -> tuple[str, ...]:
    time: dict[str, float] = defaultdict(float)
    for piece in pieces:
        time[piece.group.name] += piece.ns
    return tuple(sorted(time, key=lambda name: (-time[name], name)))


@dataclass
class Matching:
    """The state of matching: pieces of side a (``left``) and b (``right``), and the matches so far."""

    left: list[Piece]
    right: list[Piece]
    matches: dict[Hashable, Match] = field(default_factory=dict)

    def by_name(self, key: Key) -> None:
        """Match kernels of one identity that share a key, as many calls as both sides have."""
        for mine, theirs in self._both(key):
            calls = min(sum(piece.calls for piece in mine), sum(piece.calls for piece in theirs))
            found = self.matches.setdefault(_name_key(mine[0].group), Match("name"))
            found.a += _share(mine, calls)
            found.b += _share(theirs, calls)

    def all_that_share(self, key: Key, by: str, *, unless_named: bool = False) -> None:
        """Match everything that shares a key, whatever its number of calls.

        Args:
            unless_named: leave out kernels that were matched by name on both sides: more or fewer calls of
                them are no replacement.
        """
        for mine, theirs in self._both(key):
            named = (_name_key(side[0].group) in self.matches for side in (mine, theirs))
            if not (unless_named and all(named)):
                self.add(Match(by, _whole(mine), _whole(theirs)))

    def add(self, found: Match) -> None:
        """Add a match; of one way and the same names there is one match."""
        known = self.matches.setdefault((found.by, *found.names), Match(found.by))
        known.a += found.a
        known.b += found.b

    def finish(self) -> list[Match]:
        """All matches. What is left goes to the match of its name, else it was added or removed."""
        for number, pieces in enumerate((self.left, self.right)):
            for piece in live(pieces):
                key = _name_key(piece.group)
                found = self.matches.get(key)
                if found is None:
                    found = self.matches.setdefault(("only", number, *key), Match(None))
                (found.b if number else found.a).append(piece.take(piece.calls))
        return list(self.matches.values())

    def _both(self, key: Key) -> list[tuple[list[Piece], list[Piece]]]:
        """What is left of both sides with the same key."""
        sides: dict[Hashable, tuple[list[Piece], list[Piece]]] = {}
        for number, pieces in enumerate((self.left, self.right)):
            for piece in live(pieces):
                value = key(piece.group)
                if value is not None:
                    sides.setdefault(value, ([], []))[number].append(piece)
        return [(mine, theirs) for mine, theirs in sides.values() if mine and theirs]


def live(pieces: Sequence[Piece]) -> list[Piece]:
    """Pieces of which something is left."""
    return [piece for piece in pieces if piece.calls > EPSILON]


def _name_key(group: KernelGroup) -> tuple[str, str, str]:
    return "name", kernel_identity(group.name), group.role


def _share(pieces: list[Piece], calls: float) -> list[Piece]:
    """Take so many calls of all pieces together, of each in proportion."""
    total = sum(piece.calls for piece in pieces)
    share = calls / total if total else 0.0
    return [piece.take(piece.calls * share) for piece in pieces]


def _whole(pieces: list[Piece]) -> list[Piece]:
    return [piece.take(piece.calls) for piece in pieces]
