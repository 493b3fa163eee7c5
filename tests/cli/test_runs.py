"""``profrun runs``: the list of runs of a folder."""

from __future__ import annotations

from pathlib import Path

from profrun.store.runs import Run
from tests.cli.running import Capture, call


def test_runs_are_listed_oldest_first_and_none_is_said(tmp_path: Path, run: Run, capsys: Capture) -> None:
    listed = call(capsys, "runs", "--runs", tmp_path / "runs").out.splitlines()
    assert listed[0].split() == ["run", "backend", "state", "trials", "created"]
    assert listed[1].split()[:4] == [run.name, "scripted", "interrupted", "1/2"]
    assert "no runs in" in call(capsys, "runs", "--runs", tmp_path / "none").out


def test_a_file_where_the_runs_should_be_is_said(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "job.yaml").touch()
    done = call(capsys, "runs", "--runs", tmp_path / "job.yaml")
    assert (done.code, "is no folder" in done.err) == (64, True)
