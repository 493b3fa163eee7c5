"""Words for the shell's completion, as a shell asks for them."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runner.test_removal import ended_run, rename


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Runs a (1 January) and b (2 January): trial 0 of each has a trace, and trial 1 has none."""
    root = tmp_path / "runs"
    for day, job in enumerate("ab", start=1):
        run = rename(ended_run(root), job, day)
        (run.trials / "001-b-none-r1").mkdir()
    return root


A, B = "a-20260101T000000Z-0001", "b-20260102T000000Z-0002"


def ask(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """What bash's function asks: the words so far, and which one is to be completed."""
    asked = {
        "COMP_WORDS": " ".join(["profrun", *words]),
        "COMP_CWORD": str(len(words)),
        "_PROFRUN_COMPLETE": "complete_bash",
    }
    environment = {name: value for name, value in os.environ.items() if name != "PROFRUN_RUNS"}
    return subprocess.run(
        [sys.executable, "-m", "profrun.cli"],
        cwd=folder,
        env={**environment, **asked, **more},
        capture_output=True,
        text=True,
        check=False,
    )


def offered(folder: Path, *words: str, **more: str) -> list[str]:
    done = ask(folder, *words, **more)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_runs_are_offered_newest_first(runs: Path, tmp_path: Path) -> None:
    assert offered(tmp_path, "status", "") == ["last", B, A]
    assert offered(tmp_path, "rm", A, "b") == [B]
    assert offered(runs, "status", "") == []
    assert offered(runs, "status", "", PROFRUN_RUNS=str(runs)) == ["last", B, A]
    assert offered(runs, "status", "--runs", str(runs), "a") == [A]


def test_trials_with_a_trace_are_offered_once_the_run_is_known(runs: Path, tmp_path: Path) -> None:
    assert offered(tmp_path, "summary", "") == ["last/", f"{B}/", f"{A}/"]
    assert offered(tmp_path, "summary", "a-") == [f"{A}/000-a-none-r1"]
    assert offered(tmp_path, "diagnose", "last/") == ["last/000-a-none-r1"]
    assert offered(tmp_path, "query", "b-2026/") == ["b-2026/000-a-none-r1"]
    assert offered(tmp_path, "open", f"{A}/0") == [f"{A}/000-a-none-r1"]


def test_a_number_stands_for_a_trial(runs: Path, tmp_path: Path) -> None:
    assert offered(tmp_path, "logs", "last", "") == ["000-a-none-r1", "001-b-none-r1"]
    assert offered(tmp_path, "logs", "last", "1") == ["1"]


def test_sides_are_points_and_the_word_between_them(runs: Path, tmp_path: Path) -> None:
    assert offered(tmp_path, "compare", "last/") == ["last/a-none", "last/b-none", "last/000-a-none-r1"]
    assert offered(tmp_path, "compare", "l") == ["last", "last/a-none", "last/b-none"]
    assert offered(tmp_path, "compare", "last/a-none", "") == ["vs", "last", B, A]
    assert offered(tmp_path, "compare", "last/a-none", "vs", "") == ["last", B, A]
    assert offered(tmp_path, "baseline", "save", "main", "last/b") == ["last/b-none"]


def test_files_are_offered_beside_runs_that_begin_alike(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "b.json").touch()
    (tmp_path / "b dir").mkdir()
    (tmp_path / "baselines").mkdir()
    assert offered(tmp_path, "compare", "b") == [B, f"{B}/a-none", f"{B}/b-none", "b.json", "baselines/"]
    assert offered(tmp_path, "compare", "b.") == []  # the shell completes files itself


def test_options_and_fixed_names(runs: Path, tmp_path: Path) -> None:
    assert offered(tmp_path, "open", "--no") == ["--no-browser"]
    assert offered(tmp_path, "submit", "--backend", "") == ["local", "docker", "slurm", "kubernetes"]
    assert offered(tmp_path, "doctor", "nsys", "n") == ["none", "nsys", "ncu"]
    assert offered(tmp_path, "completion", "") == ["bash", "zsh", "fish"]
    assert offered(tmp_path, "blocking", "--variant", "") == ["a", "b"]


@pytest.mark.parametrize(
    "words",
    [
        ["nothing", "x"],
        ["status", "--nothing", "x"],
        ["summary", "nothing/"],
        ["summary", "/no/such/run/"],
        ["status", "--runs", "/dev/null", "x"],
        ["blocking", "nothing", "--variant", ""],
        ["logs", "nothing", ""],
    ],
)
def test_what_is_wrong_is_silence(words: list[str], runs: Path, tmp_path: Path) -> None:
    done = ask(tmp_path, *words)
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_a_damaged_run_is_silence(runs: Path, tmp_path: Path) -> None:
    (runs / A / "plan.json").write_text("{")
    assert offered(tmp_path, "blocking", A, "--variant", "") == []


def test_nothing_heavy_is_imported(runs: Path, tmp_path: Path) -> None:
    program = (
        "import sys, os, atexit; from profrun.cli import main\n"
        "heavy = {'duckdb', 'numpy', 'rich', 'yaml', 'msgspec', 'docker'}\n"
        "atexit.register(lambda: print(sorted(heavy & set(sys.modules)), file=sys.stderr))\n"
        "main([])"
    )
    for words in (["s"], ["summary", "last/"], ["status", "a"], ["compare", "last/"], ["logs", "last", ""]):
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env={
                **os.environ,
                "_PROFRUN_COMPLETE": "complete_bash",
                "COMP_WORDS": " ".join(["profrun", *words]),
                "COMP_CWORD": str(len(words)),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.stdout != "", done.stderr) == (True, "[]\n"), words


def test_it_answers_fast(runs: Path, tmp_path: Path) -> None:
    """In CPU seconds; once of many times is enough, because a busy machine only ever adds.

    0.16 to 0.20 s were measured while 16 processes shared two cores, of which typer's import took 0.08 s.
    """
    found: list[float] = []
    while len(found) < 20 and min(found, default=1.0) >= 0.25:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ask(tmp_path, "summary", "last/")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(found) < 0.25, found
