"""compare on the command line: verdicts of synthetic sides and their exit codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profrun.cli import run
from profrun.cli.compare import fraction
from tests.cli.running import call
from tests.runner.scripted import new_run
from tests.tracekit import make_trace

TRIALS = 4
Capture = pytest.CaptureFixture[str]


def _trial(out: Path, step_ns: int, kernel_ns: int, trial: int, *, blocking: bool = False) -> None:
    """Ten steps that each launch one kernel; the trial and the step move the times a little."""
    slices: list[Any] = []
    for number in range(10):
        at, first = number * 10_000_000, len(slices)
        wobble = 300 * trial + 40 * (number % 3)
        slices.append(("step", f"profrun.step#{number}", at, step_ns + wobble, "main"))
        inside = {"parent": first, "depth": 1}
        call_ns = 1000 + kernel_ns + wobble if blocking else 50
        slices.append(("api", "cudaLaunchKernel", at + 100, call_ns, "main", inside))
        slices.append(("kernel", "gemm", at + 1000, kernel_ns + wobble, "stream 7", {"launch": first + 1}))
    work = {"run": out.name, "variant": "v", "work": {"batch": 8}, "blocking": blocking}
    make_trace(out, slices, meta={"job": work}).close()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four trials a side: b's kernel takes twice as long, its step follows; c is a with blocking launches."""
    root = tmp_path_factory.mktemp("sides")
    for trial in range(TRIALS):
        _trial(root / f"a{trial}", 1_000_000, 500_000, trial)
        _trial(root / f"b{trial}", 1_500_000, 1_000_000, trial)
        _trial(root / f"c{trial}", 1_200_000, 500_000, trial, blocking=True)
    return root


@pytest.fixture
def sides(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of both sides, current."""
    monkeypatch.chdir(made)
    return made


def _words(side: str) -> list[str]:
    return [f"{side}{trial}" for trial in range(TRIALS)]


@pytest.fixture(scope="module")
def kept(made: Path) -> Path:
    """Baselines a and b, each of its side's trials: they compare as the traces do, and are read at once."""
    folder = made / "kept"
    for side in "ab":
        traces = [str(made / word) for word in _words(side)]
        assert run(["baseline", "save", side, *traces, "--dir", str(folder)]) == 0
    return folder


def test_slower_faster_and_their_exit_codes(sides: Path, kept: Path, capsys: Capture) -> None:
    slower = call(capsys, "compare", *_words("a"), "vs", *_words("b"), "--json")
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
    assert out.startswith("slower: 1.5 ms against 1 ms per step, ratio 1.500, 95 % interval ")
    assert f"({TRIALS} and {TRIALS} trials" in out
    assert [line.split()[:2] for line in out.splitlines() if "gemm" in line] == [["slower", "gemm"]]


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
    _trial(tmp_path / "a0", 1_000_000, 500_000, 0)
    _trial(made.trial("000-default-none-r1").folder / "trace", 1_000_000, 500_000, 1)
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


def test_blocking_twins_by_hand(sides: Path, capsys: Capture) -> None:
    done = call(capsys, "blocking", *_words("a"), "vs", *_words("c"), "--json")
    assert done.code == 0, done.err
    found = done.json
    assert found["points"] == [{key: value for key, value in found.items() if key != "points"}]
    assert found["ratio"] == pytest.approx(1.2, rel=0.01)
    assert (found["kernel_multiset_equal"], found["took_effect"]) == (True, True)
    text = call(capsys, "blocking", *_words("a"), "vs", *_words("c")).out
    assert "the same kernels in both runs" in text
    assert text.startswith("A step takes 1.200 times as long when launches block")


def test_blocking_of_a_run_needs_twins(tmp_path: Path, capsys: Capture) -> None:
    made, _ = new_run(tmp_path)
    done = call(capsys, "blocking", made.path)
    assert done.code == 65
    assert "has no launch-blocking twins" in done.err
    assert "--set launch_blocking=both" in done.err


def test_a_baseline_stands_for_the_trials_it_was_made_of(
    sides: Path, kept: Path, tmp_path: Path, capsys: Capture
) -> None:
    other, kept = kept / "b.json", tmp_path / "kept"
    saved = call(capsys, "baseline", "save", "main", *_words("a"), "--dir", kept, "--json").json
    assert (saved["path"], saved["trials"]) == (str(kept / "main.json"), TRIALS)
    then = call(capsys, "compare", kept / "main.json", "vs", other, "--json").json
    now = call(capsys, "compare", *_words("a"), "vs", *_words("b"), "--json").json
    assert then == now
    (listed,) = call(capsys, "baseline", "list", "--dir", kept, "--json").json["baselines"]
    assert (listed["name"], listed["trials"]) == ("main", TRIALS)
    assert 1_000_000 <= listed["median_step_ns"] <= 1_002_000
    assert "main" in call(capsys, "baseline", "list", "--dir", kept).out
    again = call(capsys, "baseline", "save", "main", "a0", "--dir", kept)
    assert (again.code, "exists already" in again.err) == (64, True)
    assert call(capsys, "baseline", "save", "main", "a0", "--dir", kept, "--force").code == 0
    assert "no baselines in" in call(capsys, "baseline", "list", "--dir", tmp_path / "none").out


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"profrun_baseline": 1, "trials": [{"format": 1}]}'])
def test_what_is_no_baseline_is_said(sides: Path, tmp_path: Path, capsys: Capture, content: str) -> None:
    (tmp_path / "x.json").write_text(content)
    done = call(capsys, "compare", tmp_path / "x.json", "vs", "a0")
    assert done.code == 65
    assert "profrun baseline save" in done.err


@pytest.mark.parametrize(("text", "value"), [("1%", 0.01), ("0.02", 0.02), ("2.5%", 0.025)])
def test_thresholds(text: str, value: float) -> None:
    assert fraction(text) == pytest.approx(value)
