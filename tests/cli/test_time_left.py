"""The time left of a run, from its trials that have ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.cli.time_left import TimeLeft, clock_text
from tests.runner.scripted import new_run

SPEC = "name: t\ncommand: x {n}\nvariants: {a: {n: 1}, b: {n: 2}}\ncollectors: [none, torch]\nrepeats: 2\n"


def test_it_is_told_when_a_trial_of_each_collector_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight trials: a and b take 10 s and 20 s without a profiler, 100 s with torch."""
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    _, plan = new_run(tmp_path, SPEC)
    assert [trial.id for trial in plan.trials][:4] == [
        "000-a-none-r1",
        "001-b-none-r1",
        "002-a-torch-r1",
        "003-b-torch-r1",
    ]
    left = TimeLeft(plan.trials)
    said = []
    for trial in plan.trials:
        left.begin(trial.id)
        now[0] += 5
        said.append(left.text(trial.id))
        now[0] += {"none": {"a": 5, "b": 15}, "torch": {"a": 95, "b": 95}}[trial.collector][trial.variant]
        left.end(trial.id, counts=True)
    assert said == [
        None,  # nothing has ended
        "over 0:25 left",  # b as long as a: 5 of 10 left, then two more; torch is not known
        "over 0:30 left",
        "5:25 left",
        "3:45 left",
        "3:35 left",
        "3:15 left",
        "1:35 left",
    ]


def test_failed_trials_do_not_say_how_long_others_take(tmp_path: Path) -> None:
    _, plan = new_run(tmp_path, SPEC)
    left = TimeLeft(plan.trials)
    left.begin(plan.trials[0].id)
    left.end(plan.trials[0].id, counts=False)
    assert left.text(plan.trials[1].id) is None
    left.took(plan.trials[4].id, 60.0)
    assert left.text(plan.trials[1].id) == "over 2:00 left"  # b-none twice; a-none-r1 has ended


def test_seconds_as_a_clock() -> None:
    assert [clock_text(value) for value in (8.9, 130, 3730)] == ["0:08", "2:10", "1:02:10"]
