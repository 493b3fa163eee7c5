"""What the script of a shared allocation writes down, and what that means for a trial."""

from __future__ import annotations

import pytest

from profrun.backends.slurm.turns import Turn, ended_early, no_exit, parse_turns, skipped, turn_status
from profrun.contract.exit import Exit
from profrun.contract.states import Status

RUNNING, QUEUED = Status("running"), Status("queued", "Resources")
FINISHED = Exit("a", "finished", exit_code=0)
PREEMPTED = Exit("a", "timeout", stopped_by="SIGTERM")


def test_lines_are_read() -> None:
    text = "begin a\nend a 0\nbegin b\nskip b cancelled\nbegin c\nskip c time\nbegin d\n"
    assert parse_turns(text) == {
        "a": Turn("ended", code=0),
        "b": Turn("skipped", why="cancelled"),
        "c": Turn("skipped", why="time"),
        "d": Turn("begun"),
    }


def test_what_had_only_begun_begins_anew_after_a_restart() -> None:
    text = "begin a\nend a 0\nbegin b\nrestart\n"
    assert parse_turns(text) == {"a": Turn("ended", code=0)}
    assert parse_turns(text + "begin b\n")["b"] == Turn("begun")


@pytest.mark.parametrize(
    ("living", "turn", "ended", "cancelled", "expected"),
    [
        (RUNNING, None, None, False, ("queued", "its turn comes in allocation 7", "waits-turn")),
        (RUNNING, None, None, True, ("cancelled", "cancelled before it started", None)),
        (RUNNING, None, FINISHED, False, ("finished", None, None)),
        (
            RUNNING,
            Turn("skipped", why="cancelled"),
            None,
            True,
            ("cancelled", "cancelled before it started", None),
        ),
        (RUNNING, Turn("begun"), FINISHED, False, None),
        (RUNNING, Turn("ended", 0), FINISHED, False, None),
        (QUEUED, None, None, False, None),
        (QUEUED, Turn("ended", 0), FINISHED, False, ("finished", None, None)),
        (QUEUED, Turn("begun"), PREEMPTED, False, None),
    ],
)
def test_a_trial_while_its_allocation_lives(
    living: Status,
    turn: Turn | None,
    ended: Exit | None,
    cancelled: bool,
    expected: tuple[str, str | None, str | None] | None,
) -> None:
    found = turn_status("7", living, turn, ended, cancelled=cancelled)
    assert (found and (found.state, found.reason, found.code)) == expected


def test_what_never_ran_is_lost_and_is_run_on_resume() -> None:
    for status in (skipped(Turn("skipped", why="time")), ended_early("TIMEOUT")):
        assert status.state == "lost"
        assert "`profrun resume`" in (status.reason or "")
    assert ended_early("CANCELLED").state == "cancelled"


def test_a_step_without_an_exit_is_no_success() -> None:
    status = no_exit(Turn("ended", code=1), "srun: error: Unable to create step")
    assert status.state == "failed"
    assert "exit code 1" in (status.reason or "")
    assert "Unable to create step" in (status.reason or "")
