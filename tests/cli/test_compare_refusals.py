"""Every refusal of `profrun compare`: it shows what was measured, and the commands that it prints go on."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from profrun.analysis.compare import ComparedTrial
from profrun.analysis.compare.comparability import ALLOWABLE, STOPS
from profrun.analysis.compare.compared_trial import StepWork
from profrun.runner.comparison_sides import BASELINE_FORMAT
from tests.analysis.compare.trials import OTHER, trial
from tests.cli.running import Capture, call

UNPROFILED: dict[str, Any] = {"collector": "none", "tool": "none", "profiled": False, "measure": "event"}
OTHER_WORK = trial(OTHER, work=StepWork(matrix_flops=4e9, tokens=64))
TIMES = re.compile(r"\d (ns|us|ms|s)\b")
REFUSED: dict[str, tuple[list[ComparedTrial], list[ComparedTrial]]] = {
    "same_recording": ([trial()], [trial()]),
    "work": ([trial(work=StepWork(matrix_flops=1e9, tokens=16))], [OTHER_WORK]),
    "mixed": ([trial(), trial((97, 99), devices=("NVIDIA L4",))], [trial(OTHER)]),
    "profiled": ([trial(**UNPROFILED)], [trial(OTHER, measure="event")]),
    "collector": ([trial()], [trial(OTHER, collector="nsys", tool="nsys")]),
    "clock": ([trial()], [trial(OTHER, measure="wall")]),
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
    assert "measured per step, without a verdict" in rest
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
