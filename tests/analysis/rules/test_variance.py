"""Why the same work takes different times: the window, the clock, neighbours; and what only looks so."""

from __future__ import annotations

import pytest

from profrun.analysis.rules.diagnose import RuleFinding, diagnose
from tests.analysis.kit import memory_trace
from tests.analysis.rules import sampled_cases as sampled
from tests.analysis.sampled import World


def told(world: World, rule: str, collector: str = "none") -> list[RuleFinding]:
    trace = memory_trace(sampled.STEPS, **sampled.options(world, collector))
    return [one for one in diagnose(trace) if one.code == rule]


def test_a_window_before_the_power_cap_is_told_with_its_difference_and_its_cause() -> None:
    (found,) = told(sampled.EARLY_WINDOW, "unsteady-window", "torch")
    assert found.severity == "warning"
    assert found.evidence["window_ratio"] == pytest.approx(1580 / 1980, abs=0.01)
    assert found.evidence["window_first_step"] == 0
    assert "the power cap lowered the SM clock from " in found.what
    assert "wait: steady" in (found.fix or "")


@pytest.mark.parametrize("world", [sampled.STEADY_WINDOW, sampled.ONE_PHASE], ids=["steady", "one phase"])
def test_a_window_in_the_steady_phase_is_no_finding(world: World) -> None:
    assert told(world, "unsteady-window", "torch") == []


def test_a_trial_without_a_profiler_has_no_window() -> None:
    assert told(sampled.EARLY_WINDOW, "unsteady-window") == []


def test_a_clock_that_wanders_under_the_cap_is_below_the_cap() -> None:
    (found,) = told(sampled.CLOCKED, "clock-variance")
    assert found.explained_by == "power-capped"
    assert found.evidence["share"] > 0.9
    assert found.evidence["slope"] == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("world", [sampled.UNRELATED, sampled.TIGHT, sampled.NEIGHBOUR])
def test_a_clock_that_does_not_decide_is_no_finding(world: World) -> None:
    assert told(world, "clock-variance") == []


def test_other_work_on_the_host_is_told_with_what_it_costs() -> None:
    """Half of the time 1.5 cores of others make steps 15 % longer: 7.5 % of the quiet step on average."""
    (found,) = told(sampled.NEIGHBOUR, "noisy-neighbour")
    assert found.evidence["where"] == "host"
    assert found.evidence["busy_ns"] / found.evidence["quiet_ns"] == pytest.approx(1.15, abs=0.02)
    assert found.gain_share == pytest.approx(0.07, abs=0.02)


def test_another_process_on_the_gpu() -> None:
    (found,) = told(sampled.SHARED_GPU, "noisy-neighbour")
    assert (found.evidence["where"], found.evidence["busy_amount"]) == ("gpu", pytest.approx(2, abs=0.1))


@pytest.mark.parametrize("world", [sampled.HARMLESS, sampled.TRIFLE, sampled.ALWAYS_TWO, sampled.CLOCKED])
def test_a_neighbour_beside_whom_steps_are_not_slower_is_no_finding(world: World) -> None:
    assert told(world, "noisy-neighbour") == []
