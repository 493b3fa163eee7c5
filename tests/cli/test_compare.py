"""compare on the command line: verdicts of synthetic sides and their exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.cli.compare_args import fraction
from tests.cli.running import Capture, call
from tests.cli.sides import TRIALS, words_of, write_trial
from tests.runner.scripted import new_run


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


def test_a_gate_holds_the_guesses_of_side_b(tmp_path: Path, capsys: Capture) -> None:
    guess = "expect: [{step_ms: 0.5}]\ncollectors: [none]\n"
    made, _ = new_run(tmp_path / "runs", f"name: t\ncommand: python x.py\n{guess}")
    write_trial(tmp_path / "a0", 1_000_000, 500_000, 0)
    write_trial(made.trial("000-default-none-r1").folder / "trace", 1_000_000, 500_000, 1)
    reference = made.trial("000-default-none-r1").folder
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
