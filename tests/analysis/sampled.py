"""Synthetic runs with samples: steps whose times follow a clock, a neighbour and noise, as a sampler sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from profrun.analysis.step_time import Floats
from profrun.contract.sampling import MEANINGS, REASONS, Quantity, Reason

MS = 1_000_000
PERIOD = 100 * MS
Side = dict[str, list[dict[str, Any]]]


def mask(*reasons: Reason) -> float:
    """The value of ``reasons`` with these."""
    return float(sum(REASONS[one] for one in reasons))


def counters(
    gpu: Mapping[Quantity, Sequence[float]], host: Mapping[Quantity, Sequence[float]], *, at: int = 0
) -> Side:
    """Tracks and counters of a sampler that reads device 0 and the host every 100 ms from ``at`` on."""
    tracks, found = [], []
    for track, device, values in ((900, 0, gpu), (901, None, host)):
        tracks.append({"track": track, "kind": "counter", "process": 0, "device": device, "name": "samples"})
        for quantity, series in values.items():
            meaning = MEANINGS[quantity]
            found += [
                {"track": track, "ts_ns": at + place * PERIOD, "name": meaning.name, "value": float(value),
                 "unit": meaning.unit}
                for place, value in enumerate(series)
            ]  # fmt: skip
    return {"tracks": tracks, "counters": found}


def step_rows(durs: Sequence[int] | Floats, *, window: Sequence[int] = (), at: int = 0) -> Side:
    """The table ``step_times`` of steps that follow each other."""
    starts = at + np.concatenate([[0], np.cumsum(np.asarray(durs, dtype=np.int64))])
    return {
        "step_times": [
            {"process": 0, "step": place, "ts_ns": int(starts[place]), "dur_ns": int(dur),
             "host_ns": int(dur), "clock": "wall", "part": "active" if place in window else "wait"}
            for place, dur in enumerate(durs)
        ]
    }  # fmt: skip


@dataclass
class World:
    """A run of ``seconds``; every series has a value for each 100 ms, as the GPU and the host really are.

    Attributes:
        clock: MHz. others: cores of other programs. own: cores of the program. reasons: masks.
        base: a step at 1000 MHz without neighbours, ns. per_core: longer by this part per core of others.
        noise: standard deviation of the logarithm.
        delay: how late readings of the GPU are, in periods.
    """

    seconds: float = 20.0
    clock: Floats | None = None
    others: Floats | None = None
    own: float = 1.0
    reasons: Floats | None = None
    base: int = 20 * MS
    per_core: float = 0.0
    noise: float = 0.005
    delay: int = 0
    window: Sequence[int] = ()
    more: Mapping[Quantity, Sequence[float]] = field(default_factory=dict)
    seed: int = 0

    def side(self) -> Side:
        """Tables of the trace."""
        rng = np.random.default_rng(self.seed)
        count = int(self.seconds * 10) + 1
        clock = np.full(count, 1000.0) if self.clock is None else self.clock
        others = np.zeros(count) if self.others is None else self.others
        now, durs = 0, []
        while now < self.seconds * 1e9:
            place = min(int(now // PERIOD), count - 1)
            factor = 1000 / clock[place] * (1 + self.per_core * others[place])
            durs.append(int(self.base * factor * np.exp(self.noise * rng.normal())))
            now += durs[-1]
        seen = np.concatenate([np.full(self.delay, clock[0]), clock])[:count]
        gpu: dict[Quantity, Sequence[float]] = {"sm_clock": list(seen), **self.more}
        if self.reasons is not None:
            gpu["reasons"] = list(
                np.concatenate([np.full(self.delay, self.reasons[0]), self.reasons])[:count]
            )
        busy = np.concatenate([[0.0], others + self.own])[:count]  # of the time since the reading before
        host: dict[Quantity, Sequence[float]] = {"cpu_busy": list(busy), "cpu_own": [self.own] * count}
        return {**counters(gpu, host), **step_rows(durs, window=self.window)}


def wandering(count: int, low: float, high: float, seed: int = 0) -> Floats:
    """A slow random series between two values, float64, shape (count,)."""
    steps = np.cumsum(np.random.default_rng(seed).normal(size=count))
    return np.asarray(low + (steps - steps.min()) / np.ptp(steps) * (high - low))
