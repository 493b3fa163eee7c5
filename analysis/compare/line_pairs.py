"""Which line of one side is which line of the other: ``line_pairs``.

Lines of the same file with the same digests are the same lines, wherever they stand: the digests of both
files are aligned (``difflib``, the longest runs of equal lines first). Where the digests of a side are not
known, lines with the same number are taken for the same.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import NamedTuple

Digests = Mapping[str, tuple[str, ...]]
"""file -> digest of each line, from line 1."""


class Place(NamedTuple):
    """A line of a side."""

    file: str
    line: int


def line_pairs(
    a: Iterable[Place], b: Iterable[Place], digests: tuple[Digests, Digests]
) -> dict[Place, Place]:
    """The line of side a for each line of side b that has one.

    Args:
        a, b: lines of each side.
        digests: of the files of side a and of side b.
    """
    there, wanted = set(a), list(b)
    files = _same_files({one.file for one in there}, {one.file for one in wanted})
    moved = {
        file: _moved(digests[0].get(other, ()), digests[1].get(file, ())) for file, other in files.items()
    }
    found = {}
    for one in wanted:
        other = files.get(one.file)
        known = moved.get(one.file)
        line = one.line if known is None else known.get(one.line)
        if other is not None and line is not None and Place(other, line) in there:
            found[one] = Place(other, line)
    return found


def _moved(a: tuple[str, ...], b: tuple[str, ...]) -> dict[int, int] | None:
    """Number of each line of b that stands in a -> its number there; None where one side is not known."""
    if not a or not b:
        return None
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    return {
        block.b + step + 1: block.a + step + 1
        for block in matcher.get_matching_blocks()
        for step in range(block.size)
    }


def _same_files(a: set[str], b: set[str]) -> dict[str, str]:
    """File of b -> the same file of a: of the same path, else the only one whose path has the longest end in
    common."""
    found = {}
    for file in sorted(b):
        if file in a:
            found[file] = file
            continue
        alike: dict[int, list[str]] = {}
        for other in sorted(a - b):
            alike.setdefault(_equal_parts(file, other), []).append(other)
        most = max(alike, default=0)
        if most and len(alike[most]) == 1:
            found[file] = alike[most][0]
    return found


def _equal_parts(one: str, other: str) -> int:
    """How many parts at the end of both paths are the same."""
    pairs = zip(reversed(PurePath(one).parts), reversed(PurePath(other).parts), strict=False)
    count = 0
    for left, right in pairs:
        if left != right:
            break
        count += 1
    return count
