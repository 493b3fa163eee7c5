"""``profrun rm``: what it removes, prints and asks."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from profrun.store.runs import Run
from tests.cli.running import Capture, call
from tests.cli.sides import TRIALS, write_trial
from tests.runner.test_removal import RAW, ended_run


@pytest.fixture
def ended(tmp_path: Path) -> Run:
    return ended_run(tmp_path / "runs")


def test_a_run_goes_and_the_space_is_said(ended: Run, capsys: Capture) -> None:
    done = call(capsys, "rm", "last", "--yes", "--runs", ended.path.parent)
    assert (done.code, done.err, ended.path.exists()) == (0, "", False)
    assert done.out.splitlines()[1].startswith(f"{ended.name}  everything")
    assert done.out.splitlines()[-1].startswith("Removed 1 run and freed ")
    assert done.out.splitlines()[-1].endswith(" MiB.")


def test_a_dry_run_removes_nothing(ended: Run, capsys: Capture) -> None:
    done = call(capsys, "rm", ended.name, "--dry-run", "--runs", ended.path.parent)
    assert (done.code, ended.path.exists()) == (0, True)
    assert "Dry run: nothing was removed. Removing 1 run would free 1." in done.out


def test_json_says_what_went(ended: Run, capsys: Capture) -> None:
    root = ended.path.parent
    found = call(capsys, "rm", "last", "--raw", "--yes", "--json", "--runs", root).json
    file = ended.trials / "000-a-none-r1" / RAW
    row = {"run": ended.name, "path": str(ended.path), "bytes": found["bytes"], "files": [str(file)]}
    assert found == {"removed": True, "bytes": found["bytes"], "runs": [row], "kept": []}
    assert found["bytes"] >= 1 << 20
    assert not file.exists()
    again = call(capsys, "rm", "last", "--raw", "--yes", "--runs", root)
    assert again.out == "There is nothing to remove.\n"


def test_without_a_terminal_it_needs_yes(ended: Run, capsys: Capture) -> None:
    done = call(capsys, "rm", "last", "--runs", ended.path.parent)
    assert (done.code, ended.path.exists()) == (64, True)
    assert "add --yes" in done.err


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1), ("", 1)])
def test_on_a_terminal_it_asks(ended: Run, answer: str, code: int) -> None:
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "profrun.cli", "rm", "last", "--runs", str(ended.path.parent)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    said = b""
    while b"[y/N]" not in said:
        said += os.read(ours, 4096)
    os.write(ours, f"{answer}\n".encode())
    assert child.wait(timeout=120) == code
    os.close(ours)
    assert b"Remove 1 run and free" in said
    assert ended.path.exists() is bool(code)


def test_one_that_may_not_go_keeps_all(tmp_path: Path, capsys: Capture) -> None:
    """Nothing is removed before everything was looked at."""
    here, elsewhere = ended_run(tmp_path / "runs"), ended_run(tmp_path / "elsewhere")
    done = call(capsys, "rm", "last", elsewhere.path, "--yes", "--runs", tmp_path / "runs")
    assert (done.code, here.path.exists(), elsewhere.path.exists()) == (64, True, True)
    assert f"is not in {tmp_path}/runs" in done.err


def test_a_run_that_is_not_there_is_64(ended: Run, capsys: Capture) -> None:
    assert call(capsys, "rm", "nothing", "--yes", "--runs", ended.path.parent).code == 64
    assert ended.path.exists()


def test_a_run_that_is_named_twice_goes_once(ended: Run, capsys: Capture) -> None:
    done = call(capsys, "rm", "last", ended.name, "--yes", "--runs", ended.path.parent)
    assert (done.code, ended.path.exists()) == (0, False)


@pytest.mark.thorough
def test_a_baseline_outlives_the_run_that_it_was_made_from(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = ended_run(tmp_path / "runs", trace=False)
    trial = run.trials / "000-a-none-r1"
    write_trial(trial / "trace", 1_000_000, 500_000, 0)
    for number in range(1, TRIALS):
        write_trial(tmp_path / f"b{number}", 1_000_000, 500_000, number)
    assert call(capsys, "baseline", "save", "main", "last/0").code == 0
    assert call(capsys, "rm", "last", "--yes").code == 0
    assert json.loads((tmp_path / "baselines/main.json").read_text())["trials"]
    done = call(capsys, "baseline", "compare", "main", "b1", "b2", "b3", "--json")
    assert done.json["trials"] == [1, 3]
