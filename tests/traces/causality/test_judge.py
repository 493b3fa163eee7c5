"""All checks together: a sound program, and one with two kinds of damage."""

from __future__ import annotations

import pytest

from profrun.traces.causality.judge import CODES, judge, judge_and_repair
from profrun.traces.causality.model import (
    Judgement,
    clock_entries,
    contradiction_entries,
    judgement_of,
)
from tests.traces.causality.kit import Row, codes, launches, recording, wait
from tests.traces.causality.test_explain import program


def test_a_sound_program() -> None:
    found, moves = judge_and_repair(recording(program()))
    assert [clock.verdict for clock in found.clocks] == ["consistent"]
    assert (found.contradictions, moves) == ((), None)


def test_clocks_and_contradictions_are_said_side_by_side() -> None:
    rows = program(gpu=500)
    rows.append(rows[1])  # the first kernel once more
    found, moves = judge_and_repair(recording(rows))
    assert [clock.verdict for clock in found.clocks] == ["offset"]
    assert codes(found.contradictions) == {"duplicate_gpu_records": (1, 31)}
    assert {one.code for one in found.contradictions} <= set(CODES)
    assert moves is not None
    assert len(moves[0]) == 31


def test_judging_changes_nothing() -> None:
    rec = recording(program(gpu=500))
    before = rec.ts.copy()
    (clock,) = judge(rec).clocks
    assert (clock.verdict, clock.moved) == ("offset", False)
    assert (rec.ts == before).all()


def test_a_recording_without_gpu_work_has_no_clock() -> None:
    assert judge(recording([("op", "aten::mm", 0, 10, "main", -1)])) == Judgement()


def test_a_judgement_survives_meta_json() -> None:
    found, _ = judge_and_repair(recording([*program(gpu=500), program()[1]]))
    assert judgement_of(clock_entries(found.clocks), contradiction_entries(found.contradictions)) == found


def jumped(count: int) -> list[Row]:
    """Launches, and one wait at the end; the GPU's clock is set back by 450 us before the last two."""
    last = 100 * (count - 4)
    rows: list[Row] = []
    for at in [*range(0, last + 1, 100), last + 500, last + 800, last + 1400]:
        kernel = launches((at, at + 8, at + 28), gpu=-450 if at > last + 500 else 0)
        rows += [kernel[0], (*kernel[1][:5], len(rows))]
    return [*rows, wait(last + 1500, last + 2500)]


@pytest.mark.parametrize("count", [20, 150])
def test_nothing_is_moved_when_the_clock_differs_between_records_of_a_stream(count: int) -> None:
    found, moves = judge_and_repair(recording(jumped(count)))
    assert moves is None
    assert codes(found.contradictions) == {"launch_order": (1, count)}
    assert [(clock.verdict, clock.moved) for clock in found.clocks] == [("offset", False)]


def test_one_odd_record_among_many_does_not_undo_a_repair() -> None:
    rows = program(gpu=-400, count=150)
    launch, kernel, _ = rows[-3:]
    rows += [
        launch,
        (*kernel[:2], kernel[2] - 5_000, *kernel[3:5], len(rows)),
    ]  # 5 us before the one before it
    found, moves = judge_and_repair(recording(rows))
    assert moves is not None
    assert codes(found.contradictions).keys() <= {"launch_order", "gpu_work_overlaps", "duplicate_calls"}
