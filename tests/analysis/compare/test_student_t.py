"""Quantiles of Student's t: known values, and scipy's where it is installed."""

from __future__ import annotations

import pytest

from profrun.analysis.compare.student_t import t_quantile, t_two_sided
from tests.conftest import first


# Quantiles printed in any table of Student's t.
@pytest.mark.parametrize(
    ("probability", "freedom", "expected"),
    [
        (0.975, 1, 12.7062),
        (0.975, 2, 4.3027),
        (0.975, 8, 2.3060),
        (0.95, 5, 2.0150),
        (0.8, 4, 0.9410),
        (0.975, 1e6, 1.9600),
        (0.025, 2, -4.3027),
    ],
)
def test_t_quantiles_equal_the_printed_table(probability: float, freedom: float, expected: float) -> None:
    assert t_quantile(probability, freedom) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("freedom", first(2, [1.7, 12.5, 1.0, 4.0, 250.0, 1e5]))
def test_t_quantiles_equal_those_of_scipy(freedom: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    for probability in (0.001, 0.025, 0.2, 0.5, 0.8, 0.95, 0.975, 0.9999):
        assert t_quantile(probability, freedom) == pytest.approx(
            float(stats.t.ppf(probability, freedom)), rel=1e-8, abs=1e-9
        )


def test_two_sided_probabilities_are_the_other_way_round() -> None:
    assert t_two_sided(12.7062, 1) == pytest.approx(0.05, abs=1e-6)
    assert t_two_sided(-2.3060, 8) == pytest.approx(0.05, abs=1e-5)
    assert t_two_sided(0.0, 3) == pytest.approx(1.0)
    assert t_two_sided(float("inf"), 3) == 0


@pytest.mark.parametrize("freedom", [1.0, 1.7, 4.0, 250.0])
def test_two_sided_probabilities_equal_those_of_scipy(freedom: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    for value in (0.1, 1.0, 2.5, 40.0):
        assert t_two_sided(value, freedom) == pytest.approx(2 * float(stats.t.sf(value, freedom)), rel=1e-8)
