"""What a run measured at each of its points, from the step times its trials wrote themselves.

A point is variant x launch-blocking x collector; a trial's value is the median of its measured steps, a
point's value the median over its finished trials (repeats). Ratios are of those medians, and every line
carries both numbers and how many trials they rest on. Confidence intervals are the comparison's business.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from profrun.store.documents import median_ns
from profrun.store.state import TrialRecord


@dataclass(frozen=True)
class Point:
    """Step time of one point: median over ``trials`` finished trials, ns; None when none measured a step."""

    variant: str
    collector: str
    blocking: bool
    median_step_ns: int | None
    trials: int


@dataclass(frozen=True)
class Ratio:
    """``value`` = ``of`` / ``base`` (step times); None where one of the two is missing."""

    of: Point
    base: Point

    @property
    def value(self) -> float | None:
        """The ratio, 1.0 for equal."""
        if not self.of.median_step_ns or not self.base.median_step_ns:
            return None
        return self.of.median_step_ns / self.base.median_step_ns


def points(records: Iterable[TrialRecord]) -> list[Point]:
    """The run's points in plan order."""
    grouped: dict[tuple[str, str, bool], list[TrialRecord]] = {}
    for record in records:
        grouped.setdefault((record.variant, record.collector, record.blocking), []).append(record)
    found = []
    for (variant, collector, blocking), group in grouped.items():
        medians = [
            median
            for record in group
            if record.state == "finished" and (median := record.steps.median_ns) is not None
        ]
        found.append(Point(variant, collector, blocking, median_ns(medians), len(medians)))
    return found


def overheads(found: Iterable[Point]) -> list[Ratio]:
    """Each collector's step time over the unprofiled one's (``none``) of the same variant and blocking."""
    by_key = {(point.variant, point.blocking, point.collector): point for point in found}
    return [
        Ratio(point, base)
        for point in by_key.values()
        if point.collector != "none"
        and (base := by_key.get((point.variant, point.blocking, "none"))) is not None
    ]


def twins(found: Iterable[Point]) -> list[Ratio]:
    """Launch-blocking over not blocking, of the same variant and collector."""
    by_key = {(point.variant, point.collector, point.blocking): point for point in found}
    return [
        Ratio(point, base)
        for point in by_key.values()
        if point.blocking and (base := by_key.get((point.variant, point.collector, False))) is not None
    ]
