"""What numbers are of, in words."""

from __future__ import annotations

import pytest

from profrun.contract.codec import from_json, to_json
from profrun.contract.denominator import RECORDING, RUN, STEP, Denominator, found_by

CUT = Denominator("run", 10 * 10**9)


@pytest.mark.parametrize(
    ("of", "per", "rate", "one", "recorded", "title"),
    [
        (STEP, "per step", "per step", "a step", "the recorded step", "step"),
        (RUN, "of the run", "in the run", "the run", "the recorded run", "run"),
        (RECORDING, "of the recording", "in the recording", "the recording", "the recording", "recording"),
        (
            CUT,
            "of the first 10 s of the run",
            "in the first 10 s of the run",
            "the first 10 s of the run",
            "the first 10 s of the run",
            "first 10 s of the run",
        ),
    ],
)
def test_words(of: Denominator, per: str, rate: str, one: str, recorded: str, title: str) -> None:
    assert (of.per, of.rate, of.one, of.recorded, of.title) == (per, rate, one, recorded, title)
    assert (of.per_work(None), of.per_work("token")) == (per, "per token")
    assert of.several is (of == STEP)
    assert from_json(Denominator, to_json(of)) == of


def test_counts_and_times() -> None:
    assert [STEP.counted(7), RUN.counted(1), STEP.time, RUN.time] == [
        "7 steps",
        "1 run",
        "step time",
        "run time",
    ]
    assert [STEP.every, RUN.every, STEP.its, RUN.its] == ["the steps", "the run", "its steps", "the run"]
    assert [RUN.whole, CUT.whole] == ["the whole run", "the first 10 s of the run"]


@pytest.mark.parametrize(
    ("how", "of"), [("run", RUN), ("explicit", STEP), ("module", STEP), ("none", STEP), (None, STEP)]
)
def test_how_steps_were_found_tells_what_a_trial_measured(how: str | None, of: Denominator) -> None:
    assert found_by(how) == of
