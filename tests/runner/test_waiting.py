"""Why trials cannot start is told once, and when it changes."""

from __future__ import annotations

from profrun.contract.states import WAITS_TURN, Status
from profrun.runner.waiting import Waiting

DOWN = Status("queued", "PartitionDown: the partition is down")
FULL = Status("queued", "Resources: no node is free")
RUNNING = Status("running")


def test_a_reason_is_told_once_for_all_trials() -> None:
    waiting = Waiting()
    assert waiting.news({"a": DOWN, "b": DOWN}) == [f"2 trials cannot start yet: {DOWN.reason}"]
    assert waiting.news({"a": DOWN, "b": DOWN}) == []
    assert waiting.news({"b": DOWN}) == []


def test_a_reason_that_changed_is_told_again() -> None:
    waiting = Waiting()
    waiting.news({"a": DOWN})
    assert waiting.news({"a": FULL}) == [f"1 trial cannot start yet: {FULL.reason}"]
    assert waiting.news({"a": DOWN}) == [f"1 trial cannot start yet: {DOWN.reason}"]


def test_the_same_reason_after_a_trial_ran_is_no_news() -> None:
    waiting = Waiting()
    waiting.news({"a": FULL})
    assert waiting.news({"a": RUNNING}) == []
    assert waiting.news({"b": FULL}) == []


def test_what_waits_as_planned_or_runs_is_not_told() -> None:
    turn = Status("queued", "its turn comes", code=WAITS_TURN)
    assert Waiting().news({"a": RUNNING, "b": turn, "c": Status("queued")}) == []
