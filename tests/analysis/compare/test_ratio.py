"""The one estimator of step-time ratios: a number with its interval, or none with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from profrun.analysis.compare import ComparedTrial, compare
from profrun.analysis.compare.blocking import blocking_twins
from profrun.analysis.compare.comparability import reasons
from profrun.analysis.compare.ratio import OVERHEAD_DIFFERENCES, step_ratio
from profrun.analysis.compare.sides import Side
from tests.analysis.compare.trials import OTHER, trial


def _repeats(factor: int, **changes: Any) -> list[ComparedTrial]:
    return [
        trial(tuple(factor * (100 + (7 * n + step) % 5) for step in range(12)), **changes) for n in range(3)
    ]


def test_every_answer_has_the_same_ratio_and_interval() -> None:
    a, b = _repeats(1), _repeats(2, blocking=True)
    whole = compare(a, b, allow=["blocking"])
    twins = blocking_twins(a, b)
    alone = step_ratio((Side(a), Side(b)), [])
    assert whole.ratio == twins.ratio == alone.ratio == pytest.approx(2.0, rel=0.02)
    assert whole.ci95 == twins.ci95 == alone.ci95
    assert alone.step_ns == twins.step_ns == (whole.sides[0].step_ns, whole.sides[1].step_ns)
    assert (alone.trials, alone.trials_needed, alone.verdict) == ((3, 3), whole.trials_needed, "slower")


def test_a_reason_that_stops_leaves_no_number() -> None:
    a, b = [trial()], [trial(OTHER, blocking=True)]
    found = step_ratio((Side(a), Side(b)), reasons(a, b))
    assert (found.verdict, found.ratio, found.ci95, found.step_ns) == ("incomparable", None, None, None)
    assert [one.code for one in found.reasons if one.stops] == ["blocking"]


def test_overhead_is_asked_in_spite_of_what_a_profiler_changes() -> None:
    plain = _repeats(1, collector="none", tool="none", profiled=False, measure="event")
    found = compare(plain, _repeats(2), allow=OVERHEAD_DIFFERENCES)
    assert found.ratio == pytest.approx(2.0, rel=0.02)
    assert {one.code for one in found.reasons if one.allowed} == {"profiled"}
