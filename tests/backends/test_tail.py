"""Text files read while they grow."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from profrun.backends.tail import Tail, has_ended, trial_lines
from profrun.contract.states import Status, TrialState
from profrun.errors import InputError, UnavailableError
from profrun.store.events import Handle
from profrun.store.runs import Run


def test_lines_come_once_and_an_unfinished_one_at_the_end(tmp_path: Path) -> None:
    tail = Tail(tmp_path / "log")
    assert list(tail.lines(last=False)) == []
    for written, last, lines in (
        (b"one\r\ntw", False, ["one"]),
        (b"o\nthree\xff", False, ["two"]),
        (b"", True, ["three\ufffd"]),
        (b"", True, []),
    ):
        with tail.path.open("ab") as file:
            file.write(written)
        assert list(tail.lines(last=last)) == lines


class Engine:
    """Answers with these states, one after another; without one it cannot be asked."""

    def __init__(self, *states: TrialState | None) -> None:
        self.states = iter(states)

    def status(self, handles: Mapping[str, Handle], run: Run) -> Mapping[str, Status]:
        state = next(self.states)
        if state is None:
            raise UnavailableError("the engine does not answer")
        if state == "finished":
            (run.trial("t").folder / "stderr.rank1.log").write_text("err 1")
        return dict.fromkeys(handles, Status(state))


HANDLE = Handle("local", {})


def test_following_ends_with_the_trial(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.trial("t").folder.mkdir(parents=True)
    run.trial("t").stdout.write_text("out 0\n")
    engine = Engine("running", None, "finished")
    assert list(trial_lines(engine, HANDLE, run, "t", follow=True, pause_s=0)) == ["out 0", "err 1"]
    assert list(trial_lines(Engine(), HANDLE, run, "t", follow=False)) == ["out 0", "err 1"]


def test_an_engine_that_does_not_answer_has_ended_nothing(tmp_path: Path) -> None:
    assert [has_ended(Engine(state), HANDLE, Run(tmp_path), "t") for state in (None, "running", "lost")] == [
        False,
        False,
        True,
    ]


def test_a_long_log_comes_in_blocks_and_a_long_line_in_pieces(tmp_path: Path) -> None:
    log = tmp_path / "stdout.log"
    log.write_bytes(b"first\n" + b"x" * (5 << 20) + b"\nlast line\nunfinished")
    tail = Tail(log)
    found = list(tail.lines(last=False))
    assert (found[0], found[-1]) == ("first", "last line")
    assert "".join(found[1:-1]) == "x" * (5 << 20)
    assert max(map(len, found)) <= 2 << 20
    with log.open("a") as file:
        file.write(" no more\n")
    assert list(tail.lines(last=True)) == ["unfinished no more"]


def test_a_log_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("mine")
    (tmp_path / "stdout.log").symlink_to(tmp_path / "secret")
    with pytest.raises(InputError, match="symbolic link"):
        list(Tail(tmp_path / "stdout.log").lines(last=True))
