"""The offset and drift of each GPU clock that its bounds allow, and what is to be added to its times."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from profrun.traces.causality.bounds import Bounds
from profrun.traces.causality.lines import Lines, Points, lines_between
from profrun.traces.causality.model import Clock, Ids, Ints, Mask, Verdict
from profrun.traces.causality.recording import Recording

TOLERANCE_NS = 1000
"""How far the times of one pair may be wrong, beside the resolution of the file; docs/clocks.md has what was
measured."""
MOST_DRIFT = 1e-3
"""Clocks that drift faster than 1000 parts per million are damage."""
MARGIN_NS = 5000
"""The quickest launch and the quickest return from a wait take about this long; docs/clocks.md has what was
measured."""
OUTLIERS = 10_000
"""One constraint may be left out, and one more for each of these."""
FEWEST = 10
"""Of fewer constraints none is left out."""
FEW = 100
"""Of fewer constraints one is left out only if it stands apart from all others."""
APART_NS = 50_000
"""By this much."""


@dataclass(frozen=True)
class Fit:
    """What the bounds of one clock in one session allow.

    Attributes:
        verdict: see ``Verdict``.
        low, high: the constant offsets that are possible; None where there is no bound, or none is possible.
        lines: the offsets that are possible when the clock may drift, from the first time on; None for none.
        outliers: bounds that were left out.
    """

    verdict: Verdict
    low: int | None = None
    high: int | None = None
    lines: Lines | None = None
    outliers: int = 0


def fit(lower: Bounds, upper: Bounds, origin: int, tolerance: int) -> Fit:
    """What bounds allow: no offset, else one that is constant, else one that drifts."""
    if not len(lower) and not len(upper):
        return Fit("unknown")
    found = _constant(lower, upper, tolerance)
    if found.verdict == "consistent":
        return replace(found, lines=_lines(lower, upper, origin, tolerance))
    usual = _without(lower, upper, lower.value > tolerance, upper.value < -tolerance)
    if usual is not None:
        again = _constant(*usual, tolerance)
        if again.verdict == "consistent":
            return _left_out(again, usual, lower, upper, origin, tolerance)
    lines = _lines(lower, upper, origin, tolerance)
    if found.verdict != "contradiction" or lines is not None:
        return replace(found, verdict="drift" if found.verdict == "contradiction" else "offset", lines=lines)
    rest = _without(lower, upper, _last(lower.value), _last(-upper.value))
    if rest is not None:
        again = _constant(*rest, tolerance)
        if again.verdict != "contradiction":
            return _left_out(again, rest, lower, upper, origin, tolerance)
    return found


def _left_out(
    found: Fit, kept: tuple[Bounds, Bounds], lower: Bounds, upper: Bounds, origin: int, tolerance: int
) -> Fit:
    outliers = len(lower) + len(upper) - len(kept[0]) - len(kept[1])
    return replace(found, lines=_lines(*kept, origin, tolerance), outliers=outliers)


def _constant(lower: Bounds, upper: Bounds, tolerance: int) -> Fit:
    low = int(lower.value.max()) - tolerance if len(lower) else None
    high = int(upper.value.min()) + tolerance if len(upper) else None
    if low is not None and high is not None and low > high:
        return Fit("contradiction")
    inside = (low is None or low <= 0) and (high is None or high >= 0)
    return Fit("consistent" if inside else "offset", low, high)


def _without(lower: Bounds, upper: Bounds, late: Mask, early: Mask) -> tuple[Bounds, Bounds] | None:
    """The bounds without some of them, where these are few and stand apart; else None."""
    if not (_few(lower.value, late) and _few(-upper.value, early)):
        return None
    return lower.where(~late), upper.where(~early)


def _few(values: Ints, out: Mask) -> bool:
    """Are the largest values so few, and so far from the others, that they can be single wrong times?"""
    count, size = int(out.sum()), len(values)
    if not count:
        return True
    if size < FEWEST or count > 1 + size // OUTLIERS:
        return False
    return size >= FEW or int(values[out].min()) - int(values[~out].max()) > APART_NS


def _last(values: Ints) -> Mask:
    """The largest values, as many as may be left out."""
    found = np.zeros(len(values), bool)
    count = 1 + len(values) // OUTLIERS
    if len(values) >= FEWEST:
        found[np.argpartition(values, len(values) - count)[-count:]] = True
    return found


def _lines(lower: Bounds, upper: Bounds, origin: int, tolerance: int) -> Lines | None:
    def points(bounds: Bounds, more: int) -> Points | None:
        if not len(bounds):
            return None
        return (bounds.gpu - origin).astype(np.float64), (bounds.value + more).astype(np.float64)

    return lines_between(points(lower, -tolerance), points(upper, tolerance), MOST_DRIFT)


def clock_of(
    rec: Recording,
    ids: Ids,
    lower: Bounds,
    upper: Bounds,
    *,
    session: int | None = None,
    begins: int | None = None,
) -> Clock:
    """What is known of the clock of one device in one session; ``moved_ns`` is what should be added.

    Args:
        rec: the recording.
        ids: the device's GPU slices with known launches in that session.
        lower, upper: their bounds.
        session, begins: its number, and the host time from which on launches belong to it; None where the
            recording is one session.
    """
    tolerance = TOLERANCE_NS + rec.resolution
    device = int(rec.device_of(ids[:1])[0])
    first, last = (
        rec.extents[device] if session is None else (int(rec.ts[ids].min()), int(rec.end[ids].max()))
    )
    found = fit(lower, upper, first, tolerance)
    lines = found.lines
    at_first = _whole(*lines.at(0)) if lines else (None, None)
    at_last = _whole(*lines.at(last - first)) if lines else (None, None)
    moved, grown = _moves(found, last - first)
    return Clock(
        process=int(rec.process_of(ids[:1])[0]),
        device=device,
        session=session or 0,
        begins_ns=begins,
        first_ns=first,
        last_ns=last,
        launches=len(lower),
        waits=len(upper),
        verdict=found.verdict,
        constant_low_ns=found.low,
        constant_high_ns=found.high,
        low_ns=at_first[0],
        high_ns=at_first[1],
        last_low_ns=at_last[0],
        last_high_ns=at_last[1],
        drift_low_ppm=float(lines.slopes[0]) * 1e6 if lines else None,
        drift_high_ppm=float(lines.slopes[-1]) * 1e6 if lines else None,
        outliers=found.outliers,
        tolerance_ns=tolerance,
        moved_ns=moved,
        last_moved_ns=moved + grown,
    )


def _whole(low: float | None, high: float | None) -> tuple[int | None, int | None]:
    return None if low is None else math.floor(low), None if high is None else math.ceil(high)


def _moves(found: Fit, span: int) -> tuple[int, int]:
    """What should be added at the first time, and by how much more at the last."""
    if found.verdict == "offset":
        return chosen(found.low, found.high), 0
    if found.verdict == "drift" and found.lines is not None:
        slope, low, high = found.lines.best()
        return chosen(*_whole(low, high)), round(slope * span)
    return 0, 0


def chosen(low: int | None, high: int | None) -> int:
    """The offset that is added, of those between two bounds.

    ``MARGIN_NS`` inside the bounds from the one next to 0, or the middle where they are closer together.
    """
    margin = MARGIN_NS if low is None or high is None else min(MARGIN_NS, (high - low) // 2)
    if low is not None and low > 0:
        return low + margin
    if high is not None and high < 0:
        return high - margin
    return 0
