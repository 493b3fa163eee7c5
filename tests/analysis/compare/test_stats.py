"""The interval on a ratio: known quantiles, known truth, and the honest absence of an answer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.analysis.compare.stats import (
    Estimate,
    difference,
    estimate,
    outlier_steps,
    proven_below,
    trials_needed,
    verdict,
)
from profrun.analysis.compare.student_t import t_quantile
from profrun.analysis.step_time import Statistic, trial_value
from tests.conftest import first


def _side(
    rng: np.random.Generator, trials: int, steps: int, *, base: float = 100.0, between: float = 0.01
) -> list[list[float]]:
    """Trials with their own level (``between``) and log-normal steps: what real step times look like."""
    levels = base * np.exp(rng.normal(0, between, trials))
    return [list(level * np.exp(rng.normal(0, 0.03, steps))) for level in levels]


@pytest.mark.parametrize("trials", first(1, [3, 2, 5]))
def test_same_against_same_alarms_at_most_one_time_in_twenty(trials: int) -> None:
    rng = np.random.default_rng(trials)
    alarms = 0
    runs = 250
    for _ in range(runs):
        result = estimate(_side(rng, trials, 40), _side(rng, trials, 40))
        alarms += verdict(result, threshold=0.0) in ("faster", "slower")
    # 5 % of 250 is 12.5; three standard deviations above is 22.8.
    assert alarms <= 22


def test_a_real_difference_is_found_and_covered() -> None:
    rng = np.random.default_rng(1)
    covered = found = 0
    for _ in range(200):
        result = estimate(_side(rng, 5, 100), _side(rng, 5, 100, base=105.0))
        assert result.ci95 is not None
        covered += result.ci95[0] <= 1.05 <= result.ci95[1]
        found += verdict(result) == "slower"
    assert covered >= 180  # nominal 190; three standard deviations below is 181
    assert found >= 195


def test_one_trial_a_side_is_inconclusive_and_says_how_many_more() -> None:
    result = estimate([[100.0, 101.0]], [[50.0, 50.5]])
    assert result.ci95 is None
    assert result.mde is None
    assert verdict(result) == "inconclusive"
    assert result.trials_needed is not None
    assert result.trials_needed >= 3


def test_the_difference_is_that_of_the_estimate_and_needs_two_trials() -> None:
    a, b = [[9.0, 10.0], [10.0], [11.0]], [[12.0], [13.0], [13.5]]
    order = [0, 2, 4], [1, 3, 5]
    found, whole = difference(a, b, order=order), estimate(a, b, order=order)
    half = t_quantile(0.975, found.freedom) * found.se
    assert whole.ratio == math.exp(found.value)
    assert whole.ci95 == pytest.approx((math.exp(found.value - half), math.exp(found.value + half)))
    with pytest.raises(ValueError, match="at least 2 trials"):
        difference(a[:1], b)


def test_fewer_trials_widen_the_interval() -> None:
    rng = np.random.default_rng(0)
    a, b = _side(rng, 8, 50), _side(rng, 8, 50)
    widths = []
    for trials in (2, 4, 8):
        low, high = estimate(a[:trials], b[:trials]).ci95 or (0.0, 0.0)
        widths.append(high / low)
    assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize(
    ("ratio", "ci95", "expected"),
    [
        (1.05, (1.03, 1.07), "slower"),
        (0.95, (0.93, 0.97), "faster"),
        (1.001, (0.995, 1.006), "same"),
        (1.03, (0.97, 1.09), "inconclusive"),
        (1.005, (1.002, 1.008), "same"),  # certain, but below the practical threshold
        (1.008, (1.002, 1.014), "inconclusive"),
        (2.0, None, "inconclusive"),
    ],
)
def test_verdicts(ratio: float, ci95: tuple[float, float] | None, expected: str) -> None:
    assert verdict(Estimate("median", ratio, ci95, 0.01, (5, 5), (100, 100), 5), 0.01) == expected


@pytest.mark.parametrize("statistic", ["median", "mean", "p99"])
def test_the_least_variance_is_that_of_the_statistic_over_draws_of_the_steps(statistic: Statistic) -> None:
    from profrun.analysis.compare.stats import _within

    rng = np.random.default_rng(3)
    draws = np.sort(rng.lognormal(0, 0.2, (2000, 200)), axis=1)
    real = float(np.std([math.log(trial_value(trial, statistic)) for trial in draws]))
    assert float(np.mean([_within(trial, statistic) for trial in draws])) == pytest.approx(real, rel=0.3)


def test_trials_that_agree_by_chance_are_no_surer_than_their_steps() -> None:
    rng = np.random.default_rng(0)
    level = rng.normal(100, 3, 20)
    shuffled = [list(rng.permutation(level)) for _ in range(3)]  # the same median to the last digit
    low, high = estimate(shuffled, shuffled).ci95 or (1.0, 1.0)
    assert high - low > 0.02
    ticks = [[100.0, 101.0, 100.0, 100.0]] * 3  # a clock that counts by one of hundred
    low, high = estimate(ticks, ticks).ci95 or (1.0, 1.0)
    assert high - low > 0.01


def test_drift_that_both_sides_share_is_taken_out_where_trials_were_run_in_turns() -> None:
    rng = np.random.default_rng(2)
    drift = np.exp(np.linspace(0, 0.05, 10))  # 5 % from the first trial to the last: A B A B ...
    a = [[100 * level * math.exp(rng.normal(0, 0.001))] for level in drift[::2]]
    b = [[101 * level * math.exp(rng.normal(0, 0.001))] for level in drift[1::2]]
    apart = estimate(a, b)
    turns = estimate(a, b, order=(range(0, 10, 2), range(1, 10, 2)))
    assert verdict(apart) == "inconclusive"
    assert verdict(turns, 0.005) == "slower"
    assert turns.ci95 is not None
    assert turns.ci95[0] < 1.01 < turns.ci95[1]
    assert turns.drift == pytest.approx(0.05, abs=0.005)
    one_after_the_other = estimate(a, b, order=(range(5), range(5, 10)))
    assert one_after_the_other == apart
    assert estimate(a[:2], b[:2], order=((0, 2), (1, 3))) == estimate(a[:2], b[:2])


def test_trials_needed_is_the_number_whose_mde_meets_the_threshold() -> None:
    needed = trials_needed(0.01, 0.02)
    assert needed is not None
    for count, enough in ((needed, True), (needed - 1, False)):
        freedom = 2 * (count - 1)
        mde = (t_quantile(0.975, freedom) + t_quantile(0.8, freedom)) * 0.01 * math.sqrt(2 / count)
        assert (mde <= math.log1p(0.02)) is enough


def test_a_p_value_says_what_the_interval_says() -> None:
    rng = np.random.default_rng(5)
    for shift in (1.0, 1.01, 1.03):
        a, b = _side(rng, 4, 30), [[shift * step for step in trial] for trial in _side(rng, 4, 30)]
        found = estimate(a, b)
        assert found.ci95 is not None
        assert found.p_value is not None
        assert (found.p_value < 0.05) is not (found.ci95[0] <= 1 <= found.ci95[1])
    assert estimate(_side(rng, 1, 30), _side(rng, 4, 30)).p_value is None
    even = [[100.0, 100.0], [100.0, 100.0]]
    assert estimate(even, even).p_value == 1
    assert estimate(even, [[101.0], [101.0]]).p_value == pytest.approx(0)


@pytest.mark.parametrize(
    ("p_values", "limit"),
    [
        ([], -1),
        ([0.04], 0.04),
        ([0.04, 0.5, 0.6, 0.7], -1),  # one of four: 0.0125 is the limit
        ([0.01, 0.5, 0.6, 0.7], 0.01),
        ([0.03, 0.02, 0.04, 0.01], 0.04),  # all together are less likely by chance than one alone
        ([0.0, 0.0, 1.0], 0.0),
    ],
)
def test_many_rows_need_more_proof_than_one(p_values: list[float], limit: float) -> None:
    assert proven_below(p_values) == limit


def test_tables_of_equal_rows_have_a_changed_row_in_at_most_five_of_a_hundred() -> None:
    rng = np.random.default_rng(2)
    tables = rng.random((4000, 40))
    alarms = sum(min(row) <= proven_below(list(row)) for row in tables)
    assert alarms / len(tables) < 0.06
    assert alarms > 0


def test_a_cold_first_step_is_named() -> None:
    assert outlier_steps([900.0, 100.0, 101.0, 99.0, 100.0, 102.0]) == [0]
    assert outlier_steps([100.0, 100.1, 100.0, 100.2]) == []


@given(
    st.lists(st.lists(st.floats(1.0, 1e9), min_size=1, max_size=5), min_size=2, max_size=4),
    st.lists(st.lists(st.floats(1.0, 1e9), min_size=1, max_size=5), min_size=2, max_size=4),
    st.floats(0.5, 2.0),
)
def test_swapping_sides_inverts_and_scaling_scales(
    a: list[list[float]], b: list[list[float]], scale: float
) -> None:
    forward, back = estimate(a, b), estimate(b, a)
    assert forward.ratio * back.ratio == pytest.approx(1.0)
    assert forward.ci95 is not None
    assert forward.ci95[0] <= forward.ratio <= forward.ci95[1]
    scaled = estimate(a, [[value * scale for value in trial] for trial in b])
    assert scaled.ratio == pytest.approx(forward.ratio * scale)


@pytest.mark.parametrize("bad", [[], [[]], [[0.0, 1.0]], [[-1.0]], [[math.inf]], [[math.nan]]])
def test_data_without_a_ratio_is_refused(bad: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="step"):
        estimate(bad, [[1.0], [2.0]])
