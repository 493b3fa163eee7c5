"""The comparisons that a job implies: variants against the first, blocking against not, profiled against not.

What a run's trials are is told by the runner; which of them answer which question is said here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from profrun.analysis.blocking import Blocking, blocking_twins
from profrun.analysis.compare.core import compare
from profrun.analysis.compare.model import Comparison, Trial
from profrun.analysis.json import to_json
from profrun.errors import UsageError

PREFERRED = ("none", "torch", "nsys", "rocprof")
"""Whose trials compare variants: unprofiled ones first, for their times are the program's own."""


@dataclass(frozen=True)
class RunTrial:
    """A finished trial of a run with its place in the plan."""

    variant: str
    collector: str
    blocking: bool
    repeat: int
    trial: Trial


@dataclass(frozen=True)
class Implied:
    """One comparison that the job implies.

    Attributes:
        kind: 'variant' (another variant against the first), 'overhead' (a collector against none).
        a, b: the points in words. collector: whose trials the answer rests on. comparison: the answer.
        what_changed: the same question asked of profiled trials where ``comparison`` rests on unprofiled ones
            (which hold no kernels); None where there are none.
    """

    kind: str
    a: str
    b: str
    collector: str
    comparison: Comparison
    what_changed: Comparison | None = None


@dataclass(frozen=True)
class RunComparisons:
    """Everything that a run's trials say about each other."""

    variants: tuple[Implied, ...]
    overheads: tuple[Implied, ...]
    blocking: tuple[Blocking, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values: part of ``comparison.json``."""
        found: dict[str, Any] = to_json(self)
        return found


def implied(trials: Sequence[RunTrial], *, threshold: float = 0.01) -> RunComparisons:
    """Every comparison that the run's trials allow, in plan order of variants."""
    points: dict[tuple[str, str, bool], list[Trial]] = {}
    for one in trials:
        points.setdefault((one.variant, one.collector, one.blocking), []).append(one.trial)
    variants = list(dict.fromkeys(one.variant for one in trials))
    return RunComparisons(
        variants=tuple(_variants(points, variants, threshold)),
        overheads=tuple(_overheads(points, threshold)),
        blocking=tuple(_blocking(points, variants, threshold)),
    )


Points = dict[tuple[str, str, bool], list[Trial]]


def _variants(points: Points, variants: Sequence[str], threshold: float) -> list[Implied]:
    """Each variant against the first, not blocking; by unprofiled trials, what changed by profiled ones."""
    found = []
    for other in variants[1:]:
        usable = [
            name
            for name in PREFERRED
            if (variants[0], name, False) in points and (other, name, False) in points
        ]
        if not usable:
            continue
        first = points[(variants[0], usable[0], False)], points[(other, usable[0], False)]
        detail = None
        if usable[0] == "none" and len(usable) > 1:
            name = usable[1]
            detail = compare(
                points[(variants[0], name, False)], points[(other, name, False)], threshold=threshold
            )
        answer = compare(*first, threshold=threshold)
        found.append(Implied("variant", variants[0], other, usable[0], answer, detail))
    return found


def _overheads(points: Points, threshold: float) -> list[Implied]:
    """Each collector against none, of the same variant and blocking."""
    found = []
    for (variant, collector, blocking), trials in points.items():
        base = points.get((variant, "none", blocking))
        if collector == "none" or base is None or any(one.conditions.replayed for one in trials):
            continue
        answer = compare(base, trials, threshold=threshold, allow=("profiled", "clock", "work"))
        where = f"{variant}, blocking" if blocking else variant
        found.append(Implied("overhead", f"{where}, none", f"{where}, {collector}", collector, answer))
    return found


def _blocking(points: Points, variants: Sequence[str], threshold: float) -> list[Blocking]:
    found = []
    for variant in variants:
        sides: list[list[Trial]] = [[], []]
        for (name, _, blocking), trials in points.items():
            if name == variant:
                sides[blocking] += trials
        if not all(sides):
            continue
        try:
            found.append(blocking_twins(*sides, threshold=threshold, variant=variant))
        except UsageError:  # no collector has both: nothing to say of this variant
            continue
    return found
