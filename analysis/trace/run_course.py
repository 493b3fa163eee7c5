"""The course of a whole run: its step times, and what was read of its GPU or its host beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.trace.readings import Readings, gpu_readings, host_readings
from profrun.analysis.trace.run_steps import RunSteps, run_steps
from profrun.analysis.trace.used_gpus import used_devices
from profrun.contract.sampling import MEANINGS, SLOWING, Quantity, reasons_in
from profrun.traces.labels import labels

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

FEWEST = 8
"""A run of fewer steps has no course that a chart could show better than a table."""

_OF_GPU: tuple[Quantity, ...] = ("sm_clock", "power", "temperature")
_OF_HOST: tuple[Quantity, ...] = ("cpu_busy", "cpu_clock")


@dataclass(frozen=True)
class CourseLine:
    """One quantity over the run.

    Attributes:
        name: in words, with the GPU that it belongs to. unit: of the values.
        readings: those within the run, and the last before it.
    """

    name: str
    unit: str
    readings: Readings


@dataclass(frozen=True)
class Slowed:
    """A stretch of the run in which the GPU's clock was lowered; ``why`` in words, times as in the trace."""

    start_ns: int
    end_ns: int
    why: str


@dataclass(frozen=True)
class RunCourse:
    """The course of a run.

    Attributes:
        steps: at least ``FEWEST``.
        lines: clock, power and temperature of the first GPU that the program used; of a program without a
            GPU, the load and the clock of its host's cores. Empty where nothing was sampled.
        slowed: when and why the GPU's clock was lowered; empty where it never was, or nothing tells.
    """

    steps: RunSteps
    lines: tuple[CourseLine, ...] = ()
    slowed: tuple[Slowed, ...] = ()


def run_course(trace: Trace) -> RunCourse | None:
    """The course of the run that a trace is of; None without steps, or with a few only."""
    steps = run_steps(trace)
    if steps is None or len(steps) < FEWEST:
        return None
    start, end = int(steps.starts[0]), int(steps.ends.max())
    sampled = gpu_readings(trace)
    device = next((row["device"] for row in used_devices(trace) if row["device"] in sampled), None)
    if device is None:
        held, wanted, owner = host_readings(trace), _OF_HOST, ""
    else:
        held, wanted, owner = sampled[device], _OF_GPU, f"{labels(trace).gpus[device]}: "
    lines = [
        CourseLine(owner + MEANINGS[quantity].name, MEANINGS[quantity].unit, inside)
        for quantity in wanted
        if quantity in held and len((inside := _inside(held[quantity], start, end)).times)
    ]
    slowed = _slowed(held["reasons"], start, end) if "reasons" in held else []
    return RunCourse(steps, tuple(lines), tuple(slowed))


def _inside(readings: Readings, start: int, end: int) -> Readings:
    """The readings in [start, end], and the last before."""
    low = int(np.searchsorted(readings.times, start, side="right")) - 1
    high = int(np.searchsorted(readings.times, end, side="right"))
    return Readings(readings.times[max(low, 0) : high], readings.values[max(low, 0) : high])


def _slowed(reasons: Readings, start: int, end: int) -> list[Slowed]:
    """Stretches with the same slowing reasons; each reading holds until the next."""
    inside = _inside(reasons, start, end)
    begins = np.maximum(inside.times, start).tolist()
    found: list[Slowed] = []
    for begin, stop, mask in zip(begins, [*begins[1:], end], inside.values, strict=True):
        why = ", ".join(reason for reason in reasons_in(int(mask)) if reason in SLOWING)
        if why and found and found[-1].end_ns == begin and found[-1].why == why:
            found[-1] = Slowed(found[-1].start_ns, stop, why)
        elif why and stop > begin:
            found.append(Slowed(begin, stop, why))
    return found
