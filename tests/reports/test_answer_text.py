"""The first screen of a run, golden."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from profrun.contract.denominator import RUN, Denominator
from profrun.contract.window_phase import WindowPhase
from profrun.reports.answer_text import answer_parts
from profrun.reports.terminal_layout import Style, lay_out
from profrun.store.run_answer import FindingAnswer, PartAnswer, StepAnswer, VariantAnswer
from profrun.store.run_result import PairResult

MS = 1_000_000
LOADER = FindingAnswer("dataloader-stall", "Steps wait for data", "critical", 15 * MS, 0.75, "num_workers")
FP32 = FindingAnswer(
    "fp32-gemm", "Matrix work in full fp32", "warning", 2 * MS, 0.1, "bf16 autocast, or TF32"
)
STEP_OF_20_MS = StepAnswer(20 * MS, 19 * MS, 21 * MS, 3, 15, "cuda_event")
EAGER = VariantAnswer(
    "eager",
    step=STEP_OF_20_MS,
    trial="001-eager-torch-r1",
    gpus=("NVIDIA H200",),
    gpu_ns=5 * MS,
    gpu_share=0.25,
    step_ns=20 * MS,
    basis="unprofiled",
    side="gpu",
    parts=(PartAnswer("fp32 gemm", 0.67), PartAnswer("copies", 0.033)),
    findings=(LOADER, FP32),
)
CPU = VariantAnswer(
    "default",
    step=StepAnswer(4 * MS, 3 * MS, 5 * MS, 1, 5, "wall", profiled_by="torch"),
    trial="000-default-torch-r1",
    basis="profiled",
    side="host",
    parts=(PartAnswer("aten::addmm", 0.41),),
)
PAIR = PairResult(
    kind="variant",
    a="eager-none",
    b="fast-none",
    verdict="faster",
    a_ns=20e6,
    b_ns=10e6,
    ratio=0.5,
    ci95=(0.4, 0.6),
    mde=0.05,
    trials=(3, 3),
    text="",
    a_variant="eager",
    b_variant="fast",
    collector="none",
)


def shown(*answers: VariantAnswer, pairs: tuple[PairResult, ...] = (), width: int = 80) -> str:
    """The screen."""
    return lay_out(answer_parts(answers, pairs), Style(width)) + "\n"


def test_one_variant() -> None:
    torch = dataclasses.replace(PAIR, kind="overhead", ratio=1.35, collector="torch")
    assert shown(EAGER, pairs=(torch,)) == (
        "  step 20 ms without a profiler (19 to 21 ms in 3 trials)\n"
        "  GPU busy 5 ms = 25 % of the step; fp32 gemm 67 % of the GPU's time\n"
        "\n"
        "  What would help most, at most per step:\n"
        "  1  15 ms (75 %)  Steps wait for data: num_workers\n"
        "  2   2 ms (10 %)  Matrix work in full fp32: bf16 autocast, or TF32\n"
        "\n"
        "  profilers, step time: torch +35.0 %\n"
    )


def test_the_energy_stands_beside_the_step_time() -> None:
    measured = dataclasses.replace(EAGER, energy_j=2.354)
    assert shown(measured).startswith(
        "  step 20 ms and 2.354 J without a profiler (19 to 21 ms in 3 trials)\n"
    )
    fast = dataclasses.replace(EAGER, variant="fast")
    lines = shown(measured, fast).splitlines()
    assert lines[0].split() == ["variant", "step", "range", "energy", "GPU", "busy", "mostly"]
    assert "2.354 J" in lines[1]
    assert "2.354 J" not in lines[2]


def test_shares_of_another_phase_than_the_steady_one_are_said() -> None:
    said = "shares are of the phase of the run in which steps were recorded: a step takes 18 ms there"
    words = " ".join(shown(dataclasses.replace(EAGER, step_ns=18 * MS)).split())
    assert said in words
    assert "shares are" not in shown(dataclasses.replace(EAGER, step_ns=20 * MS + MS // 10))


def test_two_variants() -> None:
    fast = dataclasses.replace(
        EAGER, variant="fast", step=StepAnswer(10 * MS, 9 * MS, 11 * MS, 3, 15, "cuda_event"), gpu_share=0.5
    )
    fast = dataclasses.replace(fast, step_ns=10 * MS)
    fast = dataclasses.replace(fast, findings=(dataclasses.replace(LOADER, gain_ns=5 * MS, gain_share=0.5),))
    blocking = dataclasses.replace(PAIR, kind="blocking", ratio=2.5, b_variant="eager")
    assert shown(EAGER, fast, pairs=(PAIR, blocking)) == (
        "  variant   step        range   GPU busy  mostly\n"
        "  eager    20 ms  19 to 21 ms  5 ms 25 %  fp32 gemm 67 %\n"
        "  fast     10 ms   9 to 11 ms  5 ms 50 %  fp32 gemm 67 %\n"
        "\n"
        "  What would help most, at most per step:\n"
        "  1  15 ms (75 %)  Steps wait for data [eager]: num_workers\n"
        "  2   2 ms (10 %)  Matrix work in full fp32 [eager]: bf16 autocast, or TF32\n"
        "\n"
        "  eager 20 ms -> fast 10 ms per step: 50.0 % faster [40.0 to 60.0 %], 3 + 3\n"
        "    trials\n"
        "  launch blocking, step time: eager 2.50 x\n"
    )


def test_a_program_on_the_cpu_without_an_unprofiled_trial() -> None:
    assert shown(CPU) == (
        "  step 4 ms under torch (half of 5 steps: 3 to 5 ms)\n"
        "  no GPU worked; aten::addmm 41 % of the CPU time of all operators\n"
        "\n"
        "  no finding could save 5 % of a step or more\n"
    )


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"ci95": None, "trials": (1, 1), "verdict": "inconclusive"},
            "eager 20 ms -> fast 10 ms per step (-50.0 %), no verdict from 1 + 1 trials",
        ),
        (
            {"verdict": "same", "ci95": (0.99, 1.01)},
            "the same within 1 % [1.0 % faster to 1.0 % slower], 3 + 3 trials",
        ),
        (
            {"verdict": "inconclusive", "ci95": (0.8, 1.1)},
            "(-50.0 %), no difference proven [20.0 % faster to 10.0 % slower], 3 + 3 trials",
        ),
        (
            {
                "verdict": "incomparable",
                "a_ns": None,
                "b_ns": None,
                "ratio": None,
                "text": "not compared: why",
            },
            "not compared: why",
        ),
    ],
)
def test_no_verdict_word_without_a_proof(changed: dict[str, object], said: str) -> None:
    text = shown(EAGER, pairs=(dataclasses.replace(PAIR, **changed),), width=200)  # type: ignore[arg-type]
    assert said in text
    assert "50.0 % faster" not in text


def test_nothing_was_measured() -> None:
    assert shown(VariantAnswer("a"), VariantAnswer("b")) == (
        "  variant  step  range  mostly\n  a           -      -  -\n  b           -      -  -\n"
    )


def test_waiting_for_other_ranks_is_said_beside_the_work() -> None:
    text = shown(dataclasses.replace(EAGER, rank_wait_ns=6 * MS))
    assert "  GPU only waits for other ranks, as recorded: 6 ms per step\n" in text


def test_shares_of_the_recorded_step_are_called_so() -> None:
    text = shown(dataclasses.replace(EAGER, basis="profiled", step_ns=4 * MS))
    assert "GPU busy 5 ms = 25 % of the recorded step" in text
    assert "  shares are of the recorded, faster steps\n" in text


@pytest.mark.parametrize(
    ("gpu_ns", "mean_ns", "said"),
    [
        (
            22 * MS,
            24 * MS,
            "GPU busy is an average and the step time a median: on average a step takes 24 ms",
        ),
        (22 * MS, 21 * MS, "GPU busy is of the recorded step; the GPU works longer in it than a step takes "),
        (22 * MS, 40 * MS, "steps are uneven: 40 ms on average"),
        (20 * MS, 24 * MS, None),
    ],
)
def test_gpu_work_that_is_longer_than_the_step_is_said(gpu_ns: int, mean_ns: int, said: str | None) -> None:
    """The step takes 20 ms, a median without a profiler; the GPU's time is a mean over recorded steps."""
    step = dataclasses.replace(STEP_OF_20_MS, mean_ns=mean_ns)
    text = shown(dataclasses.replace(EAGER, gpu_ns=gpu_ns, gpu_share=1.0, step=step), width=200)
    lines = [line.strip() for line in text.splitlines() if "average" in line or "works longer" in line]
    assert len(lines) == (said is not None)
    assert said is None or lines[0].startswith(said)


