"""GPU times in another unit than the host's."""

from __future__ import annotations

import numpy as np

from profrun.traces.causality import bounds
from profrun.traces.causality.clocks import fit
from profrun.traces.causality.damage import FEWEST, UNIT
from profrun.traces.causality.model import Clock, Contradiction, Ids, Ints
from profrun.traces.causality.recording import Recording

SPREAD = 0.5
"""How far the ratio of the spans may be from the factor, either way, as a part of it."""


def time_unit(rec: Recording, ids: Ids, clocks: list[Clock]) -> Contradiction | None:
    """Is the GPU's axis 1000 times as long or as short as the host's?

    Only asked where the clock does not fit: the spans must then be about 1000 times as different, and
    another unit must make everything fit.

    Args:
        rec: the recording.
        ids: the GPU slices of one device with known launches.
        clocks: what was found for the device.
    """
    if len(ids) < FEWEST or all(clock.verdict in ("consistent", "unknown") for clock in clocks):
        return None
    for factor in (UNIT, 1 / UNIT):
        if _fits(rec, ids, factor):
            return Contradiction(
                code="gpu_time_unit",
                count=len(ids),
                total=len(ids),
                process=clocks[0].process,
                device=clocks[0].device,
                first_ns=int(rec.ts[ids].min()),
                last_ns=int(rec.end[ids].max()),
                amount=float(factor),
                example=int(ids[0]),
            )
    return None


def _fits(rec: Recording, ids: Ids, factor: float) -> bool:
    """Do all bounds fit when GPU times are divided by the factor?"""
    ratio = _span(rec.ts[ids]) / max(_span(rec.ts[rec.launch[ids]]), 1)
    if not (1 - SPREAD) * factor < ratio < factor / (1 - SPREAD):
        return False
    first = int(rec.ts[ids].min())
    lower = _scaled(bounds.lower(rec, ids), first, factor)
    upper = _scaled(bounds.upper(rec, ids, alone=rec.alone(ids)), first, factor)
    return fit(lower, upper, 0, rec.resolution * UNIT).verdict != "contradiction"


def _scaled(found: bounds.Bounds, first: int, factor: float) -> bounds.Bounds:
    gpu = np.rint((found.gpu - first) / factor).astype(np.int64)
    return bounds.Bounds(gpu, found.value + found.gpu - gpu, found.host)


def _span(times: Ints) -> int:
    """From the 5th to the 95th percentile."""
    edge = len(times) // 20
    ordered = np.partition(times, [edge, len(times) - 1 - edge])
    return int(ordered[len(times) - 1 - edge] - ordered[edge])
