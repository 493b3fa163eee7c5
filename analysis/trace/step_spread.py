"""How the times of many steps are spread: a histogram, a typical step, and the steps that stand out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.steps import Step

FENCE = 1.5
"""A step stands out when it is more than so many interquartile ranges outside of the quartiles (Tukey)."""
BINS = 40
"""Most bars of the histogram."""
OUTLIERS = 5
"""Most outliers that are named."""


@dataclass(frozen=True)
class StepSpread:
    """Times of steps: ``span_ns`` of each.

    Attributes:
        edges: ends of the bins in ns, int64, shape (bins + 1,); a time on an edge belongs to the right bin.
            Outliers are in no bin: with them nearly all other steps would be in one bin.
        counts: steps in each bin, int64, shape (bins,); with ``outlier_count`` they add up to all steps.
        quartile_ns: first quartile, median and third quartile, linear between steps.
        typical: the step whose time is nearest to the median.
        outliers: steps beyond Tukey's fences, the furthest from the median first, at most ``OUTLIERS``.
        outlier_count: how many there are.
    """

    edges: Ints
    counts: Ints
    quartile_ns: tuple[float, float, float]
    typical: Step
    outliers: tuple[Step, ...]
    outlier_count: int


def step_spread(steps: Sequence[Step]) -> StepSpread | None:
    """The spread of these steps; None where the time of no step is known."""
    known = [step for step in steps if step.span_ns]  # None where spans are withheld
    if not known:
        return None
    times = np.array([step.span_ns for step in known], dtype=np.int64)
    low, middle, high = (float(value) for value in np.percentile(times, (25, 50, 75)))
    far = np.abs(times - middle)
    margin = FENCE * (high - low)
    outside = (times < low - margin) | (times > high + margin)
    edges = _edges(times[~outside], high - low)
    out = np.flatnonzero(outside)
    out = out[np.argsort(-far[out], kind="stable")]
    return StepSpread(
        edges=edges,
        counts=np.histogram(times[~outside], edges)[0].astype(np.int64),
        quartile_ns=(low, middle, high),
        typical=known[int(np.argmin(far))],
        outliers=tuple(known[place] for place in out[:OUTLIERS]),
        outlier_count=len(out),
    )


def _edges(times: Ints, spread: float) -> Ints:
    """Bins of one width: that of Freedman and Diaconis, and at most ``BINS`` of them."""
    first, last = int(times.min()), int(times.max())
    width = 2 * spread / len(times) ** (1 / 3)
    bins = BINS if width <= 0 else int(np.clip(np.ceil((last - first) / width), 5, BINS))
    step = max(1, -(-(last - first + 1) // bins))
    return np.arange(first, first + step * bins + 1, step, dtype=np.int64)
