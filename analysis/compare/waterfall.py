"""From one side's time to the other's, change by change: ``step_waterfall`` and ``gpu_waterfall``.

Each is given a comparison and returns bars. The first bar is the time of side a, the last that of side b, and
those between add up to the difference. What no row explains is a bar of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from profrun.analysis.compare.model import Comparison, Row

MOST = 10
"""Rows with a bar of their own."""
ROUNDING_NS = 0.01
"""A smaller part is what rounding leaves; it has no bar."""
PARTS = {"concurrent": "overlap of GPU work", "no own GPU work": "GPU without work of {}"}
"""``Part.name`` -> what its bar is called, with a place for the step."""


@dataclass(frozen=True)
class Bar:
    """One bar; times are ns per step.

    Attributes:
        name: what it is about.
        kind: ``side`` for the whole time of a side, ``row`` for a change, ``rest`` for the sum of further
            rows, ``part`` for a part of the step beside its GPU work.
        begin_ns, end_ns: the time before and after the change; of a side 0 and its time.
        rows: how many rows a ``rest`` adds up.
    """

    name: str
    kind: Literal["side", "row", "rest", "part"]
    begin_ns: float
    end_ns: float
    rows: int = 1

    @property
    def delta_ns(self) -> float:
        """The change; of a side its time."""
        return self.end_ns - self.begin_ns


def step_waterfall(found: Comparison) -> tuple[Bar, ...]:
    """The mean typical step of both sides; between them GPU work by category, then the rest of the step.

    Without a GPU the rows are self CPU time. Empty where nothing tells what changed inside of the step.
    """
    if not found.parts:
        return ()
    gpu = found.parts[0].name == "gpu"
    rows = found.categories if gpu else tuple(row for row in found.rows if row.basis == "cpu")
    a_ns, b_ns = (sum(times) for times in zip(*((part.a_ns, part.b_ns) for part in found.parts), strict=True))
    others = [
        (PARTS.get(part.name, part.name).format(found.denominator.the), part.delta_ns)
        for part in found.parts[1:]
    ]
    if not gpu and rows:
        others = [("not explained by them", b_ns - a_ns - sum(row.delta_ns for row in rows))]
    return _bars(found, (a_ns, b_ns), rows, others) if rows else ()


def gpu_waterfall(found: Comparison) -> tuple[Bar, ...]:
    """The GPU work of both sides; between them the kernels that changed most. Empty without GPU work."""
    if not found.kernels or not found.parts:
        return ()
    return _bars(found, (found.parts[0].a_ns, found.parts[0].b_ns), found.kernels, ())


def _bars(
    found: Comparison, ends: tuple[float, float], rows: Sequence[Row], others: Sequence[tuple[str, float]]
) -> tuple[Bar, ...]:
    a, b = (side.name for side in found.sides)
    ordered = sorted(rows, key=lambda row: -abs(row.delta_ns))
    bars = [Bar(a, "side", 0.0, ends[0])]

    def add(name: str, kind: Literal["row", "rest", "part"], delta: float, count: int = 1) -> None:
        begin = bars[-1].end_ns
        bars.append(Bar(name, kind, begin, begin + delta, count))

    for row in ordered[:MOST]:
        add(row.label or row.name, "row", row.delta_ns)
    rest = ordered[MOST:]
    if rest:
        add(f"{len(rest)} more", "rest", sum(row.delta_ns for row in rest), len(rest))
    for name, delta in others:
        if abs(delta) > ROUNDING_NS:
            add(name, "part", delta)
    return (*bars, Bar(b, "side", 0.0, ends[1]))
