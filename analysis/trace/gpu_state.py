"""How each GPU of a trial fared in a stretch of time: clock, power, temperature, and what slowed it down.

``state_of`` is given a device and a stretch. ``gpu_states`` returns the states in the window that a profiler
records, in the whole run, and in its longest steady stretch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from profrun.analysis.trace.energy import counted_energy, counted_stretches, sampled_gpus
from profrun.analysis.trace.readings import Readings, gpu_readings
from profrun.analysis.trace.run_steps import run_steps
from profrun.analysis.trace.sampled_factors import slowing
from profrun.contract.sampling import SLOWING, Reason
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

Part = Literal["window", "run", "steady"]
"""The recorded steps, all steps, or the longest steady stretch."""


@dataclass(frozen=True)
class StateOfGpu:
    """Means over the time of a stretch; None where the quantity was not sampled.

    Attributes:
        device: its id in the trace. part: which stretch.
        start_ns, end_ns: of the stretch, on the axis of the trace.
        watts: mean power of the board.
        watts_by: ``counter``: by the energy counter; ``readings``: mean of readings of the power at one
            moment, where the stretch is too short for the counter.
        sm_mhz: mean SM clock. celsius: mean temperature of the chip.
        slowed: reason -> share of the stretch in which it slowed the GPU down, largest first; those that
            did.
    """

    device: int
    part: Part
    start_ns: int
    end_ns: int
    watts: float | None
    watts_by: Literal["counter", "readings"] | None
    sm_mhz: float | None
    celsius: float | None
    slowed: Mapping[Reason, float] = field(default_factory=dict)


@memoised
def gpu_states(trace: Trace) -> Sequence[StateOfGpu]:
    """The state of each GPU of the trial in each part of the run; empty where nothing was sampled."""
    return tuple(
        state_of(trace, device, part, *ends)
        for device in sampled_gpus(trace)
        for part, ends in _parts(trace).items()
    )


def state_of(trace: Trace, device: int, part: Part, start_ns: int, end_ns: int) -> StateOfGpu:
    """The state of a GPU in [start_ns, end_ns), ns on the axis of the trace."""
    readings = gpu_readings(trace).get(device, {})

    def mean(found: Readings | None) -> float | None:
        return None if found is None else found.mean(start_ns, end_ns)

    energy = counted_energy(trace, device, start_ns, end_ns)
    counted = None if energy is None else energy.watts
    watts = mean(readings.get("power")) if counted is None else counted
    by: Literal["counter", "readings"] = "readings" if counted is None else "counter"
    return StateOfGpu(
        device=device,
        part=part,
        start_ns=start_ns,
        end_ns=end_ns,
        watts=watts,
        watts_by=None if watts is None else by,
        sm_mhz=mean(readings.get("sm_clock")),
        celsius=mean(readings.get("temperature")),
        slowed=_slowed(readings.get("reasons"), start_ns, end_ns),
    )


def _parts(trace: Trace) -> Mapping[Part, tuple[int, int]]:
    """Begin and end of each part that the run has."""
    steps = run_steps(trace)
    if steps is None:
        return {}
    ends = steps.ends
    found: dict[Part, tuple[int, int]] = {}
    if steps.window.any():
        found["window"] = int(steps.starts[steps.window].min()), int(ends[steps.window].max())
    found["run"] = int(steps.starts.min()), int(ends.max())
    longest = max(counted_stretches(trace, "steady"), key=lambda one: one.length_ns, default=None)
    if longest is not None:
        found["steady"] = longest.start_ns, longest.end_ns
    return found


def _slowed(masks: Readings | None, start_ns: int, end_ns: int) -> Mapping[Reason, float]:
    if masks is None:
        return {}
    found: dict[Reason, float] = {}
    for reason in SLOWING:
        share = slowing(masks, (reason,)).mean(start_ns, end_ns)
        if share:
            found[reason] = share
    return dict(sorted(found.items(), key=lambda item: -item[1]))
