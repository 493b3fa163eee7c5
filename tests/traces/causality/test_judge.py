"""All checks together: a sound program, and one with two kinds of damage."""

from __future__ import annotations

from profrun.traces.causality.judge import CODES, judge, judge_and_repair
from profrun.traces.causality.model import (
    Judgement,
    clock_entries,
    contradiction_entries,
    judgement_of,
)
from tests.traces.causality.kit import codes, recording
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
