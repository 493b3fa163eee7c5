"""Clocks of ranks: planted offsets lie inside the bounds; who contradicts whom."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profrun.traces.causality.exchange import FAR, Exchanges, bounds
from tests.conftest import examples


def exchanges(rows: list[tuple[int, int, int, int]], ranks: int) -> Exchanges:
    """Rows: (rank, collective, start, end)."""
    rank, collective, start, end = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return Exchanges(rank, collective, start, end, ranks)


def test_two_ranks_by_hand() -> None:
    """Rank 1 begins 5 before rank 0 ends, and ends 30 after rank 0 begins."""
    found = bounds(exchanges([(0, 0, 0, 20), (1, 0, 15, 30)], 2))
    assert (found.low.tolist(), found.high.tolist(), found.possible) == ([0, -30], [0, 5], True)


def test_a_bound_over_a_third_rank() -> None:
    rows = [(0, 0, 0, 20), (1, 0, 15, 30), (1, 1, 40, 60), (2, 1, 50, 70)]
    found = bounds(exchanges(rows, 3))
    assert found.high.tolist() == [0, 5, 15]  # 5 + 60 - 50
    assert found.low.tolist() == [0, -30, -60]  # -30 + 40 - 70


def test_a_rank_that_nothing_ties_has_no_bounds() -> None:
    found = bounds(exchanges([(0, 0, 0, 20), (1, 0, 15, 30), (2, 1, 0, 10)], 3))
    assert found.tied.tolist() == [True, True, False]
    assert (found.low[2], found.high[2]) == (-FAR, FAR)


def test_a_clock_that_jumps_between_two_collectives_fits_nothing() -> None:
    rows = [(0, 0, 0, 20), (1, 0, 15, 30), (0, 1, 100, 120), (1, 1, 515, 530)]
    found = bounds(exchanges(rows, 2))
    assert not found.possible
    assert found.wrong[1]


def test_ranks_that_contradict_each_other_far_from_the_first_are_found() -> None:
    """Rank 0 bounds rank 1 loosely; ranks 1 and 2 contradict each other."""
    rows = [
        (0, 0, 0, 10_000),
        (1, 0, 0, 10_000),
        (1, 1, 0, 10),
        (2, 1, 0, 10),
        (1, 2, 100, 110),
        (2, 2, 200, 210),
    ]
    assert not bounds(exchanges(rows, 3)).possible


@examples(100, 1000)
@given(st.integers(2, 12), st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_planted_clocks_lie_inside_the_bounds(ranks: int, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = np.append(0, rng.integers(-(10**12), 10**12, ranks - 1))
    rows = []
    for number in range(count):
        who = rng.choice(ranks, rng.integers(1, ranks + 1), replace=False)
        begin = 10**6 * number + rng.integers(0, 10**5, len(who))
        end = begin.max() + rng.integers(1, 10**4, len(who))
        rows += [
            (int(r), number, int(b - truth[r]), int(e - truth[r]))
            for r, b, e in zip(who, begin, end, strict=True)
        ]
    found = bounds(exchanges(rows, ranks))
    assert found.possible
    assert ((found.low <= truth) & (truth <= found.high)).all()
