"""What ``profrun`` alone proposes."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.cli.overview import show_next_steps
from tests.cli.running import Capture


def test_the_next_steps_follow_from_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PROFRUN_RUNS", raising=False)
    show_next_steps()
    first = capsys.readouterr().out
    assert first.splitlines()[2].startswith("  profrun run -- python train.py  ")
    assert "profrun demo" in first
    assert "profrun init train.py" in first
    assert "profrun status last" not in first
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/mine.yaml").touch()
    (tmp_path / "runs/r1").mkdir(parents=True)
    (tmp_path / "runs/r1/events.jsonl").touch()
    show_next_steps()
    then = capsys.readouterr().out
    assert "profrun submit jobs/mine.yaml" in then
    assert "show the newest of 1 runs in runs" in then
    assert "profrun init" not in then
    assert "profrun demo" not in then
