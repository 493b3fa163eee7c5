"""The schedule, against torch.profiler's own."""

from __future__ import annotations

import pytest

from profrun.contract.schedule import Schedule
from tests.conftest import missing


@pytest.mark.thorough
def test_steps_are_counted_as_torch_does() -> None:
    try:
        from torch.profiler import ProfilerAction, schedule
    except ImportError:
        missing("torch")

    ours = {
        "wait": {ProfilerAction.NONE},
        "outside": {ProfilerAction.NONE},
        "warmup": {ProfilerAction.WARMUP},
    }
    ours["active"] = {ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE}
    for wait, warmup, active, repeat, skip in ((1, 1, 3, 1, 0), (0, 1, 2, 2, 3), (2, 3, 1, 3, 1)):
        theirs = schedule(wait=wait, warmup=warmup, active=active, repeat=repeat, skip_first=skip)
        mine = Schedule(wait, warmup, active, repeat, skip).steps()
        for step in range(30):
            assert theirs(step) in ours[mine.part(step)], (mine, step)
            saved = theirs(step) == ProfilerAction.RECORD_AND_SAVE
            assert saved == (mine.part(step) == "active" and mine.ends_cycle(step))


@pytest.mark.parametrize(
    ("schedule", "first", "last"),
    [
        (Schedule(), 1, 4),
        (Schedule(1, 1, 3, 1), 1, 4),
        (Schedule(0, 0, 1, 1), 0, 0),
        (Schedule(2, 1, 1, 2, 3), 5, 10),
        (Schedule(10**9, 1, 1), 10**9, 10**9 + 1),
    ],
)
def test_idle_steps_are_those_that_no_driver_needs(schedule: Schedule, first: int, last: int) -> None:
    steps = schedule.steps()
    assert (steps.idle_until(0), steps.last) == (first, last)
    assert steps.idle_until(last) == last
    assert steps.idle_until(last + 1) is None


def test_between_two_cycles_nothing_is_to_be_done_until_the_next_one_warms_up() -> None:
    steps = Schedule(2, 1, 1, 2, 3).steps()
    assert [steps.idle_until(step) for step in range(4, 12)] == [5, 5, 6, 9, 9, 9, 10, None]


def test_a_schedule_that_waits_for_the_steady_state_is_placed_once_and_its_cycles_follow_at_once() -> None:
    steps = Schedule("steady", 1, 2, repeat=2, skip_first=2).steps()
    assert [steps.part(step) for step in range(100)] == ["outside"] * 2 + ["wait"] * 98
    assert (steps.begin, steps.last, steps.steps_needed, steps.idle_until(5)) == (None, None, None, None)
    assert not any(steps.ends_cycle(step) for step in range(100))
    steps.place(6)
    parts = [steps.part(step) for step in range(14)]
    assert parts == (["outside"] * 2 + ["wait"] * 4 + ["warmup", "active", "active"] * 2 + ["outside"] * 2)
    assert [step for step in range(14) if steps.part(step) == "active" and steps.ends_cycle(step)] == [8, 11]
    assert (steps.idle_until(0), steps.last, steps.steps_needed) == (6, 11, 9)
    steps.forget()
    assert steps.begin is None, "the steps are counted anew"
