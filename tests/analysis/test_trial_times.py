"""The step times of a trial of a run are those that comparisons take."""

from __future__ import annotations

from dataclasses import replace

from profrun.analysis.trial_times import mean_ns, trial_times, typical_ns
from profrun.store.documents import Steps
from tests.store.states import trial_record

TIMES = (900, *[100, 101, 99] * 5, *[120, 121, 119] * 20)
STEPS = Steps(
    "optimizer",
    "cuda_event",
    len(TIMES),
    measured=TIMES[3:8],
    all_ns=TIMES,
    in_window=tuple(3 <= place < 8 for place in range(len(TIMES))),
)


def test_without_a_profiler_the_steady_steps_count_and_else_the_recorded_ones() -> None:
    plain = trial_record(0, "none", False, 1, steps=STEPS)
    assert (len(trial_times(plain)), typical_ns(plain)) == (60, 120)
    assert trial_times(plain, "window") == TIMES[3:8]
    assert set(trial_times(plain, "recorded")) == {99, 100, 101}
    assert trial_times(trial_record(0, "torch", False, 1, steps=STEPS)) == TIMES[3:8]


def test_what_has_no_steps_or_no_times_stays_what_it_is() -> None:
    run = Steps("run", "wall", 1, measured=(5,), all_ns=(5,), in_window=(True,))
    assert trial_times(trial_record(0, "none", False, 1, steps=run)) == (5,)
    assert typical_ns(trial_record(0, "none", False, 1, steps=Steps())) is None
    unread = replace(STEPS, in_window=(True,))
    assert trial_times(trial_record(0, "none", False, 1, steps=unread)) == TIMES[3:8]


def test_the_mean_is_of_every_steady_step_but_not_of_the_first_of_the_program() -> None:
    bursts = (12, *[10, 10, 10, 370] * 500)
    steps = Steps("explicit", "wall", len(bursts), bursts[1:4], bursts, in_window=(False,) * len(bursts))
    plain = trial_record(0, "none", False, 1, steps=steps)
    assert (mean_ns(plain), typical_ns(plain)) == (100.0, 10)
    few = (12, *[20_000_000] * 7)
    steps = Steps("explicit", "wall", 8, few[2:5], few, in_window=(False, False, *[True] * 3, *[False] * 3))
    assert mean_ns(trial_record(0, "none", False, 1, steps=steps)) == 20_000_000
    assert mean_ns(trial_record(0, "none", False, 1, steps=Steps())) is None
