"""Signs of life of other ranks: who is late, who is dead, who has failed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from profrun.contract.recording import Rank
from profrun.in_job.rank_signs import RankSigns


class Clock:
    """Time that passes when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr("profrun.in_job.rank_signs._now", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The readers' clock."""
    return Clock(monkeypatch)


def touch(hook: Path, rank: int, seconds: float) -> None:
    """A touch by a host whose clock shows something else."""
    path = hook / f"alive.rank{rank}"
    path.touch()
    os.utime(path, (seconds, seconds))


@pytest.fixture
def signs(tmp_path: Path) -> RankSigns:
    """Of rank 0 of three, with 80 s of patience, so a look at the times every 10 s."""
    (tmp_path / "failed").mkdir()
    return RankSigns(tmp_path, Rank(0, 0, 3), 80)


def pass_time(signs: RankSigns, clock: Clock, seconds: int) -> None:
    for _ in range(seconds // 5):
        clock.now += 5
        signs.look()


def test_a_rank_is_dead_when_it_was_not_touched_for_the_patience(
    tmp_path: Path, signs: RankSigns, clock: Clock
) -> None:
    for beat in range(20):
        touch(tmp_path, 1, beat)
        touch(tmp_path, 2, min(beat, 5))
        pass_time(signs, clock, 10)
        if beat < 12:
            assert signs.dead({1, 2}, 1000.0) == set()
    assert signs.dead({1, 2}, 1000.0) == {2}
    assert [path.name for path in (tmp_path / "failed").iterdir()] == ["rank2"]
    touch(tmp_path, 2, 77)
    pass_time(signs, clock, 20)
    assert signs.dead({1, 2}, 1000.0) == set()
    assert list((tmp_path / "failed").iterdir()) == []


def test_a_rank_that_never_began_is_dead_when_it_was_waited_for_that_long(
    signs: RankSigns, clock: Clock
) -> None:
    pass_time(signs, clock, 200)
    assert signs.dead({1}, clock.now) == set()
    began = clock.now
    pass_time(signs, clock, 100)
    assert signs.dead({1}, began) == {1}


def test_a_folder_that_did_not_answer_makes_nobody_older(
    tmp_path: Path, signs: RankSigns, clock: Clock
) -> None:
    touch(tmp_path, 1, 1)
    pass_time(signs, clock, 20)
    clock.now += 1000
    signs.look()
    assert signs.dead({1}, 1000.0) == set()
    pass_time(signs, clock, 90)
    assert signs.dead({1}, 1000.0) == {1}


def test_answers_are_seen_and_their_ranks_are_not_dead(
    tmp_path: Path, signs: RankSigns, clock: Clock
) -> None:
    touch(tmp_path, 1, 1)
    (tmp_path / "exit.rank1.json").write_text("{}")
    (tmp_path / ".exit.rank2.json.7.tmp").write_text("{}")
    pass_time(signs, clock, 200)
    assert signs.answered == {1}
    assert list((tmp_path / "failed").iterdir()) == []


def test_a_look_lists_the_folder_once_and_asks_for_times_seldom(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was 511 look-ups of absent files every 0.1 s."""
    (tmp_path / "failed").mkdir()
    signs = RankSigns(tmp_path, Rank(0, 0, 512), 80)
    for rank in range(1, 512):
        touch(tmp_path, rank, 1)
    listed = []
    scandir = os.scandir

    def counted(path: str) -> object:
        listed.append(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", counted)
    marked = []
    monkeypatch.setattr(RankSigns, "_mark", lambda self, rank, entry, now: marked.append(rank))
    signs._marks = dict.fromkeys(range(1, 512), (0, clock.now))
    for _ in range(100):
        clock.now += 0.1
        signs.look()
    assert listed == [str(tmp_path)] * 100
    assert len(marked) <= 2 * 511


def test_a_failed_rank_is_overdue_for_the_others_after_the_patience(tmp_path: Path) -> None:
    one, two = (RankSigns(tmp_path, Rank(rank, 0, 2), 0.8) for rank in (0, 1))
    one.begin()
    two.begin()
    assert not two.overdue()
    one.say_failed()
    deadline = time.monotonic() + 60
    while not two.overdue():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not one.overdue()
    one.end()
    two.end()


def test_the_other_ranks_watch_rank_0_alone(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "failed").mkdir()
    signs = RankSigns(tmp_path, Rank(2, 0, 3), 80)
    touch(tmp_path, 0, 1)
    touch(tmp_path, 1, 1)
    pass_time(signs, clock, 100)
    assert [path.name for path in (tmp_path / "failed").iterdir()] == ["rank0"]
    touch(tmp_path, 0, 2)
    pass_time(signs, clock, 5)
    assert list((tmp_path / "failed").iterdir()) == []
    (tmp_path / "exit.rank0.json").write_text("{}")  # it has said how it ended, and is touched no more
    pass_time(signs, clock, 200)
    assert list((tmp_path / "failed").iterdir()) == []


def test_a_wrapper_without_others_leaves_nothing(tmp_path: Path) -> None:
    signs = RankSigns(tmp_path, Rank(), 80)
    signs.begin()
    signs.say_failed()
    signs.end()
    assert list(tmp_path.iterdir()) == []
