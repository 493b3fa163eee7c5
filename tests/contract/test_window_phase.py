"""The words for where the window lies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profrun.contract.window_phase import WindowPhase

BOOST = WindowPhase(
    phase=1,
    phases=2,
    first_step=0,
    last_step=17,
    ns=2.94e6,
    steady=2,
    steady_first_step=18,
    steady_last_step=599,
    steady_ns=3.42e6,
    same_level=False,
    why=("the power cap lowered the SM clock from 1980 to 1580 MHz",),
)


def test_the_window_outside_of_the_steady_phase() -> None:
    assert BOOST.text == (
        "the window lies in phase 1 of 2 (steps 0-17, 2.94 ms per step); the steady phase is phase 2 (steps "
        "18-599, 3.42 ms per step, 16.3 % slower): the power cap lowered the SM clock from 1980 to 1580 MHz"
    )
    assert BOOST.matters
    assert BOOST.ratio == pytest.approx(2.94 / 3.42)
    assert replace(BOOST, why=()).text.endswith("16.3 % slower)")


def test_the_window_in_the_steady_phase() -> None:
    same = replace(BOOST, steady=1, steady_first_step=0, steady_last_step=17, same_level=True)
    assert same.text == "the window lies in phase 1 of 2 (steps 0-17, 2.94 ms per step), the steady phase"
    assert not same.matters


def test_the_window_in_another_phase_of_the_steady_level() -> None:
    again = replace(BOOST, phases=3, steady=3, steady_ns=2.95e6, same_level=True)
    assert again.text == (
        "the window lies in phase 1 of 3 (steps 0-17, 2.94 ms per step); its steps take as long as those of "
        "the steady phase, phase 3 (steps 18-599)"
    )


def test_a_small_difference_is_not_for_the_first_screen() -> None:
    assert not replace(BOOST, steady_ns=2.99e6).matters
    assert replace(BOOST, steady_ns=2.80e6).matters


def test_recorded_steps_that_are_faster_than_the_steady_ones_are_said() -> None:
    """As on an H200: 5.21 ms per step, and 4.59 ms in the window, right after the profiler had started."""
    there = replace(BOOST, phase=2, steady=2, same_level=True, steady_ns=5.21e6, recorded_ns=4.59e6)
    assert there.matters
    assert there.ratio == pytest.approx(4.59 / 5.21), (
        "not of the phase, whose steps take as long as the steady ones"
    )
    assert "but the recorded steps took 4.59 ms, 11.9 % faster than the steady ones" in there.text
    assert "schedule.warmup" in there.text
    slower = replace(there, recorded_ns=5.4e6)
    assert (slower.rested, slower.matters) == (False, False), "a profiler makes steps longer"
