"""Interval algebra against plain Python over every ns."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from profrun.analysis.trace import intervals as iv

PAIRS = st.lists(
    st.tuples(st.integers(-30, 30), st.integers(-5, 25)).map(lambda p: (p[0], p[0] + p[1])), max_size=12
)


def points(pairs: list[tuple[int, int]]) -> set[int]:
    return {at for start, end in pairs for at in range(start, end)}


def of(pairs: list[tuple[int, int]]) -> iv.Intervals:
    return iv.union([start for start, _ in pairs], [end for _, end in pairs])


@given(PAIRS)
def test_union_covers_the_same_points_and_is_disjoint(pairs: list[tuple[int, int]]) -> None:
    found = of(pairs)
    assert points(found.pairs()) == points(pairs)
    assert found.total == len(points(pairs))
    assert (found.starts[1:] > found.ends[:-1]).all()


@given(PAIRS, PAIRS)
def test_set_operations_are_those_of_sets(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:
    a, b = of(left), of(right)
    assert points(iv.intersect(a, b).pairs()) == points(left) & points(right)
    assert points(iv.subtract(a, b).pairs()) == points(left) - points(right)
    assert points(iv.merge(a, b).pairs()) == points(left) | points(right)


@given(PAIRS, PAIRS)
def test_covered_counts_points_inside_each_query(
    pairs: list[tuple[int, int]], queries: list[tuple[int, int]]
) -> None:
    found = iv.covered(of(pairs), [q[0] for q in queries], [q[1] for q in queries])
    assert found.tolist() == [len(points(pairs) & points([query])) for query in queries]


@given(PAIRS, st.integers(-30, 30), st.integers(0, 40))
def test_complement_and_clip_split_a_window(pairs: list[tuple[int, int]], start: int, size: int) -> None:
    inner = of(pairs)
    inside, outside = iv.clip(inner, start, start + size), iv.complement(inner, start, start + size)
    assert inside.total + outside.total == size
    assert not points(inside.pairs()) & points(outside.pairs())


@given(PAIRS, st.integers(-20, 20), st.integers(1, 40))
def test_sweep_is_the_capped_sum_at_every_instant(
    pairs: list[tuple[int, int]], start: int, size: int
) -> None:
    weights = [0.25 * (number % 4) + 0.25 for number in range(len(pairs))]
    expected = 0.0
    for at in range(start, start + size):
        expected += min(1.0, sum(w for (a, b), w in zip(pairs, weights, strict=True) if a <= at < b))
    found = iv.sweep(
        [p[0] for p in pairs], [p[1] for p in pairs], weights, start=start, end=start + size, cap=1.0
    )
    assert abs(found - expected) < 1e-9


def test_times_beyond_the_precision_of_floats_stay_exact() -> None:
    base = 1_790_857_026_000_000_001  # odd, above 2**53: a float would lose it
    found = iv.union([base, base + 2], [base + 1, base + 5])
    assert found.total == int(Decimal(base + 1) - Decimal(base) + Decimal(3))
    assert iv.covered(found, [base], [base + 3]).tolist() == [2]
