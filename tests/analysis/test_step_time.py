"""The one estimate of a step time."""

from __future__ import annotations

import math

import pytest

from profrun.analysis.step_time import Statistic, side_value


@pytest.mark.parametrize(
    ("side", "statistic", "value"),
    [
        ([[10, 30, 20]], "median", 20),
        ([[10, 20]], "median", 15),
        ([[10, 30, 20], [80]], "median", 40),  # the geometric mean of 20 and 80
        ([[1, 2, 9]], "mean", 4),
        ([list(range(1, 101))], "p99", 99),
    ],
)
def test_the_statistic_of_each_trial_and_its_geometric_mean(
    side: list[list[float]], statistic: Statistic, value: float
) -> None:
    assert math.isclose(side_value(side, statistic), value)


@pytest.mark.parametrize("side", [[], [[]], [[1, 0]], [[1, math.inf]]])
def test_what_is_no_step_time_is_refused(side: list[list[float]]) -> None:
    with pytest.raises(ValueError, match=r"trial|durations"):
        side_value(side, "median")
