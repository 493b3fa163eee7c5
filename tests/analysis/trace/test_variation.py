"""Why steps vary: planted causes are found with their share, no cause has none, too little is refused."""

from __future__ import annotations

import numpy as np
import pytest

from profrun.analysis.trace.variation import Variation, step_variation
from tests.analysis.kit import memory_trace
from tests.analysis.sampled import MS, World, mask, wandering

COUNT = 201
SLOWER = wandering(COUNT, 900, 1000)
BUSY = wandering(COUNT, 0, 2, seed=3)


def ask(world: World) -> Variation:
    found = step_variation(memory_trace([], meta={"collector": "none"}, side=world.side()), "run")
    assert found is not None
    return found


def shares(found: Variation) -> dict[str, float]:
    assert found.shares is not None, found.refused
    every = (*found.shares.causes, found.shares.rest)
    assert sum(one.share for one in every) == pytest.approx(1)
    assert all(one.low <= one.share <= one.high for one in every)
    return {one.name: round(one.share, 1) for one in every if one.share > 0.05}


@pytest.mark.parametrize("delay", [0, 1, 2])
def test_the_clock_is_found_however_late_its_readings_are(delay: int) -> None:
    found = ask(World(clock=SLOWER, delay=delay))
    assert shares(found) == {"clock": 1.0}
    assert found.delay_ns == pytest.approx(delay * 100 * MS, abs=50 * MS)
    assert found.shares is not None
    assert found.shares.slopes["SM clock"] == pytest.approx(1, abs=0.05)  # times follow 1 / clock


def test_other_work_on_the_host_is_found() -> None:
    assert shares(ask(World(others=BUSY, per_core=0.1))) == {"host": 1.0}


def test_two_causes_share_what_they_bring() -> None:
    found = shares(ask(World(clock=SLOWER, others=BUSY, per_core=0.05, noise=0.02)))
    assert found["clock"] > 0.2
    assert found["host"] > 0.2
    assert 0.05 < found["rest"] < 0.6


def test_noise_has_no_cause() -> None:
    found = ask(World(clock=np.full(COUNT, 1000.0) + np.arange(COUNT) % 2, others=BUSY, noise=0.03))
    assert found.shares is not None
    assert all(one.low == 0 and one.share < 0.03 for one in found.shares.causes)
    assert found.shares.rest.low > 0.9


def test_a_clock_that_cannot_slow_the_steps_explains_nothing() -> None:
    """The steps get shorter while the clock falls."""
    found = ask(World(clock=SLOWER, more={"sm_clock": list(2000 - SLOWER)}))
    clock = found.shares and found.shares.of("clock")
    assert clock
    assert clock.high < 0.2


def test_a_power_cap_after_two_seconds_is_the_clock_and_its_reason() -> None:
    capped = np.arange(COUNT) >= 20
    world = World(
        clock=np.where(capped, 1580.0, 1980.0),
        reasons=np.where(capped, mask("power cap"), mask("idle")),
        delay=1,
    )
    found = ask(world)
    assert shares(found) == {"clock": 1.0}
    assert found.shares is not None
    assert {one.name: round(one.share, 1) for one in found.shares.factors if one.share > 0.05} == {
        "SM clock": 0.5,
        "slowed by power or heat": 0.5,
    }


def test_phases_that_nothing_explains_are_the_time_in_the_run_alone() -> None:
    hidden = np.where(np.arange(COUNT) < 60, 1000.0, 900.0)
    found = ask(World(clock=hidden, more={"sm_clock": list(1000 + np.arange(COUNT) % 3)}))
    assert shares(found)["position"] == 1.0


def test_a_quantity_that_never_changed_has_no_share() -> None:
    found = ask(World(noise=0.02))
    assert found.shares is not None
    clock = found.shares.of("clock")
    assert clock is not None
    assert (clock.share, clock.high) == (0, 0)


@pytest.mark.parametrize(
    ("world", "words"),
    [
        (World(seconds=0.9), "at least 50 steps are needed, there are 45"),
        (World(seconds=1.5), "must read at least 20 times while they run, and they last 1.5"),
    ],
)
def test_too_little_is_refused_with_what_is_needed(world: World, words: str) -> None:
    found = ask(world)
    assert found.shares is None
    assert words in found.refused


def test_steps_of_the_profilers_window_are_left_out() -> None:
    trace = memory_trace([], meta={"collector": "torch"}, side=World(window=range(100, 200)).side())
    found = step_variation(trace, "run")
    assert found is not None
    assert found.count == 901


def test_without_samples_there_is_nothing_to_say() -> None:
    side = World().side()
    only = {"step_times": side["step_times"]}
    assert step_variation(memory_trace([], meta={"collector": "none"}, side=only)) is None
