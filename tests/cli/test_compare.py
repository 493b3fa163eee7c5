"""compare on the command line: verdicts of synthetic sides, their exit codes, and every refusal."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profrun.analysis.compare import ComparedTrial
from profrun.analysis.compare.comparability import ALLOWABLE, STOPS
from profrun.analysis.compare.compared_trial import StepWork
from profrun.analysis.counted_steps import Phase
from profrun.cli.compare_args import fraction
from profrun.contract.denominator import RUN, Denominator
from profrun.runner.comparison_sides import BASELINE_FORMAT
from tests.analysis.compare.trials import OTHER, trial
from tests.cli.running import Capture, call
from tests.cli.sides import TRIALS, words_of, write_trial
from tests.runner.scripted import begin, leave, new_run
from tests.tracekit import make_trace


def test_slower_faster_and_their_exit_codes(sides: Path, kept: Path, capsys: Capture) -> None:
    slower = call(capsys, "compare", *words_of("a"), "vs", *words_of("b"), "--json")
    assert slower.code == 1, slower.err + slower.out
    found = slower.json
    assert (found["verdict"], found["trials"]) == ("slower", [TRIALS, TRIALS])
    assert found["ratio"] == pytest.approx(1.5, rel=0.01)
    assert found["ci95"][0] < found["ratio"] < found["ci95"][1]
    (row,) = [row for row in found["kernels"] if row["name"] == "gemm"]
    assert (row["status"], row["delta_ns"]) == ("slower", pytest.approx(500_000, rel=0.01))
    faster = call(capsys, "compare", kept / "b.json", "vs", kept / "a.json", "--json")
    assert (faster.code, faster.json["verdict"]) == (0, "faster")


def test_text_says_verdict_interval_and_what_changed(kept: Path, capsys: Capture) -> None:
    out = call(capsys, "compare", kept / "a.json", "vs", kept / "b.json").out
    assert out.startswith("a* 1 ms -> b* 1.5 ms per step: 50.0 % slower [")
    assert f"], {TRIALS} + {TRIALS} trials" in out
    rows = [line.split()[:2] for line in out.splitlines() if "gemm" in line]
    assert rows == [["slower", "gemm"], ["slower:", "gemm:"]]
    assert "  slower: gemm: +99.9 % (95 % interval +" in out


@pytest.mark.parametrize(
    ("rules", "code", "said"),
    [
        (["slower > 60%"], 0, "passed: slower > 60%"),
        (["slower > 3%", "slower > 60%"], 1, "failed: slower > 3%"),
        (["kernel 'gemm' slower > 5%"], 1, "failed: kernel 'gemm' slower > 5%"),
        (["expectations"], 2, "inconclusive: expectations"),  # these traces belong to no run
    ],
)
def test_a_gate_decides_the_exit_code(
    kept: Path, tmp_path: Path, capsys: Capture, rules: list[str], code: int, said: str
) -> None:
    words: list[object] = ["compare", kept / "a.json", "vs", kept / "b.json"]
    for rule in rules:
        words += ["--fail-on", rule]
    done = call(capsys, *words, "--junit", tmp_path / "gate.xml")
    assert done.code == code
    assert said in done.out
    assert (tmp_path / "gate.xml").read_text().count("<testcase") == len(rules)
    document = call(capsys, *words, "--json").json
    assert (document["gate"]["exit_code"], document["exit_code"]) == (code, code)
    assert call(capsys, *words, "--markdown").out.startswith("### ")


def test_a_page_of_the_comparison(kept: Path, tmp_path: Path, capsys: Capture) -> None:
    words = ["compare", kept / "a.json", "vs", kept / "b.json"]
    done = call(capsys, *words, "--html", tmp_path / "page.html")
    assert done.code == 1  # the verdict's, as without a page
    page = (tmp_path / "page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "1 ms -&gt; b* 1.5 ms per step: 50.0 % slower [" in page
    refused = call(capsys, *words, "--same-kernels", "--html", tmp_path / "x.html")
    assert (refused.code, "--same-kernels has no --html" in refused.err) == (64, True)


@pytest.mark.thorough
def test_two_whole_runs_compare_none_with_none_and_torch_with_torch(tmp_path: Path, capsys: Capture) -> None:
    spec = "name: t\ncommand: python x.py\ncollectors: [none, torch]\nrepeats: 2\n"
    runs = []
    for step_ns in (1_000_000, 1_500_000):
        made, plan = new_run(tmp_path / "runs", spec)
        for place, one in enumerate(plan.trials):
            job = {"run": made.name, "variant": one.variant, "collector": one.collector, "work": {"batch": 8}}
            steps = [
                ("step", f"profrun.step#{n}", n * 10**7, step_ns + 10 * n + place, "main") for n in range(10)
            ]
            tool = {"job": job, "collector": one.collector}
            make_trace(made.trial(one.id).trace, steps, meta=tool).close()
        runs.append(made.path)
    found = call(capsys, "compare", runs[0], "vs", runs[1], "--json", "--fail-on", "slower > 3%")
    assert found.code == 1, found.err
    told = [(one["collector"], one["trials"], one["verdict"]) for one in found.json["pairs"]]
    assert told == [("none", [2, 2], "slower"), ("torch", [2, 2], "slower")]
    out = call(capsys, "compare", runs[0], "vs", runs[1]).out
    lines = [line for line in out.splitlines() if " -> " in line]
    assert lines[0].startswith(
        f"without a profiler: {runs[0].name} 1 ms -> {runs[1].name} 1.5 ms per step: 50.0 %"
    )
    assert lines[1].startswith("under torch: ")
    assert (
        call(capsys, "compare", runs[0], "vs", runs[1], "--markdown").out.count("per step: 50.0 % slower")
        == 2
    )


def test_a_gate_holds_the_guesses_of_side_b(tmp_path: Path, capsys: Capture) -> None:
    guess = "expect: [{step_ms: 0.5}]\ncollectors: [none]\n"
    made, _ = new_run(tmp_path / "runs", f"name: t\ncommand: python x.py\n{guess}")
    write_trial(tmp_path / "a0", 1_000_000, 500_000, 0)
    trial = begin(made.trial("000-default-none-r1"))
    made.log().append("started", trial.folder.name, attempt=1, handle={"backend": "local", "data": {}})
    leave(trial)
    write_trial(trial.trace, 1_000_000, 500_000, 1)
    reference = trial.folder
    done = call(capsys, "compare", tmp_path / "a0", "vs", reference, "--fail-on", "expectations", "--json")
    assert done.code == 1
    (result,) = done.json["gate"]["results"]
    assert result["message"].startswith("1 of 1 guesses failed: median step below 0.5 ms")


def test_the_same_side_twice_is_same_and_one_trial_is_inconclusive(sides: Path, capsys: Capture) -> None:
    half = call(capsys, "compare", "a0", "a2", "vs", "a1", "a3", "--json")
    assert half.json["verdict"] in ("same", "inconclusive")
    assert half.code in (0, 2)
    one = call(capsys, "compare", "a0", "vs", "b0", "--json")
    assert (one.code, one.json["verdict"], one.json["ci95"]) == (2, "inconclusive", None)
    assert one.json["trials_needed"]


def test_a_refusal_ends_with_the_command_that_goes_on(sides: Path, capsys: Capture) -> None:
    done = call(capsys, "compare", "a0", "vs", "c0")
    assert done.code == 2
    assert done.out.startswith(
        "a0-async 1 ms, c0-blocking 1.2 ms per step, no verdict: launches block on one side only"
    )
    command = "profrun compare a0 vs c0 --allow blocking"
    assert done.out.splitlines()[-2:] == ["to compare them all the same:", f"  {command}"]
    assert call(capsys, *command.split()[1:], "--json").json["ratio"] is not None


def test_the_same_kernels_or_not(sides: Path, capsys: Capture) -> None:
    """Launch blocking changes no kernel; its exit code is that of the answer."""
    done = call(capsys, "compare", "a0", "vs", "c0", "--same-kernels")
    assert done.code == 0
    assert done.out.startswith(
        "a0-async and c0-blocking saw the same kernels: 1 name, 1 launch per step on both"
    )
    document = call(capsys, "compare", "a0", "vs", "c0", "--same-kernels", "--json").json
    assert (document["answer"], document["exit_code"]) == ("same", 0)
    (kernel,) = document["kernels"]
    assert (kernel["name"], kernel["seen_by"], kernel["a_calls"], kernel["b_calls"]) == ("gemm", "both", 1, 1)
    refused = call(capsys, "compare", "a0", "vs", "c0", "--same-kernels", "--fail-on", "slower > 3%")
    assert (refused.code, "--same-kernels has no --fail-on" in refused.err) == (64, True)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--by", "colour"], "no breakdown by 'colour'"),
        (["--statistic", "mode"], "no statistic 'mode'; use one of median, mean, p99"),
        (["--threshold", "small"], "'small' is not a fraction"),
        (["--phase", "warm"], "no phase 'warm'; use one of steady, window, all"),
        (["--allow", "everything"], "nothing to allow is called 'everything'"),
        (["--fail-on", "whatever"], "--fail-on 'whatever'"),
        (["--junit", "x.xml"], "--junit writes the rules of --fail-on"),
    ],
)
def test_wrong_options_are_said(kept: Path, capsys: Capture, more: list[str], said: str) -> None:
    done = call(capsys, "compare", kept / "a.json", "vs", kept / "b.json", *more)
    assert (done.code, done.out) == (64, "")
    assert said in done.err


@pytest.mark.parametrize(("text", "value"), [("1%", 0.01), ("0.02", 0.02), ("2.5%", 0.025)])
def test_thresholds(text: str, value: float) -> None:
    assert fraction(text) == pytest.approx(value)


UNPROFILED: dict[str, Any] = {"collector": "none", "tool": "none", "profiled": False, "measure": "event"}


def _plain(times: tuple[int, ...] = (100, 101, 99), phase: Phase = "steady") -> ComparedTrial:
    return replace(trial(times, **UNPROFILED), phase=phase)


OTHER_WORK = trial(OTHER, work=StepWork(matrix_flops=4e9, tokens=64))
TIMES = re.compile(r"\d (ns|us|ms|s)\b")
REFUSED: dict[str, tuple[list[ComparedTrial], list[ComparedTrial]]] = {
    "same_recording": ([trial()], [trial()]),
    "work": ([trial(work=StepWork(matrix_flops=1e9, tokens=16))], [OTHER_WORK]),
    "mixed": ([trial(), trial((97, 99), devices=("NVIDIA L4",))], [trial(OTHER)]),
    "profiled": ([trial(**UNPROFILED)], [trial(OTHER, measure="event")]),
    "collector": ([trial()], [trial(OTHER, collector="nsys", tool="nsys")]),
    "clock": ([trial()], [trial(OTHER, measure="wall")]),
    "phase": ([_plain(), _plain((97, 99))], [_plain(OTHER, "window"), _plain((98, 96), "window")]),
    "cut": ([trial(denominator=RUN)], [trial(OTHER, denominator=Denominator("run", 10**10))]),
    "blocking": ([trial()], [trial(OTHER, blocking=True)]),
    "throttled": ([trial()], [trial(OTHER, throttled=("hw_thermal_slowdown",))]),
    "replayed": ([trial()], [trial(OTHER, replayed=True)]),
    "ranks": ([trial()], [trial(OTHER, ranks=2)]),
    "unreliable": ([trial()], [trial(OTHER, doubts=(("hidden", "hidden work"),))]),
    "no_steps": ([trial(measure="recording")], [trial(OTHER, measure="recording", name="other")]),
    "no_times": ([trial()], [trial(())]),
}
"""Code -> two sides that are refused for this reason alone."""


def _baseline(path: Path, trials: list[ComparedTrial]) -> Path:
    document = {"profrun_baseline": BASELINE_FORMAT, "trials": [one.to_json() for one in trials]}
    path.write_text(json.dumps(document))
    return path


def test_every_code_is_here() -> None:
    assert set(REFUSED) == set(STOPS)


@pytest.mark.parametrize("code", REFUSED)
def test_a_refusal_shows_facts_and_its_commands_work(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    a, b = (
        _baseline(tmp_path / f"side {name}.json", side)
        for name, side in zip("ab", REFUSED[code], strict=True)
    )
    words = ["compare", a.name, "vs", b.name, "--threshold", "2%"]
    document = call(capsys, *words, "--json").json
    assert [one["code"] for one in document["reasons"] if one["severity"] == "critical"] == [code]
    assert (document["verdict"], document["ratio"], document["exit_code"]) == ("incomparable", None, 2)
    done = call(capsys, *words)
    assert done.code == 2
    first, *rest = done.out.splitlines()
    assert "no verdict" in done.out
    assert TIMES.search(first)  # the step times as they are
    per = "in the run" if code == "cut" else "per step"
    assert f"measured {per}, without a verdict" in rest
    commands = [line.strip() for line in rest if line.startswith("  profrun ")]
    assert commands
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "profrun"
        gone_on = call(capsys, *arguments, "--json")
        assert gone_on.code in (0, 1, 2), gone_on.err
        if arguments[0] == "compare" and "--same-kernels" not in arguments:
            assert gone_on.json["ratio"] is not None
            assert gone_on.json["threshold"] == 0.02  # the other options are kept
    assert any("--allow" in command for command in commands) == (code in ALLOWABLE)


def test_two_reasons_need_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    _baseline(tmp_path / "a.json", [trial()])
    _baseline(tmp_path / "b.json", [trial(OTHER, ranks=2, measure="wall")])
    done = call(capsys, "compare", "a.json", "vs", "b.json")
    assert "no verdict, for 2 reasons" in done.out
    assert done.out.splitlines()[-1] == "  profrun compare a.json vs b.json --allow clock --allow ranks"


def test_an_interval_that_says_nothing_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Two trials of a side that differ 1000 times: no ends of an interval, no ratio, but what to do."""
    monkeypatch.chdir(tmp_path)
    uneven = [trial((100_000, 101_000)), trial((100, 101))]
    _baseline(tmp_path / "a.json", uneven)
    _baseline(tmp_path / "b.json", [trial((5_000, 5_100)), trial((4_000, 4_100))])
    out = call(capsys, "compare", "a.json", "vs", "b.json").out
    assert "per step, no verdict: the trials of one side differ too much (2 + 2 trials)" in out.replace(
        "\n  ", " "
    )
    assert "find out what else ran on the machine" in out.replace("\n    ", " ")
    assert "too wide" in out
    assert not re.search(r"\d{4,}\.\d", out)
