"""``improvement.json`` reads as it was written; a damaged one says what makes it again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profrun.errors import InputError
from profrun.store.improvement import (
    ExperimentResult,
    Improvement,
    Promised,
    SameAnswer,
    read_improvement,
    write_improvement,
)
from profrun.store.runs import Run

FOUND = Improvement(
    "r",
    "base",
    (
        ExperimentResult(
            "tf32",
            ("tf32",),
            {"n": 1},
            (Promised("a", 5, 0.2), Promised("b")),
            "proven",
            0.75,
            (0.7, 0.8),
            0.001,
            4,
            100,
            75,
            3,
            SameAnswer("same", "loss", 1e-3, 2e-2, "loss within 1e-3"),
            ("said",),
            "",
            ("gemm: -3 ms",),
        ),
    ),
    budget_s=60.0,
    step_ns=100,
    done=True,
)


def test_it_reads_as_it_was_written(tmp_path: Path) -> None:
    run = Run(tmp_path)
    assert read_improvement(run) is None
    write_improvement(run, FOUND)
    assert read_improvement(run) == FOUND
    (one,) = FOUND.experiments
    assert (one.promised, one.gain) == (0.2, 0.25)


@pytest.mark.parametrize(
    ("shares", "together"),
    [((), None), ((None,), None), ((0.4,), 0.4), ((0.4, None, 0.1), 0.5), ((0.9, 0.8), 1.0)],
)
def test_what_findings_promise_for_one_change_adds_up_to_the_whole_step(
    shares: tuple[float | None, ...], together: float | None
) -> None:
    promises = tuple(Promised("unfused-attention", None, share) for share in shares)
    assert ExperimentResult("a", promises=promises).promised == together


def test_a_damaged_one_is_named(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.improvement.write_text('{"format": 1, "run": "r"}')
    with pytest.raises(InputError, match="is damaged") as caught:
        read_improvement(run)
    assert "profrun improve" in str(caught.value)
    run.improvement.write_text('{"format": 99}')
    assert read_improvement(run) is None


WORKERS = ExperimentResult(
    "w4",
    ("loader-workers=4",),
    {"batch": 8},
    (Promised("dataloader-stall"),),
    "proven",
    0.6,
    (0.4, 0.8),
    explained=("idle: -10 ms",),
)
LAST = ExperimentResult(
    "together", ("loader-workers=4",), {"batch": 8}, state="no gain", ratio=0.99, interval=(0.985, 0.995)
)


def test_what_the_last_stage_ran_alone_has_its_numbers_and_its_verdict() -> None:
    found = Improvement("r", "base", (WORKERS, FOUND.experiments[0]), LAST)
    last = replace(WORKERS, state="no gain", ratio=0.99, interval=(0.985, 0.995))
    assert found.settled == (last, FOUND.experiments[0])


@pytest.mark.parametrize(
    "last",
    [
        None,
        replace(LAST, changes=("loader-workers=4", "tf32")),
        replace(LAST, values={}),
        replace(LAST, changes=()),
    ],
)
def test_what_the_last_stage_ran_with_others_or_not_at_all_stays(last: ExperimentResult | None) -> None:
    assert Improvement("r", "base", (WORKERS,), last).settled == (WORKERS,)
