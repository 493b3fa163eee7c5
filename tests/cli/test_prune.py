"""``profrun prune``: which runs go, and which stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.store.lock import driving
from tests.cli.running import Capture, call
from tests.runner.test_removal import RAW, ended_run, rename


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three runs of a job, made in January 2026, and one that was made now."""
    root = tmp_path / "runs"
    for day in (1, 2, 3):
        rename(ended_run(root), "old", day)
    ended_run(root)
    return root


def left(root: Path) -> int:
    return len(list(root.iterdir()))


@pytest.mark.parametrize(
    ("limits", "stay"),
    [
        (["--keep", "2"], 3),
        (["--keep", "0"], 0),
        (["--older-than", "1d"], 1),
        (["--older-than", "1d", "--keep", "1"], 2),
        (["--older-than", "36500d"], 4),
    ],
)
def test_old_runs_go(root: Path, limits: list[str], stay: int, capsys: Capture) -> None:
    assert call(capsys, "prune", *limits, "--dry-run", "--runs", root).code == 0
    assert left(root) == 4
    done = call(capsys, "prune", *limits, "--yes", "--runs", root)
    assert (done.code, left(root)) == (0, stay)
    assert ("There is nothing to remove." in done.out) is (stay == 4)


def test_raw_alone_is_for_all_runs(root: Path, capsys: Capture) -> None:
    done = call(capsys, "prune", "--raw", "--yes", "--runs", root)
    assert (done.code, left(root)) == (0, 4)
    assert "Removed the profilers' files of 4 runs and freed 4" in done.out
    assert not list(root.glob(f"*/trials/*/{RAW}"))


def test_a_run_that_still_runs_stays_and_is_named(root: Path, capsys: Capture) -> None:
    (running,) = root.glob("old-20260102*")
    with driving(running / "lock", running.name):
        done = call(capsys, "prune", "--keep", "0", "--yes", "--runs", root)
    assert (done.code, [path.name for path in root.iterdir()]) == (0, [running.name])
    assert f"kept: {running.name} still runs" in done.err


@pytest.mark.parametrize("limits", [[], ["--older-than", "soon"], ["--keep", "-1"]])
def test_what_says_nothing_is_64(root: Path, limits: list[str], capsys: Capture) -> None:
    assert call(capsys, "prune", *limits, "--yes", "--runs", root).code == 64
    assert left(root) == 4


def test_no_runs_is_nothing_to_remove(tmp_path: Path, capsys: Capture) -> None:
    done = call(capsys, "prune", "--keep", "1", "--runs", tmp_path / "none")
    assert (done.code, done.out) == (0, "There is nothing to remove.\n")
