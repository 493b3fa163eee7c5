"""Which experiments the time of an improvement is enough for."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.analysis.rules.experiments import Experiment
from profrun.runner.improve_budget import Budget, trials_s
from profrun.store.state import read_state
from tests.runner.scripted import new_run

ASKED = [Experiment("a"), Experiment("b"), Experiment("c")]


@pytest.mark.parametrize(
    ("total_s", "spent_s", "rounds_s", "tried"),
    [
        # A trial takes 10 s, so a round of the base and one experiment takes 20 s; three rounds are needed.
        (600, 0, 480, 3),  # 12 trials are kept for the last stage
        (240, 0, 120, 3),
        (300, 60, 120, 3),
        (180, 0, 90, 2),  # half of it is kept
        (120, 0, 60, 1),
        (1, 0, 1, 1),  # one is always tried
        (60, 90, 1, 1),
    ],
)
def test_time_is_kept_for_the_last_stage(total_s: float, spent_s: float, rounds_s: float, tried: int) -> None:
    budget = Budget(total_s, [40.0, 10.0], 8)
    assert budget.for_rounds(spent_s) == rounds_s
    chosen, not_tried = budget.choose(ASKED, spent_s)
    assert [*(one.name for one in chosen), *not_tried] == ["a", "b", "c"]
    assert len(chosen) == tried
    assert set(not_tried.values()) <= {f"the budget of {total_s / 60:.3g} min is too short for it"}


def test_fewer_rounds_leave_time_for_more_experiments() -> None:
    assert len(Budget(120, [10.0], 2).choose(ASKED, 0)[0]) == 2
    assert len(Budget(120, [10.0], 3).choose(ASKED, 0)[0]) == 1


def test_all_rounds_of_the_last_stage_are_planned_with_the_longest_trial() -> None:
    budget = Budget(1000, [10.0, 20.0], 8)  # 8 rounds of two trials, and two that are recorded
    assert budget.allows_all_rounds(1000 - 18 * 20)
    assert not budget.allows_all_rounds(1001 - 18 * 20)


def test_trials_that_have_not_ended_take_no_time(tmp_path: Path) -> None:
    state = read_state(new_run(tmp_path)[0])
    assert trials_s(state) == [0.0]
    assert Budget(1, trials_s(state), 8).choose(ASKED, 0) == (ASKED, {})
