"""The interval on a ratio: known quantiles, known truth, and the honest absence of an answer."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.analysis.compare.stats import (
    Estimate,
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
    for seed in range(runs):
        result = estimate(_side(rng, trials, 40), _side(rng, trials, 40), resamples=500, seed=seed)
        alarms += verdict(result, threshold=0.0) in ("faster", "slower")
    # 5 % of 250 is 12.5; three standard deviations above is 22.8.
    assert alarms <= 22


def test_a_real_difference_is_found_and_covered() -> None:
    rng = np.random.default_rng(1)
    covered = found = 0
    for seed in range(200):
        result = estimate(_side(rng, 5, 100), _side(rng, 5, 100, base=105.0), resamples=500, seed=seed)
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
def test_order_statistics_drawn_by_beta_have_the_variance_of_real_resampling(statistic: Statistic) -> None:
    from profrun.analysis.compare.stats import _resampled

    rng = np.random.default_rng(3)
    trial = np.sort(rng.lognormal(0, 0.2, 60))
    real = [trial_value(np.sort(rng.choice(trial, 60)), statistic) for _ in range(4000)]
    drawn = _resampled(trial, statistic, 4000, rng)
    assert float(drawn.mean()) == pytest.approx(float(np.mean(real)), rel=0.01)
    assert float(drawn.std()) == pytest.approx(float(np.std(real)), rel=0.1)


def test_ten_thousand_resamples_of_five_trials_of_a_hundred_steps_take_under_a_second() -> None:
    rng = np.random.default_rng(0)
    a, b = _side(rng, 5, 100), _side(rng, 5, 100)
    start = time.process_time()
    estimate(a, b, resamples=10_000)
    assert time.process_time() - start < 1.0


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
    forward, back = estimate(a, b, resamples=50), estimate(b, a, resamples=50)
    assert forward.ratio * back.ratio == pytest.approx(1.0)
    assert forward.ci95 is not None
    assert forward.ci95[0] <= forward.ratio <= forward.ci95[1]
    scaled = estimate(a, [[value * scale for value in trial] for trial in b], resamples=50)
    assert scaled.ratio == pytest.approx(forward.ratio * scale)


@pytest.mark.parametrize("bad", [[], [[]], [[0.0, 1.0]], [[-1.0]], [[math.inf]], [[math.nan]]])
def test_data_without_a_ratio_is_refused(bad: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="step"):
        estimate(bad, [[1.0], [2.0]])
