"""Why a phase of a run takes longer than its neighbour, as far as samples tell: ``causes``.

A GPU's values are up to ``LATE_NS`` old when they are read, and at least ``YOUNG_NS`` (measured on an H200).
The readings of a phase are therefore those from ``LATE_NS`` after its begin to ``YOUNG_NS`` after its end.
For a phase that is too short to have one, the last reading is used that cannot be of the next phase, if it
was taken close to the phase. What the host's counters tell at a reading is about the time since the reading
before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from profrun.analysis.trace.readings import LATE_NS, Floats, Quantities, Readings, gpu_readings, host_readings
from profrun.analysis.trace.used_gpus import used_devices
from profrun.contract.sampling import REASONS, SLOWING, Quantity, Reason

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

YOUNG_NS = 100_000_000
NEAR_NS = 300_000_000
"""The last reading before the end of a short phase counts where it is at most this much before its begin."""

CauseCode = Literal[
    "power-cap",
    "thermal",
    "hardware-slowdown",
    "power-brake",
    "sm-clock",
    "boost-after-idle",
    "warm-up",
    "compilation",
    "allocator",
    "other-on-device",
    "other-on-host",
    "stolen",
    "cpu-quota",
    "cpu-clock",
]
"""Stable names of causes."""

STATES: Mapping[str, str] = {
    "power-cap": "power cap",
    "thermal": "a hot GPU",
    "hardware-slowdown": "hardware slowdown",
    "power-brake": "power brake",
    "sm-clock": "a lower SM clock",
    "boost-after-idle": "a higher clock after idling",
    "warm-up": "warm up",
    "compilation": "compilation",
    "allocator": "growing GPU memory",
    "other-on-device": "another process on the GPU",
    "other-on-host": "other work on the host",
    "stolen": "CPU cores taken by the hypervisor",
    "cpu-quota": "a used-up CPU quota",
    "cpu-clock": "a lower CPU clock",
}
"""``CauseCode`` -> a name of the state of the machine in which a trial ran."""

_REASON_CODES: dict[Reason, tuple[CauseCode, str]] = {
    "power cap": ("power-cap", "the power cap"),
    "thermal": ("thermal", "the GPU's temperature"),
    "hardware slowdown": ("hardware-slowdown", "the GPU's hardware slowdown"),
    "power brake": ("power-brake", "the power brake"),
}

SHARE = 0.5
"""A reason counts where at least this share of a phase's readings has it."""
MORE = 0.3
"""And where its share is by this much higher than in the neighbouring phase."""
CLOCK = 0.01
"""The SM clock counts as lower where it is lower by at least this share."""
CPU_CLOCK = 0.05
"""The CPU clock counts as lower where it is lower by at least this share."""
CORES = 0.5
"""Other programs count where they take at least this many cores more."""
FEW_CORES = 0.1
"""Cores that are stolen or wait for a quota count from this increase on."""
GROWTH = 64e6
"""Memory counts as grown where it grew by at least this many bytes and by at least 1 %."""


@dataclass(frozen=True)
class Cause:
    """One thing that samples tell about why a phase takes as long as it does.

    Attributes:
        code: stable name. text: a clause without capital letter and full stop.
        share: of the phase's readings with the reason, 0 to 1; None for causes without a reason.
        before: the value in the neighbouring phase (the one before; of the first phase the one after).
        now: the value in this phase. unit: of both.
        device: id of the GPU; None for the host.
    """

    code: CauseCode
    text: str
    share: float | None = None
    before: float | None = None
    now: float | None = None
    unit: str | None = None
    device: int | None = None


@dataclass(frozen=True)
class Stretch:
    """A phase as far as its causes are concerned.

    Attributes:
        start_ns, end_ns: on the axis of the trace. median_ns: of its steps.
        first: whether it is the first phase (after warm-up). warm_up: whether it is warm-up.
    """

    start_ns: int
    end_ns: int
    median_ns: float
    first: bool = False
    warm_up: bool = False


def causes(trace: Trace, phase: Stretch, other: Stretch | None) -> tuple[Cause, ...]:
    """What samples tell about a phase beside a neighbour; the surest first, empty where they tell nothing.

    Arguments:
        other: the phase before it that is no warm-up; for the first phase the one after it.
    """
    found: list[Cause] = []
    if phase.warm_up:
        found.append(Cause("warm-up", "the first steps of the program take longer"))
    if other is None:
        return tuple(found)
    for device, quantities in _used(trace):
        found += _of_gpu(device, quantities, phase, other)
    found += _of_host(host_readings(trace), phase, other)
    return tuple({cause.code: cause for cause in reversed(found)}.values())[::-1]


def _used(trace: Trace) -> list[tuple[int, Quantities]]:
    """The sampled GPUs that the program used, the slowest clock first: the others wait for it."""
    sampled = gpu_readings(trace)
    used = [int(row["device"]) for row in used_devices(trace) if row["device"] in sampled]

    def clock(device: int) -> float:
        found = sampled[device].get("sm_clock")
        return float(found.values.mean()) if found else float("inf")

    return [(device, sampled[device]) for device in sorted(used, key=clock)]


