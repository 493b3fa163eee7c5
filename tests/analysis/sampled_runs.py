"""Runs whose GPUs were sampled, with energy counters of known power."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from profrun.analysis.trace.readings import Floats, Readings
from profrun.contract.sampling import MEANINGS, Quantity
from profrun.traces.trace import Trace
from tests.tracekit import ThinSlice, make_trace

MS = 1_000_000
AGE_MS = 100.0
"""How old a value is when the counter shows it first."""
Energy = Callable[[Floats], Floats]
"""Energy in J at moments in ms."""


def piecewise(*parts: tuple[float, float]) -> Energy:
    """Energy of a power that changes in steps: (from ms, watts) of each part; 1000 J at the first one."""
    times = np.array([at for at, _ in parts])
    watts = np.array([power for _, power in parts])
    at_begin = 1000 + np.concatenate(([0.0], np.cumsum(np.diff(times) * watts[:-1] / 1e3)))

    def energy(moments: Floats) -> Floats:
        place = np.maximum(np.searchsorted(times, moments, side="right") - 1, 0)
        return np.asarray(at_begin[place] + (moments - times[place]) * watts[place] / 1e3)

    return energy


def read_counter(
    energy: Energy,
    times: Floats,
    *,
    update_ms: float = 100.0,
    phase_ms: float = 0.0,
    age_ms: float = AGE_MS,
) -> Readings:
    """What a counter shows at these times (ms): that of its last update, whose value is ``age_ms`` older."""
    updates = np.floor((times - phase_ms) / update_ms) * update_ms + phase_ms
    return Readings((times * MS).astype(np.int64), energy(updates - age_ms))


def sampled_run(
    out: Path,
    gpus: Mapping[int, Mapping[Quantity, Readings]],
    *,
    steps: int = 100,
    step_ms: float | Sequence[float] = 100.0,
    window: tuple[int, int] = (5, 10),
    uuids: Sequence[str | None] = ("0",),
    slices: Sequence[ThinSlice] = (),
    collector: str = "none",
    vendor: str = "nvidia",
) -> Trace:
    """A run whose steps follow each other from 0 on, and the readings of its GPUs.

    Args:
        steps, step_ms: ``step_ms`` is the time of each of so many steps, or has that of every step.
        gpus: device id -> its readings.
        window: first step that is recorded, and the first after it; the step before is the warm-up.
        uuids: of each device of the trace.
    """
    tracks: list[dict[str, Any]] = []
    counters: list[dict[str, Any]] = []
    for device, found in gpus.items():
        track = 100 + device
        tracks.append({"track": track, "kind": "counter", "process": 0, "device": device, "name": "samples"})
        for quantity, readings in found.items():
            meaning = MEANINGS[quantity]
            counters += [
                {"track": track, "ts_ns": int(at), "name": meaning.name, "value": value, "unit": meaning.unit}
                for at, value in zip(readings.times, readings.values.tolist(), strict=True)
            ]
    low, high = window
    durs = np.full(steps, step_ms) if isinstance(step_ms, float) else np.asarray(step_ms)
    begins = np.cumsum(durs) - durs
    times = [
        {
            "process": 0,
            "step": step,
            "ts_ns": round(begins[step] * MS),
            "dur_ns": round(durs[step] * MS),
            "clock": "wall",
            "part": "active" if low <= step < high else "warmup" if step == low - 1 else "outside",
        }
        for step in range(len(durs))
    ]
    devices = [
        {"device": number, "process": 0, "vendor": vendor, "ordinal": number, "name": "H200", "uuid": uuid}
        for number, uuid in enumerate(uuids)
    ]
    return make_trace(
        out,
        slices,
        meta={"collector": collector},
        device={"uuid": uuids[0], "vendor": vendor},
        side={"devices": devices[1:], "tracks": tracks, "step_times": times, "counters": counters},
    )
