"""Runs with samples for the rules about clocks, windows and neighbours: some have it, others nearly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from profrun.analysis.step_time import Floats
from tests.analysis.kit import Row, step
from tests.analysis.sampled import MS, World, counters, mask, wandering

COUNT = 201
LATE = np.arange(COUNT) >= 20
STEPS: list[Row] = [step(place, place * 20 * MS, 20 * MS) for place in range(5)]
"""The steps of the window."""
CAPPED = np.where(LATE, 1580.0, 1980.0)
HALF_BUSY = np.where(np.arange(COUNT) // 10 % 2, 1.5, 0.0)


def options(world: World, collector: str = "none") -> Mapping[str, Any]:
    """What ``memory_trace`` takes to make a trace of a run."""
    return {"side": world.side(), "meta": {"collector": collector}}


def reasons(*names: Any) -> Floats:
    """These reasons from the third second on, idling before."""
    return np.where(LATE, mask(*names), mask("idle"))


POWER_CAPPED = World(
    clock=CAPPED, reasons=reasons("power cap"), delay=1, more={"power": [694.0] * COUNT}, window=range(5)
)
"""As an H200 under GEMMs: the cap comes a little later, the clock falls by 20 % and stays."""
HOT = World(clock=CAPPED, reasons=reasons("thermal", "hardware slowdown"))
BRAKED = World(clock=CAPPED, reasons=reasons("power brake"))
SET_CLOCKS = World(clock=CAPPED, reasons=reasons("set clocks"))
IDLE_CLOCK = World(clock=np.where(LATE, 1980.0, 345.0), reasons=reasons())
NO_LOSS = World(clock=np.full(COUNT, 1980.0), reasons=reasons("power cap", "thermal"))
"""The reason is stated, and the clock is the highest all the same."""
BRIEF = World(
    clock=np.where(np.arange(COUNT) % 20 == 1, 1580.0, 1980.0),
    reasons=np.where(np.arange(COUNT) % 20 == 1, mask("power cap", "thermal"), 0.0),
)
"""A reason in 5 % of the time."""


def before_load() -> Mapping[str, Any]:
    """The sampler read only before the first step: two seconds, with the reason."""
    side = World().side() | counters(
        {"sm_clock": [1500.0] * 20, "reasons": [mask("power cap", "thermal")] * 20}, {}
    )
    late = 10**10
    return {
        "side": side | {"step_times": [one | {"ts_ns": one["ts_ns"] + late} for one in side["step_times"]]},
        "meta": {"collector": "none"},
    }


CLOCKED = World(clock=wandering(COUNT, 1350, 1635), reasons=np.full(COUNT, mask("power cap")))
"""The clock wanders under the cap, and the steps with it."""
OTHER = wandering(COUNT, 1350, 1635, seed=9)
UNRELATED = World(
    clock=wandering(COUNT, 1350, 1635), more={"sm_clock": list(wandering(COUNT, 1350, 1635, 9))}
)
TIGHT = World(clock=wandering(COUNT, 1575, 1580), noise=0.001)
"""The clock explains everything, of a scatter that nobody asks about."""
NEIGHBOUR = World(others=HALF_BUSY, per_core=0.1)
HARMLESS = World(others=HALF_BUSY, per_core=0.0, noise=0.02)
"""Other work comes and goes, and the steps do not care."""
TRIFLE = World(others=HALF_BUSY / 10, per_core=0.5)
"""Steps go with a tenth of a core: too little to be the reason."""
SHARED_GPU = World(
    clock=np.where(HALF_BUSY > 0, 900.0, 1000.0),
    more={"processes": list(np.where(HALF_BUSY > 0, 2.0, 1.0)), "sm_clock": [1980.0] * COUNT},
)
ALWAYS_TWO = World(noise=0.02, more={"processes": [2.0] * COUNT})
"""Another process is on the GPU all the time: nothing tells whether it matters."""
EARLY_WINDOW = POWER_CAPPED
STEADY_WINDOW = World(clock=CAPPED, reasons=reasons("power cap"), window=range(300, 305))
ONE_PHASE = World(window=range(5))
