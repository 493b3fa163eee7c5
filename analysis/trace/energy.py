"""What a step costs in energy: ``step_energy`` of a trace, by the counters of the GPUs that the trial used.

The energy is that of whole boards, with what they use when idle; the host is not in it. It is of the
stretches of the run in which the program is steady, each long enough for the counter
(``energy_counter``), with the time between their steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, cast

import numpy as np

from profrun.analysis import counted_steps
from profrun.analysis.counted_steps import Phase
from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.energy_counter import (
    MEASURED_AGE_NS,
    UNKNOWN_AGE_NS,
    StretchEnergy,
    stretch_energy,
)
from profrun.analysis.trace.readings import gpu_readings
from profrun.analysis.trace.run_steps import RunSteps, run_steps
from profrun.analysis.trace.steadiness import steadiness
from profrun.analysis.trace.used_gpus import used_devices
from profrun.contract.units import counted, time_text
from profrun.contract.visible_devices import plain_uuid
from profrun.traces.memo import memoised
from profrun.traces.schema import DeviceRow

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


MARGIN = 1.05
"""So many times the steps that are needed are asked for: step times vary."""

TENTH_NS = 100_000_000
"""The length that is needed is told in tenths of a second, rounded up."""


@dataclass(frozen=True)
class CountedStretch:
    """Consecutive steps that count, of one phase or of neighbours; times are ns as in the trace."""

    start_ns: int
    end_ns: int
    steps: int

    @property
    def length_ns(self) -> int:
        """From the begin of its first step to the end of its last one."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True)
class StepEnergy:
    """Energy per step of the steps that count, of all GPUs that the trial used together.

    Attributes:
        joules: per step; None where it is not known, and ``why`` says the reason.
        resolution: uncertainty of ``joules`` by the periods of counter and readings, as a part of it.
        watts: mean power of all GPUs in these steps.
        steps: how many steps are counted. length_ns: from their begin to their end.
        gpus: how many GPUs.
        integral_j: the same energy from readings of the power at one moment. It only checks the counter, as
            power between the readings is not known; None without such readings.
        why: why there is no number, and what is needed.
    """

    joules: float | None
    resolution: float | None = None
    watts: float | None = None
    steps: int = 0
    length_ns: int = 0
    gpus: int = 0
    integral_j: float | None = None
    why: str | None = None


@memoised
def sampled_gpus(trace: Trace) -> Sequence[int]:
    """The devices that count for the trial, one for each GPU; none where no GPU was sampled.

    Several processes may see one GPU, each as a device of its own, of which one has the readings: that one
    counts. A GPU is told by its uuid, else by its number on its host, else each device counts as one.
    """
    readings = gpu_readings(trace)
    hosts = dict(trace.sql("SELECT process, host FROM processes").rows)

    def gpu(row: DeviceRow) -> object:
        number = row["host_ordinal"]
        alone = row["device"] if number is None else (hosts[row["process"]], number)
        return plain_uuid(row["uuid"]) or alone

    found = {gpu(row): row["device"] for row in reversed(used_devices(trace))}
    for row in cast("list[DeviceRow]", trace.sql("SELECT * FROM devices ORDER BY device DESC").dicts()):
        if gpu(row) in found and row["device"] in readings:
            found[gpu(row)] = row["device"]
    devices = sorted(found.values())
    return tuple(devices) if any(device in readings for device in devices) else ()


@memoised
def counted_stretches(trace: Trace, phase: Phase = "steady") -> Sequence[CountedStretch]:
    """The stretches of the run whose steps count, in their order.

    Args:
        phase: which steps count of a trial without a profiler. Under a profiler those at the steady level
            count, but not those that the profiler disturbs.
    """
    steps = run_steps(trace)
    if steps is None:
        return ()
    if trace.meta.get("collector") == "none":
        return stretches_of(steps, steps.numbers[counted_steps.counted(steps.durs, steps.window, phase)])
    found = steadiness(trace)
    return () if found is None else stretches_of(steps, found.steady_steps)


def stretches_of(steps: RunSteps, numbers: Ints) -> tuple[CountedStretch, ...]:
    """Stretches of consecutive steps that a profiler does not disturb.

    Args:
        numbers: of the steps that count, int64, shape (any number,).
    """
    places = np.flatnonzero(np.isin(steps.numbers, numbers) & ~steps.disturbed)
    parts = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1)
    ends = steps.ends
    return tuple(
        CountedStretch(int(steps.starts[part[0]]), int(ends[part].max()), len(part))
        for part in parts
        if len(part)
    )


