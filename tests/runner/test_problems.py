"""What is wrong with a run, each sentence once."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from profrun.contract.change_findings import applied, not_applied
from profrun.contract.changes import parse
from profrun.contract.exit import Exit
from profrun.contract.finding import Finding
from profrun.contract.paths import TrialPaths
from profrun.runner.problems import Problem, problems_of, reason_of
from profrun.store.documents import Steps
from profrun.store.runs import Run
from tests.store.states import state_of, trial_record

NO_STEP = "no step was seen: call profrun.step() once an iteration, or use an optimizer or nn.Module"
KINETO = "USDT:2026-11-27 01:20:05 15227:15227 SyncActivityProfilerHandler.cpp:59] profiler_stop"


def test_a_sentence_about_several_trials_stands_once(tmp_path: Path) -> None:
    warned = Exit("t", "finished", warnings=(Finding("clock", "warning", "the clocks moved"),))
    state = state_of(
        trial_record(0, "none", False, 1, exit=warned),
        trial_record(1, "none", False, 1, exit=warned),
        trial_record(2, "none", False, 1, normalise_error="it is torn"),
        trial_record(3, "none", False, 1, state="failed", exit_code=3),
        trial_record(4, "none", False, 1, state="queued", reason="Priority"),
    )
    state = dataclasses.replace(state, run=Run(tmp_path), notes=("a line is torn",))
    assert [str(problem) for problem in problems_of(state)] == [
        "000-base-none-r1 and 1 more: the clocks moved",
        "002-base-none-r1: no trace: it is torn",
        "003-base-none-r1: failed: exit code 3",
        "004-base-none-r1: queued: Priority",
        "a line is torn",
    ]


def test_a_change_that_was_made_is_no_problem_and_one_that_was_not_is_told_once(tmp_path: Path) -> None:
    change = parse("loader-workers=4")
    made = Exit("t", "finished", warnings=(applied(change, "1 DataLoader got 4 worker processes"),))
    nothing = Exit("t", "finished", warnings=(not_applied(change, "the program made no DataLoader"),))
    state = state_of(
        trial_record(0, "none", False, 1, exit=made),
        trial_record(1, "none", False, 1, exit=nothing),
        trial_record(2, "none", False, 1, exit=nothing),
        trial_record(3, "none", False, 1, exit=made, steps=Steps("none", "wall", 0)),
    )
    assert [str(problem) for problem in problems_of(dataclasses.replace(state, run=Run(tmp_path)))] == [
        "001-base-none-r1 and 1 more: loader-workers=4 changed nothing: the program made no DataLoader",
        f"003-base-none-r1: {NO_STEP}",
    ]


def test_a_run_in_which_nothing_is_wrong(tmp_path: Path) -> None:
    state = dataclasses.replace(state_of(trial_record(0, "none", False, 1)), run=Run(tmp_path))
    assert problems_of(state) == []


@pytest.mark.parametrize(
    ("state", "stderr", "reason"),
    [
        ("failed", "first\nBoom\n", "it broke; it ended with: Boom"),
        ("failed", "it broke\n", "it broke"),
        ("failed", "", "it broke"),
        ("cancelled", "Boom\n", "it broke"),
    ],
)
def test_why_a_trial_did_not_finish(tmp_path: Path, state: str, stderr: str, reason: str) -> None:
    (tmp_path / "stderr.log").write_text(stderr)
    record = trial_record(0, "none", False, 1, state=state, reason="it broke", paths=TrialPaths(tmp_path))
    assert reason_of(record) == reason


@pytest.mark.parametrize(
    ("profiler", "last"),
    [("torch", "Boom"), ("nsys", KINETO), ("of_another_package", KINETO), (None, KINETO)],
)
def test_lines_of_the_profiler_are_not_the_programs_last_words(
    tmp_path: Path, profiler: str | None, last: str
) -> None:
    (tmp_path / "stderr.log").write_text(f"Boom\n{KINETO}\n\n")
    record = trial_record(0, "t", False, 1, state="failed", reason="it broke", paths=TrialPaths(tmp_path))
    record = dataclasses.replace(record, profiler=profiler)
    assert reason_of(record) == f"it broke; it ended with: {last}"
    (tmp_path / "stderr.log").write_text(f"{KINETO}\n")
    assert (reason_of(record) == "it broke") == (profiler == "torch")


@pytest.mark.parametrize(
    ("count", "said"), [(0, "no step was seen"), (2, "it made 2 steps, none in the schedule's window")]
)
def test_a_trial_that_measured_nothing(tmp_path: Path, count: int, said: str) -> None:
    state = state_of(trial_record(0, "none", False, 1, steps=Steps("none", "wall", count)))
    (problem,) = problems_of(dataclasses.replace(state, run=Run(tmp_path)))
    assert problem.text.startswith(said)
    assert problem == Problem(problem.text, ("000-base-none-r1",))
