"""Which states of a trial are an end."""

from __future__ import annotations

from typing import get_args

from profrun.contract.exit import EndState
from profrun.contract.states import TERMINAL, TrialState


def test_a_trial_has_ended_as_its_wrapper_says_or_is_lost_or_was_not_needed() -> None:
    assert {*get_args(EndState), "lost", "skipped"} == TERMINAL


def test_only_a_trial_that_has_not_ended_may_change() -> None:
    assert set(get_args(TrialState)) - TERMINAL == {"planned", "queued", "running", "finalising"}
