"""Words for the shell's completion, as a shell asks for them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from profrun.cli import main
from tests.cli.cost import times_the_smallest
from tests.conftest import first
from tests.runner.test_removal import ended_run, rename

Capture = pytest.CaptureFixture[str]
Offered = Callable[..., list[str]]

MAIN = "from profrun.cli import main; main([])"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Runs a (1 January) and b (2 January): trial 0 of each has a trace, and trial 1 has none."""
    root = tmp_path / "runs"
    for day, job in enumerate("ab", start=1):
        run = rename(ended_run(root), job, day)
        (run.trials / "001-b-none-r1").mkdir()
    return root


A, B = "a-20260101T000000Z-0001", "b-20260102T000000Z-0002"


def asking(*words: str) -> dict[str, str]:
    """How bash's function asks: the words so far, and which one is to be completed."""
    return {
        "COMP_WORDS": " ".join(["profrun", *words]),
        "COMP_CWORD": str(len(words)),
        "_PROFRUN_COMPLETE": "complete_bash",
    }


def ask(folder: Path, *words: str, code: str = MAIN) -> subprocess.CompletedProcess[str]:
    """Ask in a process of its own, as a shell does."""
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "PROFRUN_RUNS"} | asking(*words),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def offered(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> Offered:
    """The words that are offered in the folder of the runs' folder, in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PROFRUN_RUNS", raising=False)

    def offer(*words: str) -> list[str]:
        for name, value in asking(*words).items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            main([])
        found = capsys.readouterr()
        assert (ended.value.code, found.err) == (0, "")
        return found.out.split()

    return offer


def test_a_shell_gets_a_word_per_line_and_nothing_else(runs: Path, tmp_path: Path) -> None:
    done = ask(tmp_path, "status", "")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"last\n{B}\n{A}\n", "")


def test_runs_are_offered_newest_first(offered: Offered, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert offered("status", "") == ["last", B, A]
    assert offered("rm", A, "b") == [B]
    monkeypatch.chdir(runs)
    assert offered("status", "") == []
    assert offered("status", "--runs", str(runs), "a") == [A]
    monkeypatch.setenv("PROFRUN_RUNS", str(runs))
    assert offered("status", "") == ["last", B, A]


def test_trials_with_a_trace_are_offered_once_the_run_is_known(offered: Offered) -> None:
    assert offered("summary", "") == ["last/", f"{B}/", f"{A}/"]
    assert offered("summary", "a-") == [f"{A}/000-a-none-r1"]
    assert offered("diagnose", "last/") == ["last/000-a-none-r1"]
    assert offered("query", "b-2026/") == ["b-2026/000-a-none-r1"]
    assert offered("open", f"{A}/0") == [f"{A}/000-a-none-r1"]


def test_a_number_stands_for_a_trial(offered: Offered) -> None:
    assert offered("logs", "last", "") == ["000-a-none-r1", "001-b-none-r1"]
    assert offered("logs", "last", "1") == ["1"]


def test_sides_are_points_and_the_word_between_them(offered: Offered) -> None:
    assert offered("compare", "last/") == ["last/a-none", "last/b-none", "last/000-a-none-r1"]
    assert offered("compare", "l") == ["last", "last/a-none", "last/b-none"]
    assert offered("compare", "last/a-none", "") == ["vs", "last", B, A]
    assert offered("compare", "last/a-none", "vs", "") == ["last", B, A]
    assert offered("baseline", "save", "main", "last/b") == ["last/b-none"]


def test_files_are_offered_beside_runs_that_begin_alike(offered: Offered, tmp_path: Path) -> None:
    (tmp_path / "b.json").touch()
    (tmp_path / "b dir").mkdir()
    (tmp_path / "baselines").mkdir()
    assert offered("compare", "b") == [B, f"{B}/a-none", f"{B}/b-none", "b.json", "baselines/"]
    assert offered("compare", "b.") == []  # the shell completes files itself


def test_options_and_fixed_names(offered: Offered) -> None:
    assert offered("open", "--no") == ["--no-browser"]
    assert offered("submit", "--backend", "") == ["local", "docker", "slurm", "kubernetes"]
    assert offered("doctor", "nsys", "n") == ["none", "nsys", "ncu"]
    assert offered("job", "examples", "tra") == [
        "train",
        "transformer",
        "transformer_ablation",
        "transformer_blocking",
    ]
    assert offered("job", "examples", "train", "tra")[0] == "transformer"
    assert offered("completion", "") == ["bash", "zsh", "fish"]
    assert offered("blocking", "--variant", "") == ["a", "b"]


@pytest.mark.parametrize(
    "words",
    first(
        3,
        [
            ["nothing", "x"],
            ["summary", "/no/such/run/"],
            ["status", "--runs", "/dev/null", "x"],
            ["status", "--nothing", "x"],
            ["summary", "nothing/"],
            ["blocking", "nothing", "--variant", ""],
            ["logs", "nothing", ""],
        ],
    ),
)
def test_what_is_wrong_is_silence(words: list[str], offered: Offered) -> None:
    assert offered(*words) == []


def test_a_damaged_run_is_silence(offered: Offered, runs: Path) -> None:
    (runs / A / "plan.json").write_text("{")
    assert offered("blocking", A, "--variant", "") == []


def test_nothing_heavy_is_imported(runs: Path, tmp_path: Path) -> None:
    program = (
        "import sys, os, atexit; from profrun.cli import main\n"
        "heavy = {'duckdb', 'numpy', 'rich', 'yaml', 'msgspec', 'docker'}\n"
        "atexit.register(lambda: print(sorted(heavy & set(sys.modules)), file=sys.stderr))\n"
        "main([])"
    )
    for words in (
        ["s"],
        ["summary", "last/"],
        ["status", "a"],
        ["compare", "last/"],
        ["logs", "last", ""],
        ["job", "examples", "m"],
    ):
        done = ask(tmp_path, *words, code=program)
        assert (done.stdout != "", done.stderr) == (True, "[]\n"), words


def test_it_answers_fast(runs: Path, tmp_path: Path) -> None:
    limit = 1.2
    assert times_the_smallest(lambda: ask(tmp_path, "summary", "last/"), limit) < limit
