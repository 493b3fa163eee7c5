"""Clocks that power or heat lowers: who says so, with what share and gain, and what is no reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from profrun.analysis.rules.diagnose import RuleFinding, diagnose
from tests.analysis.kit import memory_trace
from tests.analysis.rules import sampled_cases as sampled
from tests.analysis.rules.cases import BUSY, GPU_NAME
from tests.analysis.sampled import World

ABOUT = {"throttled", "power-capped", "thermal-throttled"}


def told(options: Mapping[str, Any], *, before_and_after: bool = False) -> list[RuleFinding]:
    trace = memory_trace(sampled.STEPS, **options)
    found = diagnose(trace, provenance=GPU_NAME if before_and_after else None)
    return [one for one in found if one.code in ABOUT]


def test_the_power_cap_of_an_h200_is_told_once_with_its_clock_power_and_bound() -> None:
    (found,) = told(sampled.options(sampled.POWER_CAPPED), before_and_after=True)
    assert (found.code, found.severity) == ("power-capped", "warning")
    told_numbers = found.evidence
    assert told_numbers["share"] == pytest.approx(1, abs=0.02)
    assert told_numbers["clock_lost_share"] == pytest.approx(1 - 1580 / 1980, abs=0.005)
    assert told_numbers["power_w"] == 694
    assert found.gain_share == pytest.approx(1 - 1580 / 1980, abs=0.005)


def test_a_power_brake_is_power_and_a_hardware_slowdown_is_heat() -> None:
    assert [one.code for one in told(sampled.options(sampled.BRAKED))] == ["power-capped"]
    (hot,) = told(sampled.options(sampled.HOT))
    assert hot.evidence["reasons"] == ["thermal", "hardware slowdown"]


@pytest.mark.parametrize(
    "world", [sampled.SET_CLOCKS, sampled.IDLE_CLOCK, sampled.NO_LOSS, sampled.BRIEF],
    ids=["set clocks", "idle clock", "no loss", "brief"],
)  # fmt: skip
def test_what_does_not_slow_the_steady_steps_is_no_finding(world: World) -> None:
    """Not even where the driver stated a reason before or after the trial: the samples know better."""
    assert told(sampled.options(world), before_and_after=True) == []


def test_readings_before_the_load_say_nothing_so_the_states_before_and_after_count() -> None:
    assert told(sampled.before_load()) == []
    assert [one.code for one in told(sampled.before_load(), before_and_after=True)] == ["throttled"]


def test_without_samples_the_states_before_and_after_count() -> None:
    found = [one.code for one in diagnose(memory_trace(BUSY), provenance=GPU_NAME) if one.code in ABOUT]
    assert found == ["throttled"]


def test_under_a_profiler_the_gain_is_of_the_gpus_time() -> None:
    """The GPU works in 85 us of the 100 us of a recorded step."""
    trace = memory_trace(BUSY, **sampled.options(sampled.POWER_CAPPED, "torch"))
    (found,) = [one for one in diagnose(trace) if one.code == "power-capped"]
    assert found.gain_share == pytest.approx(0.85 * (1 - 1580 / 1980), abs=0.01)
