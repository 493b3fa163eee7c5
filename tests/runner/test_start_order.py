"""Which trials may start: the order holds for every lane, whatever ends first."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from profrun.backends.base import HERE, Lane
from profrun.jobs.load import load_text
from profrun.plans.make import make_plan
from profrun.plans.model import Trial
from profrun.runner.start_order import StartOrder

TRIALS = make_plan(load_text("name: t\ncommand: python x.py\ncollectors: [none]\nrepeats: 12\n")).trials
LANES = [None, HERE, Lane("a", 2), Lane("b", 3, together=True)]


def ids(taken: list[list[Trial]]) -> list[list[str]]:
    return [[trial.id for trial in trials] for trials in taken]


def test_one_trial_waits_for_the_one_before() -> None:
    first, second, third = (trial.id for trial in TRIALS[:3])
    order = StartOrder(TRIALS[:3], dict.fromkeys((first, second, third), HERE))
    assert ids(order.take([])) == [[first]]
    assert ids(order.take([first])) == []
    assert ids(order.take([])) == [[second]]
    assert ids(order.take([])) == [[third]]
    assert ids(order.take([])) == []


def test_those_without_a_lane_are_submitted_at_once() -> None:
    order = StartOrder(TRIALS, {trial.id: None for trial in TRIALS})
    assert ids(order.take(["another"])) == [[trial.id for trial in TRIALS]]


def test_a_trial_that_still_runs_from_before_holds_its_place() -> None:
    lanes: Mapping[str, Lane | None] = {trial.id: Lane("site", 2) for trial in TRIALS}
    order = StartOrder(TRIALS[1:4], lanes)
    assert ids(order.take([TRIALS[0].id])) == [[TRIALS[1].id]]
    both = {trial.id: Lane("site", 2, together=True) for trial in TRIALS}
    order = StartOrder(TRIALS[1:4], both)
    assert ids(order.take([TRIALS[0].id])) == []
    assert ids(order.take([])) == [[trial.id for trial in TRIALS[1:4]]]


@given(st.lists(st.sampled_from(LANES), min_size=12, max_size=12), st.integers(0, 12), st.data())
def test_lanes_are_kept_and_nobody_is_forgotten(
    chosen: list[Lane | None], running: int, data: st.DataObject
) -> None:
    lanes = {trial.id: lane for trial, lane in zip(TRIALS, chosen, strict=True)}
    order = StartOrder(TRIALS[running:], lanes)
    active = {trial.id for trial in TRIALS[:running]}
    started: list[str] = []
    for _ in range(100):
        for trials in order.take(active):
            given_to = {lanes[trial.id] for trial in trials}
            assert len(given_to) == 1
            (lane,) = given_to
            if lane is not None:
                before = [trial for trial in active if lanes[trial] == lane]
                assert (lane.together and not before) or len(before) + len(trials) <= lane.width
                assert lane.together or len(trials) == 1
            started += [trial.id for trial in trials]
            active |= {trial.id for trial in trials}
        if not active:
            break
        active.remove(data.draw(st.sampled_from(sorted(active))))
    assert sorted(started) == [trial.id for trial in TRIALS[running:]]
    for lane in LANES:
        own = [trial for trial in started if lanes[trial] == lane]
        assert own == sorted(own)
