"""What the sampler read, laid beside stretches of time: ``Sampled``, with factors of ``variance_shares``.

A GPU's values are up to 200 ms old when they are read, so of a few delays the one is taken with which the
clock goes best with the times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.step_time import Floats
from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.readings import Quantities, Readings, gpu_readings, host_readings
from profrun.analysis.trace.used_gpus import used_devices
from profrun.analysis.variance_shares import Factor, winsorised
from profrun.contract.sampling import REASONS, SLOWING, Quantity
from profrun.contract.units import time_text

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

LEAST_READINGS = 20
"""A quantity counts where it was read so often while the steps ran."""
REACH_NS = 300_000_000
"""Steps so much before the first or after the last reading still count with that reading."""
DELAYS_NS = tuple(range(0, 250_000_000, 50_000_000))
"""How late readings of a GPU may be: on an H200 values are up to 200 ms old."""
Cause = Literal[
    "clock", "CPU clock", "host", "GPU processes", "allocation", "position", "place in the step", "overlap",
    "temperature",
]  # fmt: skip
"""What times may go with, in the words of ``variation_text.WORDS``."""


@dataclass(frozen=True)
class Sampled:
    """What was read, laid beside stretches of time.

    Attributes:
        inside: which stretches were sampled, int64, shape (n,).
        factors: with a column of n numbers each.
        unread: quantities that were read too seldom.
        need: what is needed to tell more.
        delay: of readings of the GPU, ns.
    """

    inside: Ints
    factors: list[Factor]
    unread: tuple[str, ...]
    need: str
    delay: int | None

    @classmethod
    def of(cls, trace: Trace, starts: Ints, ends: Ints, times: Floats) -> Sampled:
        """The samples of stretches that took these times."""
        gpus, host = used_gpu_readings(trace), host_readings(trace)
        clocks = [one["sm_clock"] for one in gpus if "sm_clock" in one]
        first = clocks or list(host.values())
        inside = _sampled_stretches(first, starts, ends)
        span = int(ends[-1] - starts[0])
        need = (
            f"the sampler must read at least {LEAST_READINGS} times while they run, and they last "
            f"{time_text(span)}; more steps or a higher rate (job key `sample`) do that"
        )
        if not len(inside):
            return cls(inside, [], (), need, None)
        starts, ends, times = starts[inside], ends[inside], times[inside]
        unread: list[str] = []
        few = _few(int(starts[0]), int(ends[-1]))
        if clocks and all(map(few, clocks)):
            unread.append(f"the GPU: it was read fewer than {LEAST_READINGS} times while they ran")
            gpus = []
        delay = _delay(gpus, starts, ends, times)
        factors = _of_gpus(gpus, starts + delay, ends + delay) if gpus else []
        busy = host.get("cpu_busy")
        if busy is not None and few(busy):
            unread.append(f"the host: it was read fewer than {LEAST_READINGS} times while they ran")
        else:
            factors += _of_host(host, starts, ends)
        return cls(inside, factors, tuple(unread), need, delay if gpus else None)


def used_gpu_readings(trace: Trace) -> list[Quantities]:
    """Readings of each GPU that the trial used."""
    every = gpu_readings(trace)
    used = [every[row["device"]] for row in used_devices(trace) if row["device"] in every]
    return used or list(every.values())


def _few(start: int, end: int) -> Callable[[Readings], bool]:
    return lambda one: len(one.between(start - REACH_NS, end + REACH_NS).times) < LEAST_READINGS


def _sampled_stretches(readings: Sequence[Readings], starts: Ints, ends: Ints) -> Ints:
    """The stretches that lie where all of these were read."""
    if not readings or any(not len(one.times) for one in readings):
        return np.zeros(0, dtype=np.int64)
    first = max(int(one.times[0]) for one in readings) - REACH_NS
    last = min(int(one.times[-1]) for one in readings) + REACH_NS
    return np.flatnonzero((starts >= first) & (ends <= last)).astype(np.int64)


def _delay(gpus: Sequence[Quantities], starts: Ints, ends: Ints, times: Floats) -> int:
    """The delay with which the clock of the slowest GPU goes best with the times, ns."""
    logs = winsorised(np.log(times))
    best, found = 0.0, DELAYS_NS[len(DELAYS_NS) // 2]
    for delay in DELAYS_NS:
        clock = _slowness(gpus, "sm_clock", starts + delay, ends + delay)
        if clock is not None and np.ptp(clock) > 0 and np.ptp(logs) > 0:
            together = float(np.corrcoef(clock, logs)[0, 1])
            if together > best:
                best, found = together, delay
    return found


def _slowness(sources: Sequence[Quantities], clock: Quantity, starts: Ints, ends: Ints) -> Floats | None:
    """Minus the logarithm of a clock, of the slowest of several; None where it was not read."""
    read = [one[clock] for one in sources if clock in one]
    if not read:
        return None
    lowest = np.min([one.means(starts, ends) for one in read], axis=0)
    return np.asarray(-np.log(np.maximum(lowest, 1.0)))


def _of_gpus(gpus: Sequence[Quantities], starts: Ints, ends: Ints) -> list[Factor]:
    """Clocks, slowing reasons, processes and memory of the GPUs."""
    found = []
    for clock in ("sm_clock", "memory_clock"):
        column = _slowness(gpus, clock, starts, ends)
        if column is not None:
            found.append(Factor("SM clock" if clock == "sm_clock" else "memory clock", "clock", column))
    slowed = [slowing(one["reasons"]).means(starts, ends) for one in gpus if "reasons" in one]
    if slowed:
        found.append(Factor("slowed by power or heat", "clock", np.max(slowed, axis=0)))
    others = [one["processes"].means(starts, ends) for one in gpus if "processes" in one]
    if others:
        found.append(Factor("processes on the GPU", "GPU processes", np.max(others, axis=0)))
    moved = [_changes(one["memory_used"], starts, ends) for one in gpus if "memory_used" in one]
    if moved:
        found.append(Factor("memory of the GPU changes", "allocation", np.max(moved, axis=0)))
    return found


def slowing(reasons: Readings, names: Sequence[str] = SLOWING) -> Readings:
    """1 where one of these reasons slows the GPU down, else 0."""
    mask = sum(REASONS[name] for name in SLOWING if name in names)
    active = (reasons.values.astype(np.int64) & mask) != 0
    return Readings(reasons.times, active.astype(np.float64))


def _changes(used: Readings, starts: Ints, ends: Ints) -> Floats:
    """Part of each stretch that lies between two readings with different memory in use."""
    moved = np.append(np.diff(used.values) != 0, [False])
    return Readings(used.times, moved.astype(np.float64)).means(starts, ends)


def _of_host(host: Quantities, starts: Ints, ends: Ints) -> list[Factor]:
    """The clock of the CPU, and cores that others had."""
    found = []
    clock = _slowness([host], "cpu_clock", starts, ends)
    if clock is not None:
        found.append(Factor("CPU clock", "CPU clock", clock))
    taken = others_cores(host)
    if taken is not None:
        found.append(Factor("cores that others have", "host", taken.means(starts, ends)))
    return found


def others_cores(host: Quantities) -> Readings | None:
    """Cores that other programs, the hypervisor or the container's quota took, at the time they were taken.

    A reading is of the time since the one before, so its time here is that of the one before.
    """
    busy, own = host.get("cpu_busy"), host.get("cpu_own")
    if busy is None or own is None or len(busy.times) < 2:
        return None

    def at(one: Readings) -> NDArray[np.float64]:
        place = np.clip(np.searchsorted(one.times, busy.times), 0, len(one.times) - 1)
        return one.values[place]

    taken = np.maximum(busy.values - at(own), 0)
    for name in ("cpu_stolen", "cpu_quota_wait"):
        more: Readings | None = host.get(name)
        if more is not None and len(more.times):
            taken = taken + at(more)
    return Readings(busy.times[:-1], taken[1:])
