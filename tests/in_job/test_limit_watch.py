"""The memory of a recording, and the limits at which it is ended. Real recordings: test_whole_run.py."""

from __future__ import annotations

import threading

import pytest

from profrun.contract.schedule import Limit, Schedule
from profrun.in_job import limit_watch
from profrun.in_job.limit_watch import LimitWatch, Memory

MIB = 1 << 20


def test_only_small_allocations_fill_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of 900 MiB are no recording, and then the small allocations are not counted at each look."""
    everything, small = iter([0, 50, 900, 920, 990, 1020]), iter([0, 10, 70, 101])
    asked: list[int] = []

    def count() -> int:
        asked.append(next(small))
        return asked[-1] * MIB

    monkeypatch.setattr(limit_watch, "_anonymous", lambda: next(everything) * MIB)
    monkeypatch.setattr(limit_watch, "_small", count)
    memory = Memory(100 * MIB)
    assert [memory.is_full() for _ in range(5)] == [False, False, False, False, True]
    assert asked == [0, 10, 70, 101], "not asked below 100 MiB, nor before 90 MiB more"


def test_real_allocations_are_seen() -> None:
    memory = Memory(8 * MIB)
    assert not memory.is_full()
    held: list[list[bytes]] = []
    while not memory.is_full():  # the first ones may be memory that earlier tests have given back
        assert len(held) < 64
        held.append([bytes(4000) for _ in range(8000)])  # 32 MB in small blocks
    assert held


@pytest.mark.parametrize(
    ("schedule", "limit"),
    [
        (Schedule(max_seconds=0.1), "max_seconds"),
        (Schedule(max_size=0), "max_size"),
    ],
)
def test_the_main_thread_ends_the_recording_and_is_asked_again_when_it_could_not(
    schedule: Schedule, limit: Limit
) -> None:
    asked: list[tuple[Limit, bool]] = []

    def end(limit: Limit) -> bool:
        asked.append((limit, threading.current_thread() is threading.main_thread()))
        return len(asked) == 3

    watch = LimitWatch(schedule, 16.0, end)
    watch.start()
    while len(asked) < 3:
        sum(range(100))
    assert asked == [(limit, True)] * 3
    watch.stop()
