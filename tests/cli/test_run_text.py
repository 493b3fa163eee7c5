"""The end of a run as text, golden, in 80 columns."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from profrun.cli.run_text import show_run
from profrun.contract.codec import to_json
from profrun.store.documents import Steps
from profrun.store.files import write_json
from profrun.store.run_claims import CheckResult, ClaimResult
from profrun.store.run_result import Findings, PairResult
from profrun.store.runs import Run
from tests.store.states import STATE, state_of, trial_record

TABLE = """\
t-1: failed, 3 of 5 trials finished

#  variant  collector  blocking  rep  state     steps      step  trace
0  base     none       off         1  finished      8   1.25 ms  yes
1  base     none       on          1  finished      8  1.875 ms  -
2  base     torch      off         1  finished      8  1.375 ms  failed
3  base     torch      on          1  failed        8    2.5 ms  -
4  base     nsys       off         1  planned       -         -  -

002-base-torch-r1: no trace: it is torn
003-base-torch-blocking-r1: failed: the command ended with code 3

repeat what failed with `profrun resume t-1 --failed`
folder: /r/t-1
"""


def test_the_end_of_a_run_for_a_person(capsys: pytest.CaptureFixture[str]) -> None:
    show_run(STATE)
    assert capsys.readouterr().out == TABLE


def test_the_end_of_a_run_fits_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    show_run(STATE)
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines) <= 80
    assert " ".join(" ".join(lines).split()) == " ".join(TABLE.split())


PAIR = PairResult(
    kind="blocking",
    a="base-none",
    b="base-none-blocking",
    verdict="slower",
    a_ns=1_250_000,
    b_ns=1_875_000,
    ratio=1.5,
    ci95=(1.4, 1.6),
    mde=0.05,
    trials=(3, 3),
    text="base-none 1.25 ms -> base-none-blocking 1.875 ms per step",
    same_kernels=True,
    kernels="both sides launched the same kernels",
    a_variant="base",
    b_variant="base",
    collector="none",
)
CLAIMS = (
    ClaimResult(
        0,
        "The GEMM is there.",
        "refuted",
        (CheckResult("present", "gemm present", "refuted", "no gemm", refuted_on=("002",)),),
    ),
    ClaimResult(1, "It is fast.", "held", (CheckResult("step_ms", "below 9 ms", "held", "1.25 ms"),)),
    ClaimResult(
        2,
        "It is faster than before.",
        "not checked",
        (CheckResult("ratio", "at most 1", "not checked", "1.01 times", why="no interval", fix="repeat"),),
    ),
)


def test_comparisons_and_expectations_stand_below_the_trials(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = dataclasses.replace(STATE, run=Run(tmp_path))
    write_json(state.run.comparison, to_json(Findings((PAIR,), CLAIMS)))
    show_run(state, verbose=True)
    text = capsys.readouterr().out
    assert "\n  launch blocking, step time: base +50.0 %\n" in text
    assert (
        "\nLaunch blocking (step time, blocking against not):\n"
        "  base-none 1.25 ms -> base-none-blocking 1.875 ms per step\n"
        "    both sides launched the same kernels\n"
        "\n3 claims: 1 held, 1 refuted, 1 not checked\n"
        "  refuted      The GEMM is there.\n"
        "               no gemm (002)\n"
        "  held         It is fast.\n"
        "               1.25 ms\n"
        "  not checked  It is faster than before.\n"
        "               1.01 times; no interval\n"
        "               to check it: repeat\n"
    ) in text


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "no step was seen: call profrun.step() once an iteration"),
        (2, "it made 2 steps, none in the schedule's window"),
    ],
)
def test_a_trial_that_measured_nothing_says_why(
    capsys: pytest.CaptureFixture[str], count: int, said: str
) -> None:
    show_run(state_of(trial_record(0, "none", False, 1, steps=Steps("none", "wall", count))))
    assert said in capsys.readouterr().out