def test_further_lines_of_a_finding_begin_below_its_gain() -> None:
    lines = shown(EAGER, width=50).splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("  2 "))
    assert lines[first] == "  2   2 ms (10 %)  Matrix work in full fp32: bf16"
    assert lines[first + 1] == "     autocast, or TF32"


@pytest.mark.parametrize(
    ("trials", "verdict", "said"),
    [
        ((1, 1), "inconclusive", "`--repeats 3` gives intervals"),
        ((2, 2), "inconclusive", "`--repeats 3` gives narrower intervals"),
        ((3, 4), "inconclusive", "`--repeats 6` gives narrower intervals"),
    ],
)
def test_what_to_add_where_nothing_is_proven(trials: tuple[int, int], verdict: str, said: str) -> None:
    pair = dataclasses.replace(
        PAIR, trials=trials, verdict=verdict, ci95=None if trials == (1, 1) else (0.4, 1.2)
    )
    assert said in shown(EAGER, EAGER, pairs=(pair,))


def test_nothing_to_add_to_a_proof() -> None:
    assert "--repeats" not in shown(EAGER, EAGER, pairs=(dataclasses.replace(PAIR, trials=(2, 2)),))


RUN_TIME = StepAnswer(3000 * MS, 2900 * MS, 3100 * MS, 3, 3, "wall", denominator=RUN)


