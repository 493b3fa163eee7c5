"""The oracle sees each kind of broken promise when there is one, and none when there is none."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real.faults import oracle
from tests.real.faults.desk import Answer, Desk
from tests.real.faults.jobs import MARK, Beats
from tests.real.faults.plan import SHAPES
from tests.real.faults.processes import alive

STEPS = SHAPES["steps"]


def trial(run: Path, name: str = "000-a", state: str = "finished") -> Path:
    folder = run / "trials" / name
    folder.mkdir(parents=True)
    (folder / "exit.json").write_text(json.dumps({"state": state}))
    return folder


def test_a_finished_trial_that_stays_is_kept(tmp_path: Path) -> None:
    trial(tmp_path)
    trial(tmp_path, "001-a", "failed")
    before = oracle.finished(tmp_path)
    assert [one.trial for one in before] == ["000-a"]
    assert oracle.kept(tmp_path, before) == []


def test_a_finished_trial_that_is_gone_is_lost(tmp_path: Path) -> None:
    folder = trial(tmp_path)
    before = oracle.finished(tmp_path)
    (folder / "exit.json").unlink()
    (broken,) = oracle.kept(tmp_path, before)
    assert broken == "lost: 000-a had finished and has not any more"


def test_an_exit_that_is_written_again_with_the_same_words_is_lost(tmp_path: Path) -> None:
    folder = trial(tmp_path)
    before = oracle.finished(tmp_path)
    (folder / "again").write_bytes((folder / "exit.json").read_bytes())
    (folder / "again").rename(folder / "exit.json")
    assert oracle.kept(tmp_path, before) == ["lost: exit.json of 000-a was changed"]


def test_a_repeated_trial_is_lost(tmp_path: Path) -> None:
    folder = trial(tmp_path)
    before = oracle.finished(tmp_path)
    (folder / "attempts" / "1").mkdir(parents=True)
    assert oracle.kept(tmp_path, before) == ["lost: 000-a had finished and was repeated"]


def test_executions_that_overlap_are_seen_and_ranks_of_one_are_not() -> None:
    first = [Beats("000-a", "h-1", 0, 100, True), Beats("000-a", "h-1", 5, 110, True)]
    assert oracle.apart([*first, Beats("001-a", "h-2", 120, 200, True)]) == []
    (broken,) = oracle.apart([*first, Beats("001-a", "h-2", 105, 200, True)])
    assert broken.startswith("overlap: 001-a was started")


def status(*trials: tuple[str, str | None, int], state: str = "finished") -> Answer:
    rows: list[dict[str, object]] = [
        {"trial": f"{n:03d}", "state": state, "reason": reason, "steps": steps, "warnings": []}
        for n, (state, reason, steps) in enumerate(trials)
    ]
    return Answer(("status",), 0, json.dumps({"state": state, "trials": rows}), "")


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (("finished", None, 12), []),
        (("planned", None, 0), []),
        (("lost", "it was killed", 0), []),
        (("lost", None, 0), ["001 is lost without a reason"]),
        (("running", None, 0), ["001 is running, and no process of it lives"]),
    ],
)
def test_a_state_without_an_end_or_a_reason_is_seen(
    second: tuple[str, str | None, int], words: list[str]
) -> None:
    assert oracle.states(status(("finished", None, 12), second), 2) == words


def test_a_run_that_is_not_as_an_undisturbed_one_is_seen() -> None:
    assert oracle.whole(status(("finished", None, 12), ("finished", None, 12)), STEPS) == []
    for second in (("finished", None, 11), ("failed", "why", 12)):
        assert oracle.whole(status(("finished", None, 12), second), STEPS)
    assert oracle.whole(status(("finished", None, 12)), STEPS)


def test_steps_may_be_missing_only_where_the_hook_is_said_to_have_failed() -> None:
    rows = [{"trial": f"{n:03d}", "state": "finished", "reason": None, "steps": 1} for n in range(2)]
    for code, severity, broken in (
        ("hook-failed", "critical", False),
        ("no-steps", "info", True),
    ):
        warned = [{**row, "warnings": [{"code": code, "severity": severity}]} for row in rows]
        answer = Answer(("status",), 0, json.dumps({"state": "finished", "trials": warned}), "")
        assert bool(oracle.whole(answer, STEPS)) == broken


def test_a_command_that_hangs_or_fails_is_seen() -> None:
    assert oracle.answered([Answer(("status",), 0, "", "")]) == []
    assert oracle.answered([Answer(("status",), None, "", "")]) == ["hung: `status` did not come to its end"]
    assert oracle.answered([Answer(("status",), 70, "", "bug")]) == ["`status` ended with 70: bug"]


def test_a_lock_that_is_held_is_seen(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    assert oracle.no_lock(tmp_path) == []
    with (tmp_path / "lock").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert oracle.no_lock(tmp_path) == ["left: lock is held"]


def test_a_file_outside_and_a_crash_are_seen(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert oracle.nothing_outside(desk) == []
    (tmp_path / "tmp" / "left.bin").touch()
    (tmp_path / "state" / "crash-1.log").write_text("argv\nKeyError: 'x'\n")
    assert oracle.nothing_outside(desk) == ["left: tmp/left.bin", "bug: KeyError: 'x'"]


def test_a_traceback_of_ours_is_seen_and_the_programs_own_is_not(tmp_path: Path) -> None:
    theirs = f'{oracle.TRACEBACK}:\n  File "/home/me/work.py", line 1\nValueError: mine\n'
    ours = f'{oracle.TRACEBACK}:\n  File "/r/bundle/_profrun/in_job/trial.py", line 1\nOSError: no\n'
    assert not oracle.ours(theirs)
    assert oracle.ours(theirs + ours)
    desk = Desk(tmp_path)
    desk.said.append(Answer(("resume",), 1, "", ours))
    assert oracle.no_traceback(desk) == ["traceback: `resume`: OSError: no"]


def test_a_process_of_the_run_that_lives_is_found(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", "print(1, flush=True); input()"],
        env={**os.environ, MARK: str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    child.stdout.readline()
    assert [one.pid for one in alive(tmp_path)] == [child.pid]
    child.communicate(b"\n")
    assert alive(tmp_path) == []
