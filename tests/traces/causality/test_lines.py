"""Lines between points: against a search over all pairs of points."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.traces.causality.lines import Points, hull, lines_between
from tests.conftest import examples

POINTS = st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=1, max_size=8)


def points(pairs: list[tuple[int, int]]) -> Points:
    return np.array([t for t, _ in pairs], float), np.array([v for _, v in pairs], float)


def slopes_of_all(lower: list[tuple[int, int]], upper: list[tuple[int, int]], limit: float) -> list[float]:
    """Every slope at which a possible line can be extreme: through two points, or at a limit."""
    steps = [
        (b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.combinations(lower + upper, 2) if a[0] != b[0]
    ]
    found = [slope for slope in [*steps, 0.0, limit, -limit] if abs(slope) <= limit]
    return [
        slope
        for slope in found
        if max(v - slope * t for t, v in lower) <= min(v - slope * t for t, v in upper) + 1e-9
    ]


@examples(200, 2000)
@given(POINTS, POINTS, st.sampled_from([0.5, 2.0, 100.0]))
def test_possible_lines_are_those_of_a_search(
    lower: list[tuple[int, int]], upper: list[tuple[int, int]], limit: float
) -> None:
    found, slopes = lines_between(points(lower), points(upper), limit), slopes_of_all(lower, upper, limit)
    assert (found is None) == (not slopes)
    if found is None:
        return
    assert (found.slopes[0], found.slopes[-1]) == pytest.approx((min(slopes), max(slopes)))
    for t in (0, 40):
        low, high = found.at(t)
        assert low == pytest.approx(min(max(v - s * (u - t) for u, v in lower) for s in slopes))
        assert high == pytest.approx(max(min(v - s * (u - t) for u, v in upper) for s in slopes))


def test_one_side_alone_leaves_every_slope() -> None:
    found = lines_between(points([(0, 3), (10, 3)]), None, 0.1)
    assert found is not None
    assert (found.slopes[0], found.slopes[-1]) == (-0.1, 0.1)
    assert found.at(0) == (3.0, None)
    assert found.best() == (0.0, 3.0, None)


def test_many_points_have_the_hull_of_all() -> None:
    rng = np.random.default_rng(0)
    t, v = rng.uniform(0, 1e9, 20_000), rng.uniform(0, 1e5, 20_000)
    corners = hull(t, v)
    edges = np.diff(corners[1]) / np.diff(corners[0])
    assert (np.diff(edges) < 0).all()
    assert (np.interp(t, *corners) >= v - 1e-6).all()
    assert np.isin(corners[1], v).all()
