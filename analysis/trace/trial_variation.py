"""Why trials of one side take different times: ``trial_variation`` of their ``TrialFacts``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.trace.readings import Quantities, host_readings
from profrun.analysis.trace.sampled_factors import Cause, others_cores, used_gpu_readings
from profrun.analysis.trace.steadiness import steadiness
from profrun.analysis.trace.variation import Variation, middle_width, refused
from profrun.analysis.variance_shares import Factor, variance_shares
from profrun.contract.sampling import Quantity

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

LEAST_TRIALS = 5
"""Of fewer trials no shares are told."""
LEFT = 3
"""So many more trials than causes are needed."""


@dataclass(frozen=True)
class TrialFacts:
    """A trial as one value; means are from its first steady step to the end of the last one.

    Attributes:
        median_ns: median of the steady steps.
        clock_mhz: mean SM clock of the slowest GPU; None where it was not read, as for the others.
        temperature: mean of the hottest GPU, C.
        others_cores: cores of the host that others had.
    """

    median_ns: float
    clock_mhz: float | None = None
    temperature: float | None = None
    others_cores: float | None = None


def trial_facts(trace: Trace) -> TrialFacts | None:
    """The facts of the trial of a trace; None where its steps were not timed."""
    found = steadiness(trace)
    if found is None:
        return None
    steady = np.isin(found.steps.numbers, found.steady_steps) & ~found.steps.disturbed
    if not steady.any():
        return None
    start, end = int(found.steps.starts[steady][0]), int(found.steps.ends[steady][-1])
    gpus = used_gpu_readings(trace)
    clocks = _means(gpus, "sm_clock", start, end)
    heats = _means(gpus, "temperature", start, end)
    taken = others_cores(host_readings(trace))
    return TrialFacts(
        median_ns=float(np.median(found.steps.durs[steady])),
        clock_mhz=min(clocks, default=None),
        temperature=max(heats, default=None),
        others_cores=taken.mean(start, end) if taken is not None else None,
    )


def _means(gpus: Sequence[Quantities], quantity: Quantity, start: int, end: int) -> list[float]:
    found = [one[quantity].mean(start, end) for one in gpus if quantity in one]
    return [one for one in found if one is not None]


def trial_variation(trials: Sequence[TrialFacts]) -> Variation:
    """Why these trials take different times. Of few trials the first causes are taken: clock, host, heat.

    Args:
        trials: repeats of one side.
    """
    times = np.array([one.median_ns for one in trials], dtype=np.float64)
    of = "medians of the steady steps of trials"
    if len(trials) < LEAST_TRIALS:
        return refused(of, times, f"at least {LEAST_TRIALS} trials are needed, there are {len(trials)}")
    columns: Mapping[Cause, list[float | None]] = {
        "clock": [None if one.clock_mhz is None else -float(np.log(one.clock_mhz)) for one in trials],
        "host": [one.others_cores for one in trials],
        "temperature": [one.temperature for one in trials],
    }
    factors: list[Factor] = []
    unread: list[str] = []
    for cause, values in columns.items():
        if any(value is None for value in values):
            unread.append(f"{cause}: it was not read in every trial")
        elif len(factors) + LEFT < len(trials):
            factors.append(Factor(cause, cause, np.array(values, dtype=np.float64)))
        else:
            unread.append(f"{cause}: {len(factors) + 1 + LEFT} trials are needed to look at it, too")
    shares = variance_shares(times, factors, ordered=False) if factors else None
    if shares is None:
        return refused(of, times, "the sampler must have read something that differs", tuple(unread))
    return Variation(of, len(times), float(np.median(times)), middle_width(times), shares, tuple(unread))