def test_a_run_without_steps() -> None:
    answer = dataclasses.replace(EAGER, step=RUN_TIME, denominator=RUN, rank_wait_ns=MS, findings=(FP32,))
    assert (
        shown(answer)
        == """\
  run 3 s without a profiler (2.9 to 3.1 s in 3 trials)
  GPU busy 5 ms = 25 % of the run; fp32 gemm 67 % of the GPU's time
  GPU only waits for other ranks, as recorded: 1 ms of the run
  numbers are of the whole run, set-up included: no steps were found

  What would help most, at most in the run:
  1  2 ms (10 %)  Matrix work in full fp32: bf16 autocast, or TF32
"""
    )


def test_one_trial_of_a_run_has_no_interval() -> None:
    one = dataclasses.replace(RUN_TIME, trials=1, steps=1, low_ns=3000 * MS, high_ns=3000 * MS)
    text = shown(dataclasses.replace(CPU, step=one, denominator=RUN, basis="unprofiled"))
    assert "run 3 s without a profiler (1 trial)" in text
    assert "one trial has no interval: `--repeats 3` gives one" in text
    assert "no finding could save 5 % of the run or more" in text
    assert "step " not in text


def test_a_run_of_which_only_the_beginning_was_recorded() -> None:
    """The run takes 3 s; the shares are of the 2 s that were recorded, and say so."""
    cut = Denominator("run", 2000 * MS)
    answer = dataclasses.replace(EAGER, step=RUN_TIME, denominator=cut, basis="profiled", findings=())
    text = shown(answer)
    assert "run 3 s without a profiler" in text
    assert "GPU busy 5 ms = 25 % of the first 2 s of the run" in text
    assert "shares are of the first 2 s of the run: the rest was not recorded" in text


def test_variants_with_and_without_steps_say_which_is_which() -> None:
    whole = dataclasses.replace(EAGER, variant="plain", step=RUN_TIME, denominator=RUN, findings=())
    text = shown(EAGER, whole)
    assert "run or step" in text
    assert "plain: numbers are of the whole run" in text