def _of_gpu(device: int, sampled: Quantities, phase: Stretch, other: Stretch) -> Iterator[Cause]:
    now, before = _mean(sampled, "sm_clock", phase), _mean(sampled, "sm_clock", other)
    lower = now is not None and before is not None and now < before * (1 - CLOCK)
    higher = now is not None and before is not None and before < now * (1 - CLOCK)
    shares = {reason: _shares(sampled, reason, phase, other) for reason in SLOWING}
    if phase.median_ns > other.median_ns and not phase.warm_up:
        told = False
        for reason, (share, share_before) in shares.items():
            if share >= SHARE and share - share_before >= MORE and (lower or now is None or before is None):
                told = True
                code, words = _REASON_CODES[reason]
                change = (
                    f"lowered the SM clock from {before:.0f} to {now:.0f} MHz" if lower else "slowed the GPU"
                )
                yield Cause(code, f"{words} {change}", share, before, now, "MHz", device)
        capped = max(shares, key=lambda reason: shares[reason][0])
        if lower and not told and shares[capped][0] >= SHARE:  # in both phases, at other clocks
            code, words = _REASON_CODES[capped]
            text = f"{words} lowered the SM clock further, from {before:.0f} to {now:.0f} MHz"
            yield Cause(code, text, shares[capped][0], before, now, "MHz", device)
        elif lower and not told:
            text = f"the SM clock fell from {before:.0f} to {now:.0f} MHz, and the GPU states no reason"
            yield Cause("sm-clock", text, None, before, now, "MHz", device)
        yield from _others_on_gpu(device, sampled, phase, other)
    elif phase.first and higher and not any(share >= SHARE for share, _ in shares.values()):
        text = f"the SM clock was {now:.0f} MHz at the begin, and {before:.0f} MHz afterwards"
        yield Cause("boost-after-idle", text, None, before, now, "MHz", device)


def _others_on_gpu(device: int, sampled: Quantities, phase: Stretch, other: Stretch) -> Iterator[Cause]:
    now, before = _mean(sampled, "processes", phase), _mean(sampled, "processes", other)
    if now is not None and before is not None and now - before >= SHARE:
        text = f"{now:.1f} processes computed on the GPU instead of {before:.1f}"
        yield Cause("other-on-device", text, None, before, now, "1", device)
    memory = _own(sampled.get("memory_used"), phase)
    if len(memory) >= 2 and memory[-1] - memory[0] >= max(GROWTH, 0.01 * memory[0]):
        ends = float(memory[0]), float(memory[-1])
        text = f"GPU memory grew from {ends[0] / 1e9:.1f} to {ends[1] / 1e9:.1f} GB in it"
        yield Cause("allocator", text, None, *ends, "byte", device)


def _of_host(sampled: Quantities, phase: Stretch, other: Stretch) -> Iterator[Cause]:
    if phase.median_ns <= other.median_ns:
        return
    values = {name: (_host_mean(sampled, name, phase), _host_mean(sampled, name, other)) for name in sampled}
    own = values.get("cpu_own", (None, None))
    if phase.warm_up or phase.first:
        now, before = own
        if now is not None and before is not None and now - before >= CORES:
            text = (
                f"the program kept {now:.1f} CPU cores busy and {before:.1f} afterwards, as compilation does"
            )
            yield Cause("compilation", text, None, before, now, "cores")
    busy = values.get("cpu_busy", (None, None))
    if None not in (*own, *busy):
        now, before = (
            max(b - o, 0.0) for b, o in zip(busy, own, strict=True) if b is not None and o is not None
        )
        if now - before >= CORES:
            text = f"other programs kept {now:.1f} CPU cores of the host busy instead of {before:.1f}"
            yield Cause("other-on-host", text, None, before, now, "cores")
    yield from _waits(values)


def _waits(values: dict[Quantity, tuple[float | None, float | None]]) -> Iterator[Cause]:
    """What keeps the program's CPU cores from it, or slows them."""
    rising: tuple[tuple[Quantity, CauseCode, str], ...] = (
        ("cpu_stolen", "stolen", "the hypervisor gave {now:.1f} CPU cores to others instead of {before:.1f}"),
        (
            "cpu_quota_wait",
            "cpu-quota",
            "{now:.1f} CPU cores waited for the container's quota instead of {before:.1f}",
        ),
    )
    for name, code, text in rising:
        now, before = values.get(name, (None, None))
        if now is not None and before is not None and now - before >= FEW_CORES:
            yield Cause(code, text.format(now=now, before=before), None, before, now, "cores")
    now, before = values.get("cpu_clock", (None, None))
    if now is not None and before is not None and now < before * (1 - CPU_CLOCK):
        text = f"the CPU clock fell from {before:.0f} to {now:.0f} MHz"
        yield Cause("cpu-clock", text, None, before, now, "MHz")


def _own(found: Readings | None, phase: Stretch) -> Floats:
    """The values of a GPU that are about the phase, shape (readings,); empty where no reading tells."""
    if found is None:
        return np.zeros(0)
    own = found.between(phase.start_ns + LATE_NS, phase.end_ns + YOUNG_NS)
    if len(own.values):
        return own.values
    place = int(np.searchsorted(found.times, phase.end_ns + YOUNG_NS)) - 1
    near = place >= 0 and found.times[place] >= phase.start_ns - NEAR_NS
    return found.values[place : place + 1] if near else np.zeros(0)


def _mean(sampled: Quantities, name: Quantity, phase: Stretch) -> float | None:
    own = _own(sampled.get(name), phase)
    return float(own.mean()) if len(own) else None


def _shares(sampled: Quantities, reason: Reason, phase: Stretch, other: Stretch) -> tuple[float, float]:
    """Shares of the readings of both phases that state the reason; 0 where none was read."""
    masks = (_own(sampled.get("reasons"), one).astype(np.int64) for one in (phase, other))
    now, before = (float(((mask & REASONS[reason]) > 0).mean()) if len(mask) else 0.0 for mask in masks)
    return now, before


def _host_mean(sampled: Quantities, name: Quantity, phase: Stretch) -> float | None:
    """Mean of the host's values that are about the phase alone; None where there are none."""
    found = sampled[name]
    if len(found.times) < 2:
        return None
    period = int(np.median(np.diff(found.times)))
    own = found.between(phase.start_ns + period, phase.end_ns + 1)
    return float(own.values.mean()) if len(own.values) else None
