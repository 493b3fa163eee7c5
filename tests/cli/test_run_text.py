"""The end of a run as text and JSON, and its progress: golden, in 80 columns."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from profrun.cli.progress import Progress
from profrun.cli.run_text import show_run
from profrun.contract.codec import to_json
from profrun.contract.paths import TrialPaths
from profrun.store.documents import Steps
from profrun.store.files import write_json
from profrun.store.run_result import ExpectationResult, Findings, PairResult, run_result
from profrun.store.runs import Run
from profrun.store.state import RunState, TrialRecord
from tests.runner.scripted import begin, leave, new_run

STEPS = Steps("optimizer", "cuda_event", 8, (1_200_000, 1_250_000, 1_300_000), ())


def _state(*trials: TrialRecord) -> RunState:
    return RunState(Run(Path("/r/t-1")), "t", "local", Path("/"), 5, "failed", False, trials)


def _trial(index: int, collector: str, blocking: bool, factor: float, **more: object) -> TrialRecord:
    slower = tuple(round(ns * factor) for ns in STEPS.measured)
    name = f"{index:03d}-base-{collector}{'-blocking' if blocking else ''}-r1"
    plain = TrialRecord(
        name,
        index,
        "base",
        collector,
        blocking,
        1,
        "finished",
        TrialPaths(Path("/r/t-1/trials") / name),
        attempt=1,
        steps=dataclasses.replace(STEPS, measured=slower),
    )
    return dataclasses.replace(plain, **more)  # type: ignore[arg-type]


STATE = _state(
    _trial(0, "none", False, 1, trace=Path("/r/t-1/trials/000/trace")),
    _trial(1, "none", True, 1.5),
    _trial(2, "torch", False, 1.1, normalise_error="it is torn"),
    _trial(3, "torch", True, 2, state="failed", exit_code=3, reason="the command ended with code 3"),
    _trial(4, "nsys", False, 1, state="planned", attempt=0, steps=Steps()),
)

TABLE = """\
#  variant  collector  blocking  rep  state     steps      step  trace
0  base     none       off         1  finished      8   1.25 ms  yes
1  base     none       on          1  finished      8  1.875 ms  -
2  base     torch      off         1  finished      8  1.375 ms  failed
3  base     torch      on          1  failed        8    2.5 ms  -
4  base     nsys       off         1  planned       -         -  -

002-base-torch-r1: no trace: it is torn
003-base-torch-blocking-r1: failed: the command ended with code 3
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


def test_the_end_of_a_run_for_a_machine() -> None:
    result = run_result(STATE)
    assert [(t.state, t.median_step_ns, t.steps, t.trace) for t in result.trials] == [
        ("finished", 1_250_000, 8, "/r/t-1/trials/000/trace"),
        ("finished", 1_875_000, 8, None),
        ("finished", 1_375_000, 8, None),
        ("failed", 2_500_000, 8, None),
        ("planned", None, None, None),
    ]


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
    text="slower: 1.875 ms against 1.25 ms per step",
    same_kernels=True,
    kernels="both sides launched the same kernels",
)
EXPECTED = ExpectationResult(0, "present", "base", "gemm is there", "failed", "no gemm", failed_on=("002",))


def test_comparisons_and_expectations_stand_below_the_trials(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = dataclasses.replace(STATE, run=Run(tmp_path))
    write_json(state.run.comparison, to_json(Findings((PAIR,), (EXPECTED,))))
    show_run(state)
    text = capsys.readouterr().out
    assert (
        "\nLaunch blocking (step time, blocking against not):\n"
        "  base-none-blocking against base-none: slower: 1.875 ms against 1.25 ms per step\n"
        "    both sides launched the same kernels\n"
        "\nExpectations: 1 failed\n"
        "  base: gemm is there: failed: no gemm (002)\n"
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
    show_run(_state(_trial(0, "none", False, 1, steps=Steps("none", "wall", count))))
    assert said in capsys.readouterr().out


def test_progress_without_a_terminal_is_whole_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, plan = new_run(tmp_path)
    first, second = plan.trials
    for trial in plan.trials:
        begin(run.trial(trial.id))
    leave(run.trial(first.id), steps=[1000, 3000, 2000])
    with Progress(run, plan, live=False) as progress:
        for event, trial_id, data in (
            ("resumed", None, {"kept": 0}),
            ("queued", first.id, {}),
            ("started", first.id, {}),
            ("state", first.id, {"state": "running"}),
            ("finished", first.id, {"state": "finished", "exit_code": 0}),
            ("normalised", first.id, {}),
            ("started", second.id, {}),
            ("finished", second.id, {"state": "failed", "exit_code": 3, "reason": "it broke"}),
            ("error", second.id, {"message": "torn"}),
            ("cancelled", None, {"by": "SIGINT", "grace_s": 60.0}),
            ("cancelled", None, {"by": "SIGINT", "grace_s": 0.0}),
        ):
            progress.event({"event": event, "trial": trial_id, **data})
        progress.tick([first.id])
    assert capsys.readouterr().err.splitlines() == [
        f"resuming {run.name}: 0 of 2 trials are finished",
        "[1/2] a, none, repeat 1: started",
        "[1/2] a, none, repeat 1: finished, 0 s, step 2 us",
        "[2/2] b, none, repeat 1: started",
        "[2/2] b, none, repeat 1: failed, 0 s (exit code 3): it broke",
        "  001-b-none-r1: no trace: torn",
        "ending after SIGINT: the profilers write their files; a second time kills at once",
        "killing after SIGINT",
    ]


def test_progress_on_a_terminal_fits_its_width(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    run, plan = new_run(tmp_path)
    with Progress(run, plan, live=True) as progress:
        progress.event({"event": "started", "trial": plan.trials[0].id})
        progress.tick([plan.trials[0].id])
        whole = progress.live_text([plan.trials[0].id, plan.trials[1].id], 79)
        cut = progress.live_text([plan.trials[0].id], 20)
    assert whole == "[1/2] a, none, repeat 1 (+1 more): running, 0 s"
    assert cut == "[1/2] a, none, re..."
