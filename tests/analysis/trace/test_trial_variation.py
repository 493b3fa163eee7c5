"""Why trials vary: the clock of each, its neighbours, its heat."""

from __future__ import annotations

import numpy as np
import pytest

from profrun.analysis.trace.trial_variation import TrialFacts, trial_facts, trial_variation
from tests.analysis.kit import memory_trace
from tests.analysis.sampled import MS, World

CLOCKS = (1980.0, 1500, 1700, 1850, 1600, 1900, 1550, 1750)


def trials(count: int, **more: float) -> list[TrialFacts]:
    noise = np.exp(0.003 * np.random.default_rng(0).normal(size=count))
    return [
        TrialFacts(2e10 / clock * factor, clock, others_cores=place % 3, **more)
        for place, (clock, factor) in enumerate(zip(CLOCKS[:count], noise, strict=True))
    ]


def test_trials_that_follow_the_clock() -> None:
    found = trial_variation(trials(8, temperature=60))
    assert found.shares is not None
    clock, host, heat = (found.shares.of(name) for name in ("clock", "host", "temperature"))
    assert clock is not None
    assert clock.share > 0.8
    assert host is not None
    assert host.low == 0
    assert heat is not None
    assert heat.share == 0


def test_of_five_trials_two_causes_are_looked_at() -> None:
    found = trial_variation(trials(5, temperature=60))
    assert found.shares is not None
    assert found.shares.of("temperature") is None
    assert found.unread == ("temperature: 6 trials are needed to look at it, too",)


def test_four_trials_are_too_few_and_unsampled_ones_say_nothing() -> None:
    assert trial_variation(trials(4)).refused == "at least 5 trials are needed, there are 4"
    bare = [TrialFacts(1e6 + place) for place in range(6)]
    assert trial_variation(bare).refused == "the sampler must have read something that differs"


def test_the_facts_of_a_trial_are_of_its_steady_steps() -> None:
    count = 201
    clock = np.where(np.arange(count) < 30, 1980.0, 1500.0)
    world = World(clock=clock, others=np.full(count, 2.0), more={"temperature": [60.0] * count})
    found = trial_facts(memory_trace([], meta={"collector": "none"}, side=world.side()))
    assert found is not None
    assert found.median_ns == pytest.approx(20 * MS * 1000 / 1500, rel=0.01)
    assert (found.clock_mhz, found.temperature, found.others_cores) == pytest.approx((1500, 60, 2), rel=0.01)
