"""Where sessions begin, and clocks that differ between them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from profrun.traces.causality import sessions
from profrun.traces.causality.judge import judge, judge_and_repair
from tests.traces.causality.kit import Row, launches, recording
from tests.traces.causality.test_explain import after, program


def steps(first: int, start: int, count: int = 3) -> list[Row]:
    return [
        ("step", f"ProfilerStep#{first + number}", (start + 1000 * number) * 1000, 999_000, "main", -1)
        for number in range(count)
    ]


def two_sessions(gpu: int = 0) -> list[Row]:
    """Steps 3 to 5, and steps 13 to 15 with GPU times that are ``gpu`` us later."""
    return after(after(steps(3, 0), program()), after(steps(13, 3000), program(start=3000, gpu=gpu)))


def test_a_session_begins_where_step_numbers_jump() -> None:
    rows = two_sessions()
    rec = recording(rows)
    found = sessions.starts(rec, 0, np.sort(rec.ts[rec.launch[rec.launched]]))
    assert found.by_files.tolist() == []
    assert found.by_steps.tolist() == found.by_pauses.tolist() == [3_000_000]


def test_a_session_begins_after_a_long_pause() -> None:
    rec = recording(after(program(), program(start=50_000)))
    found = sessions.starts(rec, 0, np.sort(rec.ts[rec.launch[rec.launched]]))
    assert (found.by_steps.tolist(), found.by_pauses.tolist()) == ([], [50_000_001])


def test_another_file_is_another_session_without_a_pause() -> None:
    rec = replace(recording(two_sessions()), session_starts={0: (2_999_000,), 1: (7,)})
    found = sessions.starts(rec, 0, np.sort(rec.ts[rec.launch[rec.launched]]))
    assert found.by_files.tolist() == [2_999_000]


def test_no_file_is_moved_that_fits_as_it_is() -> None:
    """The first file's waits would allow the 400 us that the second file needs."""
    unwaited: list[Row] = []
    for number in range(30):
        launch, kernel = launches((100 * number, 100 * number + 8, 100 * number + 28))
        unwaited += [launch, (*kernel[:5], len(unwaited))]
    rows = after(unwaited, program(start=4000, gpu=-400))
    (whole,) = judge(recording(rows)).clocks
    assert whole.verdict == "offset"
    first, second = judge(replace(recording(rows), session_starts={0: (3_999_000,)})).clocks
    assert (first.verdict, second.verdict) == ("consistent", "offset")


def test_the_second_session_is_displaced_and_moved_alone() -> None:
    rows = two_sessions(gpu=400)
    found, moves = judge_and_repair(recording(rows))
    assert [(clock.session, clock.verdict) for clock in found.clocks] == [(0, "consistent"), (1, "offset")]
    assert found.clocks[0].moved_ns == 0
    assert -410_000 < found.clocks[1].moved_ns < -390_000
    assert moves is not None
    assert len(moves[0]) == 30


def test_sessions_with_one_clock_are_one() -> None:
    rows = two_sessions()
    assert [(clock.session, clock.verdict) for clock in judge(recording(rows)).clocks] == [(0, "consistent")]
