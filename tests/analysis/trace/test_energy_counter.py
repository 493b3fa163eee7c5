"""Energy of a stretch by a counter of known power, and how sure it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.analysis.trace.energy_counter import (
    MOST_UNCERTAIN,
    UNKNOWN_AGE_NS,
    StretchEnergy,
    stretch_energy,
)
from profrun.analysis.trace.readings import Floats, Readings
from tests.analysis.sampled_runs import Energy, piecewise, read_counter

SECOND = 1_000_000_000
BUSY = piecewise((-2000, 120), (0, 700), (10_000, 120))
"""120 W, then 700 W for ten seconds from 0 on, then 120 W."""


def _every(period_ms: float, begin_ms: float = -1000, end_ms: float = 12_000) -> Floats:
    return np.arange(begin_ms, end_ms, period_ms)


def test_the_power_of_a_stretch_does_not_hold_that_of_its_neighbours() -> None:
    found = stretch_energy(read_counter(BUSY, _every(100, -987)), 0, 10 * SECOND)
    assert found.joules == pytest.approx(7000)
    assert found.watts == pytest.approx(700)
    assert found.resolution == pytest.approx(0.02)  # two periods of 100 ms of 10 s
    assert found.low_j is not None
    assert found.high_j is not None
    assert found.low_j <= 7000 <= found.high_j
    assert (found.start_ns, found.end_ns) == (0, 10 * SECOND)


@pytest.mark.parametrize(
    ("reading_ms", "update_ms", "length_s", "resolution"),
    [
        (100, 100, 3.9, None),
        (100, 100, 4.1, 2 * 0.1 / 4.1),
        (20, 100, 4.1, 2 * 0.1 / 4.1),  # more readings do not help: the counter changes every 100 ms
        (250, 100, 9.0, None),
        (250, 100, 10.0, 2 * 0.25 / 10),  # fewer readings do harm
    ],
)
def test_a_stretch_that_is_too_short_for_the_counter_is_refused_with_the_length_that_is_needed(
    reading_ms: float, update_ms: float, length_s: float, resolution: float | None
) -> None:
    counter = read_counter(BUSY, _every(reading_ms), update_ms=update_ms, phase_ms=3)
    found = stretch_energy(counter, 0, round(length_s * SECOND))
    assert found.resolution == (None if resolution is None else pytest.approx(resolution))
    assert (found.watts is None) == (resolution is None)
    assert found.needed_ns == pytest.approx(2 * max(reading_ms, update_ms) * 1e6 / MOST_UNCERTAIN)


def test_what_the_readings_do_not_cover_is_not_measured() -> None:
    """Readings from 2 s on, to 8 s; the first value whose moment is known is of 1.9 s."""
    found = stretch_energy(read_counter(BUSY, _every(100, 2000, 8000), phase_ms=7), 0, 10 * SECOND)
    assert found.watts == pytest.approx(700)
    assert found.start_ns == pytest.approx(2.0 * SECOND, abs=0.11 * SECOND)
    assert found.end_ns == pytest.approx(7.7 * SECOND, abs=0.11 * SECOND)


def test_a_gap_in_the_readings_inside_the_stretch_does_no_harm() -> None:
    times = _every(100, -987)
    found = stretch_energy(read_counter(BUSY, times[(times < 3000) | (times > 5000)]), 0, 10 * SECOND)
    assert found.joules == pytest.approx(7000)


def test_a_counter_that_was_set_anew_counts_in_its_longest_part() -> None:
    whole = read_counter(BUSY, _every(100, -987))
    values = np.where(whole.times > 3 * SECOND, whole.values - whole.values[50], whole.values)
    found = stretch_energy(Readings(whole.times, values), 0, 10 * SECOND)
    assert found.watts == pytest.approx(700)
    assert found.start_ns == pytest.approx(3 * SECOND, abs=0.25 * SECOND)
    assert found.end_ns == 10 * SECOND


def test_a_value_that_was_misread_as_0_is_no_energy() -> None:
    whole = read_counter(BUSY, _every(100, -987))
    values = whole.values + 1e6
    values[20] = 0
    found = stretch_energy(Readings(whole.times, values), 0, 10 * SECOND)
    assert found.watts == pytest.approx(700)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_too_few_readings_are_no_energy(count: int) -> None:
    counter = read_counter(BUSY, _every(100)[:count])
    found = stretch_energy(counter, 0, 10 * SECOND)
    assert (found.watts, found.needed_ns) == (None, 4 * SECOND)


def _truth(energy: Energy, found: StretchEnergy) -> float:
    """The true energy of the part of the stretch that was measured."""
    low, high = energy(np.array([found.start_ns, found.end_ns]) / 1e6)
    return float(high - low)


_PERIODS = (st.floats(10, 150), st.floats(10, 120), st.floats(0, 120), st.floats(0, 150))
"""Between two readings, between two updates, from 0 to an update, from -2 s to the first reading; ms."""


@given(st.lists(st.floats(0, 1000), min_size=13, max_size=13), *_PERIODS, st.floats(6500, 30_000))
def test_the_energy_lies_inside_the_bounds_whatever_the_power_did(
    watts: list[float], reading_ms: float, update_ms: float, phase_ms: float, begin_ms: float, ms: float
) -> None:
    energy = piecewise(*zip(np.linspace(-3000, ms + 3000, 13).tolist(), watts, strict=True))
    times = _every(reading_ms, -2000 + begin_ms, ms + 2000)
    counter = read_counter(energy, times, update_ms=update_ms, phase_ms=phase_ms)
    found = stretch_energy(counter, 0, round(ms * 1e6))
    if found.joules is None:
        assert min(watts) < 1e-3  # only a counter that stands still hides its updates
        return
    assert found.low_j is not None
    assert found.high_j is not None
    assert found.low_j - 1e-6 <= found.joules <= found.high_j + 1e-6
    assert found.low_j - 1e-6 <= _truth(energy, found) <= found.high_j + 1e-6


@given(
    st.lists(st.floats(50, 1000), min_size=13, max_size=13),
    *_PERIODS,
    st.floats(8000, 30_000),
    st.floats(0, 200),
)
def test_the_bounds_hold_where_the_age_of_the_values_is_not_known(
    watts: list[float],
    reading_ms: float,
    update_ms: float,
    phase_ms: float,
    begin_ms: float,
    ms: float,
    age_ms: float,
) -> None:
    energy = piecewise(*zip(np.linspace(-3000, ms + 3000, 13).tolist(), watts, strict=True))
    times = _every(reading_ms, -2000 + begin_ms, ms + 2000)
    counter = read_counter(energy, times, update_ms=update_ms, phase_ms=phase_ms, age_ms=age_ms)
    found = stretch_energy(counter, 0, round(ms * 1e6), age_ns=UNKNOWN_AGE_NS)
    assert found.low_j is not None
    assert found.high_j is not None
    assert found.low_j - 1e-6 <= _truth(energy, found) <= found.high_j + 1e-6


@given(
    st.floats(20, 1000),
    st.lists(st.floats(0.9, 1.1), min_size=13, max_size=13),
    st.floats(0, 1000),
    *_PERIODS,
    st.floats(6500, 30_000),
)
def test_a_steady_power_is_found_within_the_resolution(
    level: float,
    wobble: list[float],
    other: float,
    reading_ms: float,
    update_ms: float,
    phase_ms: float,
    begin_ms: float,
    ms: float,
) -> None:
    """Power within a tenth of its level in the stretch, and any other before and after it."""
    moments = [-3000.0, *np.linspace(0, ms, 14).tolist()]
    watts = [other, *(level * one for one in wobble), other]
    energy = piecewise(*zip(moments, watts, strict=True))
    times = _every(reading_ms, -2000 + begin_ms, ms + 2000)
    counter = read_counter(energy, times, update_ms=update_ms, phase_ms=phase_ms)
    found = stretch_energy(counter, 0, round(ms * 1e6))
    truth = _truth(energy, found)
    assert found.joules is not None
    assert found.resolution is not None
    assert found.resolution <= MOST_UNCERTAIN
    assert abs(found.joules - truth) <= found.resolution * truth
