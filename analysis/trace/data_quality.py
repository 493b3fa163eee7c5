"""What is doubtful about a trace, said before any number, and which numbers each doubt makes unreliable.

A summary opens with these. A number that a 'wrong' doubt names is withheld (None); one that a 'care' doubt
names is shown and marked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from profrun.analysis.trace.frame import frame
from profrun.analysis.trace.launches import is_graph_launch, is_launch
from profrun.analysis.trace.quality_checks import CHECKS, Doubt

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

__all__ = ["Doubt", "doubts", "is_graph_launch", "is_launch", "withheld"]


def doubts(trace: Trace) -> list[Doubt]:
    """Every doubt about a trace, the gravest first."""
    source = frame(trace)
    found: list[Doubt] = []
    for check in CHECKS:
        found += check(trace, source)
    rank = {"wrong": 0, "care": 1, "note": 2}
    return sorted(found, key=lambda doubt: rank[doubt.severity])


def withheld(found: list[Doubt]) -> frozenset[str]:
    """Names of numbers that must not be shown."""
    return frozenset(name for doubt in found if doubt.severity == "wrong" for name in doubt.affects)
