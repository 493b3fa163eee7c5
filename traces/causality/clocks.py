"""The offset and drift of each GPU clock that its bounds allow, and what is to be added to its times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profrun.traces.causality.bounds import Bounds
from profrun.traces.causality.lines import lines_between
from profrun.traces.causality.model import Clock, Ids, Verdict
from profrun.traces.causality.recording import Recording

TOLERANCE_NS = 1000
"""How far the times of one pair may be wrong, beside the resolution of the file; docs/clocks.md has what was
measured."""
MOST_DRIFT = 1e-3
"""Clocks that drift faster than 1000 parts per million are damage."""
OUTLIERS = 10_000
"""One constraint may be left out, and one more for each of these."""
FEW = 100
"""Of fewer constraints none is left out."""


@dataclass(frozen=True)
class Fit:
    """The lines d(t) = a + b t that the bounds allow, t from ``origin``.

    Attributes:
        verdict: see ``Verdict``.
        low, high: bounds of a; None where there is none.
        slope: b.
        outliers: bounds that were left out.
    """

    verdict: Verdict
    low: int | None
    high: int | None
    slope: float = 0.0
    outliers: int = 0


def fit(lower: Bounds, upper: Bounds, origin: int, tolerance: int) -> Fit:
    """What the bounds of one clock in one session allow."""
    if not len(lower) and not len(upper):
        return Fit("unknown", None, None)
    found = _constant(lower, upper, tolerance)
    if found.verdict == "consistent":
        return found
    left_out = _without_outliers(lower, upper, tolerance)
    if left_out is not None:
        return left_out
    if found.verdict != "contradiction":
        return found
    return _drifting(lower, upper, origin, tolerance) or found


def _constant(lower: Bounds, upper: Bounds, tolerance: int) -> Fit:
    low = int(lower.value.max()) - tolerance if len(lower) else None
    high = int(upper.value.min()) + tolerance if len(upper) else None
    if low is not None and high is not None and low > high:
        return Fit("contradiction", None, None)
    inside = (low is None or low <= 0) and (high is None or high >= 0)
    return Fit("consistent" if inside else "offset", low, high)


def _allowed(bounds: Bounds) -> int:
    return 0 if len(bounds) < FEW else 1 + len(bounds) // OUTLIERS


def _without_outliers(lower: Bounds, upper: Bounds, tolerance: int) -> Fit | None:
    """Are the times right but for a few? Then those bounds are left out."""
    late, early = lower.value > tolerance, upper.value < -tolerance
    if late.sum() > _allowed(lower) or early.sum() > _allowed(upper):
        return None
    rest = _constant(lower.where(~late), upper.where(~early), tolerance)
    if rest.verdict != "consistent":
        return None
    return Fit("consistent", rest.low, rest.high, outliers=int(late.sum() + early.sum()))


def _drifting(lower: Bounds, upper: Bounds, origin: int, tolerance: int) -> Fit | None:
    found = lines_between(
        ((lower.gpu - origin).astype(np.float64), (lower.value - tolerance).astype(np.float64)),
        ((upper.gpu - origin).astype(np.float64), (upper.value + tolerance).astype(np.float64)),
        MOST_DRIFT,
    )
    if found is None:
        return None
    return Fit("drift", round(found.low), round(found.high), found.slope)


def clock_of(
    rec: Recording, ids: Ids, lower: Bounds, upper: Bounds, *, session: int = 0, begins: int | None = None
) -> Clock:
    """What is known of the clock of one device in one session.

    Args:
        rec: the recording.
        ids: the device's GPU slices with known launches in that session.
        lower, upper: their bounds.
        session, begins: its number, and the host time from which on launches belong to it.
    """
    tolerance = TOLERANCE_NS + rec.resolution
    first, last = int(rec.ts[ids].min()), int(rec.end[ids].max())
    found = fit(lower, upper, first, tolerance)
    grown = round(found.slope * (last - first))
    return Clock(
        process=int(rec.process_of(ids[:1])[0]),
        device=int(rec.device_of(ids[:1])[0]),
        session=session,
        begins_ns=begins,
        first_ns=first,
        last_ns=last,
        launches=len(lower),
        waits=len(upper),
        low_ns=found.low,
        high_ns=found.high,
        last_low_ns=None if found.low is None else found.low + grown,
        last_high_ns=None if found.high is None else found.high + grown,
        verdict=found.verdict,
        outliers=found.outliers,
        tolerance_ns=tolerance,
    )
