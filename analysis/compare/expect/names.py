"""Guesses about names: what must occur in every step, and what must not occur."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from profrun.analysis.compare.expect.evidence import Evidence, matches
from profrun.analysis.compare.expect.model import Answer
from profrun.contract.units import some_of


def present(evidence: Evidence, globs: Sequence[str]) -> Answer:
    """Does each glob match a kernel, call, op or copy in every whole step?"""
    steps, found = evidence.names_by_step
    for glob in globs:
        hit = {step for name, where in found.items() if matches(name, glob) for step in where}
        if not hit:
            near = get_close_matches(glob.strip("*"), list(found), n=3, cutoff=0.4)
            alike = f"; the nearest names are {', '.join(near)}" if near else ", and no name like it"
            return Answer(False, f"no {glob}{alike}")
        if hit != steps:
            return Answer(False, f"{glob} only in {len(hit)} of {len(steps)} steps")
    return Answer(True, f"in each of {len(steps)} steps")


def absent(evidence: Evidence, globs: Sequence[str]) -> Answer:
    """Does no glob match any kernel, call, op or copy of a whole step?"""
    steps, found = evidence.names_by_step
    for glob in globs:
        names = [name for name in found if matches(name, glob)]
        if names:
            where = set().union(*(found[name] for name in names))
            return Answer(False, f"{some_of(names)} in {len(where)} of {len(steps)} steps")
    return Answer(True, f"in none of {len(steps)} steps")
