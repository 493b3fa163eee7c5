"""The spread of step times: bins and outliers add up to all steps, and outliers are named."""

from __future__ import annotations

import dataclasses

import numpy as np

from profrun.analysis.trace.step_spread import step_spread
from profrun.analysis.trace.steps import Step

ONE = Step(0, 0, 0, 0, 0, 100, 100, 0, 0, 0, 0, 0, 0, 0, 0, 0, {}, 0)


def steps(*times: int) -> list[Step]:
    return [dataclasses.replace(ONE, step=number, span_ns=time) for number, time in enumerate(times)]


def test_outliers_are_named_and_all_steps_are_counted() -> None:
    times = [*range(1000, 1030), 9000, 5000, 1]
    found = step_spread(steps(*times))
    assert found is not None
    assert [step.step for step in found.outliers] == [30, 31, 32]  # the furthest first
    assert int(found.counts.sum()) + found.outlier_count == len(times)
    assert found.quartile_ns == tuple(np.percentile(times, (25, 50, 75)))
    assert found.typical.span_ns == 1015
    inside = [time for time in times if 1000 <= time < 1030]
    for low, high, count in zip(found.edges[:-1], found.edges[1:], found.counts, strict=True):
        assert count == sum(low <= time < high for time in inside)


def test_equal_steps_have_no_outlier() -> None:
    found = step_spread(steps(*[500] * 30))
    assert found is not None
    assert (found.outliers, int(found.counts.sum())) == ((), 30)


def test_withheld_times_have_no_spread() -> None:
    withheld = dataclasses.replace(ONE, span_ns=None)  # type: ignore[arg-type]
    assert step_spread([withheld]) is None
    assert step_spread([]) is None
