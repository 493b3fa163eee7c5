"""What goes into a comparison, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from profrun.analysis.compare import compare
from profrun.errors import UsageError
from tests.analysis.compare.trials import OTHER, trial


def test_a_cold_first_step_is_named_and_stays_in_the_statistics() -> None:
    cold = trial((900, 100, 101, 99, 100))
    units = tuple(replace(unit, outlier=unit.step == 0) for unit in cold.samples)
    found = compare([trial()], [replace(cold, samples=units)])
    assert found.sides[1].outliers == ("t: step 0",)
    assert found.sides[1].steps == 5
    assert found.sides[1].typical_ns == pytest.approx(100.0)
    mean = next(metric for metric in found.metrics if metric.name == "step, mean")
    assert mean.b == pytest.approx(260.0)


def test_a_step_with_work_missing_is_in_no_number() -> None:
    cut = trial((100, 101, 99, 100, 20))
    units = tuple(replace(unit, edge=unit.step == 4) for unit in cut.samples)
    side = compare([trial()], [replace(cut, samples=units)]).sides[1]
    assert (side.steps, side.edges) == (4, ("t: step 4",))


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: compare([], [trial()]), "side has no trace"),
        (lambda: compare([trial()], [trial(OTHER)], allow=["everything"]), "nothing to allow"),
        (lambda: compare([trial()], [trial(OTHER)], threshold=5.0), "threshold"),
        (lambda: compare([trial()], [trial(OTHER)], by="colour"), "no breakdown by"),  # type: ignore[arg-type]
        (lambda: compare([trial()], [trial(OTHER)], per="0,5"), "above 0"),
    ],
)
def test_wrong_use_is_one_clear_line(call: Callable[[], object], word: str) -> None:
    with pytest.raises(UsageError, match=word):
        call()
