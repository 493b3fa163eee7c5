"""Shares of variance: exact cases, and simulations with known shares (docs/why-times-vary.md has more)."""

from __future__ import annotations

import numpy as np
import pytest
from bench.variance_shares import WORLDS, World, shares, simulated

from profrun.analysis.step_time import Floats
from profrun.analysis.variance_shares import Factor, VarianceShares, variance_shares, winsorised
from tests.conftest import first

LONG = [one for one in WORLDS if one.steps > 12]
COUNT = 400
RNG = np.random.default_rng(0)
A, B = (np.sign(RNG.normal(size=COUNT)) for _ in range(2))
B = B - A * (A @ B) / COUNT  # not together, to the last digit


def told(logs: Floats, **columns: Floats) -> VarianceShares:
    found = variance_shares(np.exp(logs), [Factor(name, name, column) for name, column in columns.items()])
    assert found is not None
    return found


def by_name(found: VarianceShares) -> dict[str, float]:
    return {one.name: round(one.share, 2) for one in (*found.causes, found.rest)}


def test_causes_that_do_not_go_together_have_their_part_of_the_variance() -> None:
    assert by_name(told(3 * A + 1 * B, a=A, b=B)) == {"a": 0.9, "b": 0.1, "rest": 0}


def test_a_cause_named_twice_has_its_share_in_halves_and_once_as_one_cause() -> None:
    times = np.exp(A + B)
    twice = [Factor("a", "a", A), Factor("again", "again", A), Factor("b", "b", B)]
    found = variance_shares(times, twice)
    assert found is not None
    assert by_name(found) == {"b": 0.5, "a": 0.25, "again": 0.25, "rest": 0}
    one = variance_shares(times, [Factor("a", "clock", A), Factor("again", "clock", A), Factor("b", "b", B)])
    assert one is not None
    assert by_name(one) == {"clock": 0.5, "b": 0.5, "rest": 0}
    assert {part.name: round(part.share, 2) for part in one.factors} == {"a": 0.25, "again": 0.25, "b": 0.5}


def test_the_share_of_causes_that_go_together_is_the_mean_over_both_orders() -> None:
    """b = a + c, times follow b alone: a alone explains half of it, and nothing after b."""
    found = told(A + B, a=A, b=A + B)
    assert by_name(found) == {"b": 0.75, "a": 0.25, "rest": 0}


def test_a_cause_that_can_only_make_times_longer_explains_no_shorter_times() -> None:
    assert by_name(told(A - B, a=A, b=B))["b"] == 0
    free = variance_shares(np.exp(A - B), [Factor("a", "a", A), Factor("b", "b", B, longer=False)])
    assert free is not None
    assert by_name(free)["b"] == 0.5


def test_what_comes_last_has_what_the_causes_leave() -> None:
    factors = [Factor("a", "a", A), Factor("when", "when", A + B, last=True)]
    found = variance_shares(np.exp(A + B), factors)
    assert found is not None
    assert by_name(found) == {"a": 0.5, "when": 0.5, "rest": 0}


def test_a_single_step_of_a_hundred_that_takes_ten_times_as_long_does_not_decide() -> None:
    logs = 0.03 * A + 0.001 * RNG.normal(size=COUNT)
    logs[[7, 200, 301]] += np.log(10)
    assert by_name(told(logs, a=A))["a"] > 0.95
    assert winsorised(np.arange(201.0))[[0, 1, 2, 3, 200]].tolist() == [2, 2, 2, 3, 198]
    assert winsorised(np.array([1.0, 2, 50])).tolist() == [1, 2, 50]


def test_nothing_is_told_where_nothing_varies_or_too_little_is_left() -> None:
    ones = np.ones(COUNT)
    assert variance_shares(ones, [Factor("a", "a", A)]) is None
    assert variance_shares(np.exp(A), [Factor("a", "a", ones)]) is None
    assert variance_shares(np.exp(A[:5]), [Factor(name, name, RNG.normal(size=5)) for name in "abcd"]) is None
    with pytest.raises(ValueError, match="at most 9"):
        variance_shares(np.exp(A), [Factor(str(one), "a", RNG.normal(size=COUNT)) for one in range(10)])


def test_the_same_seed_gives_the_same_intervals() -> None:
    logs = A + RNG.normal(size=COUNT)
    assert told(logs, a=A) == told(logs, a=A)


RUNS = 40


@pytest.mark.thorough
@pytest.mark.parametrize(
    "world", first(2, (one for one in WORLDS if one.steps > 12)), ids=lambda one: one.name
)
def test_intervals_hold_the_true_share_and_no_cause_has_none(world: World) -> None:
    found = []
    for seed in range(RUNS):
        times, clock, host, truth = simulated(world, np.random.default_rng(seed))
        answer = shares(world, times, clock, host, seed)
        assert answer is not None
        for name, true in zip(("clock", "host"), truth, strict=True):
            one = answer.of(name)
            assert one is not None
            found.append((one.low <= true + 1e-9 and true <= one.high + 1e-9, one.low > 0, one.share - true))
    held, above, error = (
        np.array(column, dtype=np.float64).reshape(RUNS, 2) for column in zip(*found, strict=True)
    )
    assert held.mean(axis=0).min() >= 0.88
    assert np.abs(error.mean(axis=0)).max() < 0.05
    if not world.clock and not world.host:
        assert above.mean(axis=0).max() <= 0.1