def test_comparisons_of_runs() -> None:
    pairs = tuple(
        dataclasses.replace(one, denominator=RUN)
        for one in (PAIR, dataclasses.replace(PAIR, kind="overhead", start_ns=0))
    )
    text = shown(CPU, pairs=pairs)
    assert "eager 20 ms -> fast 10 ms of the run: 50.0 % faster" in text
    assert "profilers, run time: none -50.0 % [-60.0 to -40.0 %]\n" in text


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"ratio": 3.1, "ci95": (2.9, 3.3), "b_ns": 62e6, "start_ns": 40 * MS},
            "run time: torch 3.10 x [2.90 to 3.30 x]: 62 ms, of which its start\n    takes 40 ms\n",
        ),
        ({"ratio": 1.1, "ci95": (1.0, 1.2), "start_ns": 9}, "torch +10.0 % [0.0 to +20.0 %]\n"),
        (
            {"ratio": 0.34, "ci95": None, "trials": (1, 1)},
            "run time: torch not known from 1 + 1 trials (`--repeats 3`)\n",
        ),
        (
            {"ratio": 0.67, "ci95": (0.02, 9.0), "trials": (3, 3)},
            "run time: torch not known from 3 + 3 trials (`--repeats 6`)\n",
        ),
    ],
    ids=["with its start", "a start that is nothing", "one trial each", "trials that differ too much"],
)
def test_the_overhead_of_a_run(changed: dict[str, Any], said: str) -> None:
    """A profiler takes no time away: 34 % of the time in one trial each says that the first one was cold."""
    values = {"kind": "overhead", "collector": "torch", "denominator": RUN, "start_ns": 0, **changed}
    assert said in shown(CPU, pairs=(dataclasses.replace(PAIR, **values),))


def test_an_overhead_of_a_run_without_the_start_of_the_profiler_is_not_shown() -> None:
    pair = dataclasses.replace(PAIR, kind="overhead", collector="torch", denominator=RUN)
    assert "profilers" not in shown(CPU, pairs=(pair,))


def test_overheads_of_steps_and_of_runs_are_never_one_range() -> None:
    step = dataclasses.replace(PAIR, kind="overhead", collector="torch", ratio=1.3)
    run = dataclasses.replace(step, denominator=RUN, ratio=2.5, ci95=(2.4, 2.6), start_ns=0)
    text = shown(CPU, pairs=(step, run))
    assert (
        "profilers, step time: torch +30.0 %\n  profilers, run time: torch 2.50 x [2.40 to 2.60 x]\n" in text
    )


BOOST = WindowPhase(
    1, 2, 0, 17, 2.94e6, 2, 18, 599, 3.42e6, same_level=False, why=("the power cap lowered the SM clock",)
)


def test_a_window_outside_of_the_steady_phase_is_said() -> None:
    text = shown(dataclasses.replace(EAGER, window=BOOST))
    assert (
        "  the window lies in phase 1 of 2 (steps 0-17, 2.94 ms per step); the steady\n"
        "    phase is phase 2 (steps 18-599, 3.42 ms per step, 16.3 % slower): the power\n"
        "    cap lowered the SM clock\n"
    ) in text


@pytest.mark.parametrize(
    "window", [dataclasses.replace(BOOST, same_level=True), dataclasses.replace(BOOST, steady_ns=2.98e6)]
)
def test_a_window_whose_steps_take_as_long_is_not_said(window: WindowPhase) -> None:
    assert shown(dataclasses.replace(EAGER, window=window)) == shown(EAGER)


LINES = (PartAnswer("model.py:212 forward", 0.38), PartAnswer("train.py:9 <module>", 0.021))


def test_the_lines_with_most_gpu_time_are_named() -> None:
    one = dataclasses.replace(EAGER, lines=LINES)
    text = lay_out(answer_parts([one], []), Style(width=80))
    assert "  most GPU time: model.py:212 forward 38 %, train.py:9 <module> 2.1 %\n" in text
    both = lay_out(answer_parts([one, dataclasses.replace(EAGER, variant="fast")], []), Style(width=80))
    assert "  eager: most GPU time: model.py:212 forward 38 %, train.py:9 <module> 2.1 %\n" in both
    assert "fast: most" not in both
