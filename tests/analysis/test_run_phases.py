"""Phases of arrays of step times: what makes phases, what makes none, and which one is the steady one.

The tables of ``bench/phases.py`` have many more runs of each kind; these are few, with fixed seeds.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.analysis.phase_cuts import Cut
from profrun.analysis.run_phases import FEWEST, cut_phases, steady_level


def white(seed: int, steps: int, noise: float) -> np.ndarray:
    """Steps of about 1 ms."""
    return 1e6 * np.exp(np.random.default_rng(seed).normal(0, noise, steps))


def spans(cuts: tuple[Cut, ...]) -> list[tuple[int, int]]:
    return [(cut.first, cut.stop) for cut in cuts]


@pytest.mark.parametrize("steps", [FEWEST - 1, 20, 600, 10_000])
def test_equal_steps_are_one_phase(steps: int) -> None:
    assert spans(cut_phases(np.full(steps, 5))) == [(0, steps)]


def test_no_steps_have_no_phases() -> None:
    assert cut_phases([]) == ()
    assert steady_level([]) is None


@pytest.mark.parametrize("noise", [0.001, 0.01, 0.05])
def test_steady_runs_are_one_phase(noise: float) -> None:
    more = [seed for seed in range(40) if len(cut_phases(white(seed, 200, noise))) > 1]
    assert len(more) <= 1


def test_a_long_step_every_tenth_makes_no_phase() -> None:
    for offset in range(10):
        durs = white(offset, 100, 0.01)
        durs[offset::10] *= 2
        assert spans(cut_phases(durs)) == [(0, 100)]


@pytest.mark.parametrize(("change", "noise", "at"), [(1.01, 0.003, 30), (1.03, 0.01, 30), (1.12, 0.01, 6)])
def test_a_jump_is_found_where_it_is(change: float, noise: float, at: int) -> None:
    for seed in range(5):
        durs = white(seed, 600, noise)
        durs[at:] *= change
        cuts = cut_phases(durs)
        assert len(cuts) == 2
        assert abs(cuts[1].first - at) <= 3
        assert [cut.level for cut in cuts] == [0, 1]
        assert steady_level(cuts) == 1


@pytest.mark.parametrize("longer", [2, 50])
@pytest.mark.parametrize("steps", [1, 3, 5])
def test_long_first_steps_are_warm_up(longer: int, steps: int) -> None:
    durs = white(1, 60, 0.01)
    durs[:steps] *= longer
    cuts = cut_phases(durs)
    assert [(cut.first, cut.stop, cut.warm_up) for cut in cuts] == [(0, steps, True), (steps, 60, False)]
    assert steady_level(cuts) == 1


def test_levels_that_come_again_have_one_number() -> None:
    durs = white(2, 800, 0.02)
    durs[200:400] *= 1.2
    durs[600:] *= 1.2
    cuts = cut_phases(durs)
    assert [cut.level for cut in cuts] == [0, 1, 0, 1]
    assert steady_level(cuts) == 0, "of levels that alternate, the faster is the steady one"


def test_a_disturbance_at_the_end_is_not_where_the_program_lives() -> None:
    durs = white(3, 300, 0.01)
    durs[240:] *= 1.3
    cuts = cut_phases(durs)
    assert spans(cuts) == [(0, 240), (240, 300)]
    assert steady_level(cuts) == 0


def test_a_short_disturbance_is_not_steady_however_long_its_steps_take() -> None:
    durs = white(3, 300, 0.01)
    durs[240:] *= 10
    assert steady_level(cut_phases(durs)) == 0


def test_a_slow_drift_is_one_phase_with_a_drift() -> None:
    (cut,) = cut_phases(white(4, 600, 0.003) * np.linspace(1, 1.03, 600))
    assert cut.drift == pytest.approx(1.024, abs=0.003)


@pytest.mark.parametrize("seed", range(5))
def test_a_begin_that_passes_gradually_into_the_rest_is_no_phase(seed: int) -> None:
    """25 steps that are 5 % slower, 12 that are 3 % slower, then the rest."""
    durs = white(seed, 360, 0.003)
    durs[:25] *= 1.05
    durs[25:37] *= 1.03
    cuts = cut_phases(durs)
    assert spans(cuts) == [(0, 360)]
    assert cuts[0].median == pytest.approx(1e6, rel=0.002)


LEVELS = st.lists(
    st.tuples(st.integers(1, 120), st.sampled_from([0.9, 0.97, 0.99, 1.0, 1.01, 1.025, 1.05, 1.3, 5.0])),
    min_size=1,
    max_size=6,
)


@given(LEVELS, st.sampled_from([0.0, 0.001, 0.003, 0.01, 0.05]), st.integers(0, 2**32 - 1))
def test_phases_of_any_levels_hold_every_step_once(
    levels: list[tuple[int, float]], noise: float, seed: int
) -> None:
    durs = white(seed, sum(steps for steps, _ in levels), noise)
    durs *= np.repeat([level for _, level in levels], [steps for steps, _ in levels])
    cuts = cut_phases(durs)
    assert [cut.first for cut in cuts] == [0, *(cut.stop for cut in cuts[:-1])]
    assert cuts[-1].stop == len(durs)
    assert all(cut.steps > 0 and durs.min() <= cut.median * (1 + 1e-9) for cut in cuts)


def test_a_level_that_wanders_is_one_phase() -> None:
    """As the clock at a power cap: another level every 30 steps; the boost before it stays a phase."""
    level = np.repeat(np.random.default_rng(6).normal(0, 0.02, 20), 30)
    durs = white(6, 600, 0.002) * np.exp(level)
    durs[:20] *= 0.8
    cuts = cut_phases(durs)
    assert len(cuts) == 2
    assert cuts[1].first == 20
    assert cuts[1].median == pytest.approx(float(np.median(durs[20:])))


def test_a_jump_of_a_very_long_run_is_found_to_the_step() -> None:
    durs = white(5, 100_000, 0.01)
    durs[33_333:] *= 1.1
    cuts = cut_phases(durs)
    assert len(cuts) == 2
    assert abs(cuts[1].first - 33_333) <= 2
