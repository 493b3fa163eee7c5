"""What a row of a table may be called: a word about its time needs repeats and an interval without 1."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profrun.analysis.compare.model import Row
from profrun.analysis.compare.rows import Limits, estimate_of, estimate_of_means, judged, new_row
from profrun.analysis.compare.sides import Side
from profrun.analysis.compare.stats import Estimate, estimate
from tests.analysis.compare.trials import trial

SURE = estimate(
    [[100.0, 101.0], [101.0, 100.0], [100.0, 100.0]], [[121.0], [120.0], [122.0]], statistic="mean"
)
EQUAL = estimate([[100.0, 100.2], [100.1, 100.0]], [[100.1, 100.0], [100.0, 100.2]], statistic="mean")
UNEVEN = estimate([[100.0], [140.0], [90.0]], [[120.0], [150.0], [105.0]], statistic="mean")


def _row(a_ns: float, b_ns: float, name: str = "k") -> Row:
    return new_row(name, (a_ns, b_ns), (1.0, 1.0))


@pytest.mark.parametrize(
    ("a_ns", "b_ns", "found", "status"),
    [
        (100, 200, None, "unclear"),  # one trial per side: twice as long, and nothing proves it
        (100, 121, SURE, "slower"),
        (100, 100.05, EQUAL, "same"),
        (100, 121, UNEVEN, "unclear"),
        (100, 0, None, "removed"),
        (0, 100, None, "added"),
    ],
)
def test_what_a_row_is_called(a_ns: float, b_ns: float, found: Estimate | None, status: str) -> None:
    (row,) = judged([_row(a_ns, b_ns)], lambda _: found, Limits(0.01))
    assert row.status == status
    assert row.ci95 == (found.ci95 if found else None)


def test_a_change_that_does_not_matter_for_the_step_is_the_same() -> None:
    (row,) = judged([_row(100, 121)], lambda _: SURE, Limits(0.01, matters_ns=50))
    assert row.status == "same"


def test_one_row_of_forty_needs_more_proof_than_one_row_alone() -> None:
    """A row whose own interval just excludes 1: alone it is slower, beside 39 equal rows it is unclear."""
    assert SURE.ci95 is not None
    barely = replace(SURE, p_value=0.04)
    (alone,) = judged([_row(100, 121)], lambda _: barely, Limits(0.01))
    rows = [_row(1000, 1210, "suspect"), *(_row(100, 100.05, f"k{n}") for n in range(39))]
    among = judged(rows, lambda row: barely if row.name == "suspect" else EQUAL, Limits(0.01))
    assert (alone.status, among[0].status) == ("slower", "unclear")


def test_an_interval_needs_two_trials_on_both_sides() -> None:
    row = replace(_row(50.2, 49.8), a_names=("k",), b_names=("k",))
    one, two = [trial()], [trial(), trial((99, 101, 100, 100, 102))]
    assert estimate_of(row, (Side(one), Side(two))) is None
    assert estimate_of(row, (Side(two), Side(two))) is not None
    part = replace(row, a_ns=25.0)  # only half of the calls of the kernel: its times per step are not known
    assert estimate_of(part, (Side(two), Side(two))) is None


def test_means_of_trials_are_enough_for_an_interval() -> None:
    found = estimate_of_means([100, 101, 99], [120, 121, 119])
    assert found is not None
    assert found.ci95 is not None
    assert found.ci95[0] > 1
    assert estimate_of_means([100], [120, 121]) is None
    assert estimate_of_means([100, 0], [120, 121]) is None