@memoised
def step_energy(trace: Trace, phase: Phase = "steady") -> StepEnergy | None:
    """Energy per step of the steps that count; None where no GPU was sampled or no step was timed.

    Args:
        phase: see ``counted_stretches``.
    """
    devices = sampled_gpus(trace)
    if not devices or run_steps(trace) is None:
        return None
    stretches = counted_stretches(trace, phase)
    if not stretches:
        return StepEnergy(None, why="a profiler disturbed all steps")
    without = [device for device in devices if "energy" not in gpu_readings(trace).get(device, {})]
    if without:
        return StepEnergy(None, gpus=len(devices), why=_without_counter(len(without), len(devices)))
    measured = [(one, found) for one in stretches if (found := _whole(trace, devices, one)) is not None]
    if not measured:
        return StepEnergy(None, gpus=len(devices), why=_too_short(trace, devices, stretches))
    joules = sum(one.length_ns * _watts(found) for one, found in measured) / 1e9
    steps = sum(one.steps for one, _ in measured)
    length = sum(one.length_ns for one, _ in measured)
    doubt = sum(one.length_ns * _watts(found) * _resolution(found) for one, found in measured) / 1e9
    return StepEnergy(
        joules=joules / steps,
        resolution=doubt / joules if joules else None,
        watts=1e9 * joules / length,
        steps=steps,
        length_ns=length,
        gpus=len(devices),
        integral_j=_integral(trace, devices, [one for one, _ in measured]),
    )


def _whole(trace: Trace, devices: Sequence[int], stretch: CountedStretch) -> Sequence[StretchEnergy] | None:
    """The energy of each GPU in the stretch; None where one of them is not known."""
    found = [counted_energy(trace, device, stretch.start_ns, stretch.end_ns) for device in devices]
    known = [one for one in found if one is not None and one.watts is not None]
    return known if len(known) == len(devices) else None


def counted_energy(trace: Trace, device: int, start_ns: int, end_ns: int) -> StretchEnergy | None:
    """Energy of one GPU in [start_ns, end_ns), ns, by its counter; None where the counter was not read."""
    counter = gpu_readings(trace).get(device, {}).get("energy")
    if counter is None:
        return None
    (vendor,) = trace.sql(f"SELECT vendor FROM devices WHERE device = {device:d}").rows[0]
    age = MEASURED_AGE_NS if vendor == "nvidia" else UNKNOWN_AGE_NS
    return stretch_energy(counter, start_ns, end_ns, age_ns=age)


def _watts(found: Sequence[StretchEnergy]) -> float:
    return sum(one.watts or 0.0 for one in found)


def _resolution(found: Sequence[StretchEnergy]) -> float:
    return max(one.resolution or 0.0 for one in found)


def _too_short(trace: Trace, devices: Sequence[int], stretches: Sequence[CountedStretch]) -> str:
    """How long the longest stretch is for the counters, and how many steps would be enough."""
    longest = max(stretches, key=lambda one: one.length_ns)
    found = [counted_energy(trace, device, longest.start_ns, longest.end_ns) for device in devices]
    known = [one for one in found if one is not None]
    length, needed = min(one.length_ns for one in known), max(one.needed_ns for one in known)
    steady = f"{_seconds(longest.length_ns)} of steady steps"
    wanted = f"{time_text(ceil(needed / TENTH_NS) * TENTH_NS)} are needed"
    if longest.length_ns >= needed:
        return f"{steady}, of which the counter covers {_seconds(length)}; {wanted}"
    steps = ceil(MARGIN * needed * longest.steps / longest.length_ns)
    return f"{steady}; {wanted}: run at least {counted(steps, 'steady step')}"


def _without_counter(without: int, gpus: int) -> str:
    who = "no GPU has" if without == gpus else f"{without} of {gpus} GPUs lack{'s' * (without == 1)}"
    return f"{who} an energy counter that could be read"


def _seconds(ns: int) -> str:
    return time_text(float(f"{ns:.3g}"))


def _integral(trace: Trace, devices: Sequence[int], stretches: Sequence[CountedStretch]) -> float | None:
    """Energy per step from readings of the power at one moment; None where a GPU has none."""
    total = 0.0
    for device in devices:
        power = gpu_readings(trace).get(device, {}).get("power")
        for one in stretches:
            watts = None if power is None else power.mean(one.start_ns, one.end_ns)
            if watts is None:
                return None
            total += watts * one.length_ns / 1e9
    return total / sum(one.steps for one in stretches)
