"""The difference of two sides of trials: Welch's t, and the same with a trend that both sides share."""

from __future__ import annotations

import math

import numpy as np
import pytest

from profrun.analysis.compare.log_difference import log_difference
from profrun.analysis.compare.student_t import t_quantile
from profrun.analysis.step_time import Floats
from tests.conftest import first

TURNS = (range(0, 10, 2), range(1, 10, 2))


def test_without_order_it_is_welchs_t() -> None:
    """Worked out by hand: variances 1 and 4 of 3 and 4 trials."""
    a, b = np.array([9.0, 10.0, 11.0]), np.array([12.0, 16.0, 12.0, 16.0])
    found = log_difference((a, b))
    shares = 1 / 3, (16 / 3) / 4
    assert found.value == 4
    assert found.se == pytest.approx(math.sqrt(sum(shares)))
    assert found.freedom == pytest.approx(sum(shares) ** 2 / (shares[0] ** 2 / 2 + shares[1] ** 2 / 3))
    assert found.drift is None


def test_a_line_through_the_order_is_taken_out_exactly() -> None:
    line: Floats = 0.3 * np.arange(10, dtype=np.float64)
    b: Floats = line[1::2] + 1
    found = log_difference((line[::2], b), order=TURNS)
    assert found.value == pytest.approx(1)
    assert found.se == pytest.approx(0, abs=1e-12)
    assert found.drift == pytest.approx(2.7)


def test_a_line_over_time_is_taken_out_where_other_trials_ran_between() -> None:
    """Rounds A B C A B C ...: over the places of A and C alone a part of the drift would be a difference."""
    moments: Floats = np.arange(15, dtype=np.float64)
    a, c = moments[::3], moments[2::3]
    order = a.tolist(), c.tolist()
    assert log_difference((a, c + 1), order=order, evenly=False).value == pytest.approx(1)
    assert log_difference((a, c + 1), order=order).value == pytest.approx(1.5)
    late = (1.7e9 + 40 * a).tolist(), (1.7e9 + 40 * c).tolist()
    found = log_difference((a, c + 1), order=late, evenly=False)
    assert found.value == pytest.approx(1)
    assert found.drift == pytest.approx(14)


@pytest.mark.parametrize("kind", first(1, ["even", "drift", "uneven"]))
def test_false_alarms_are_five_of_a_hundred_with_and_without_drift(kind: str) -> None:
    rng = np.random.default_rng(4)
    runs, alarms = 1500, 0
    for _ in range(runs):
        levels = np.asarray(rng.normal(0, 0.01, 10)) + (0.05 * np.arange(10) / 9 if kind == "drift" else 0)
        a: Floats = levels[::2]
        b: Floats = levels[1::2] * (3 if kind == "uneven" else 1)
        found = log_difference((a, b), order=TURNS)
        alarms += abs(found.value) > t_quantile(0.975, round(found.freedom, 1)) * found.se
    assert 0.02 < alarms / runs < 0.068  # 5 %, and three standard deviations


def test_a_least_variance_keeps_trials_that_agree_by_chance_from_being_sure() -> None:
    same = np.array([1.0, 1.0, 1.0])
    assert log_difference((same, same)).se == 0
    assert log_difference((same, same), (0.03, 0.03)).se == pytest.approx(math.sqrt(0.02))
