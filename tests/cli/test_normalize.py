"""``profrun normalize``: a profiler's file becomes a trace."""

from __future__ import annotations

from pathlib import Path

from profrun.store.runs import Run
from tests.cli.running import Capture, call


def test_normalize_reads_by_content(tmp_path: Path, run: Run, capsys: Capture) -> None:
    steps = run.trial("000-a-none-r1").folder / "raw/rank0/steps.json"
    moved = steps.rename(tmp_path / "anything.bin")
    done = call(capsys, "normalize", moved, "--out", tmp_path / "made", "--json")
    assert done.code == 0, done.err
    assert (done.json["trace"], done.json["counts"]["steps"]) == (str(tmp_path / "made"), 3)
    again = call(capsys, "normalize", moved, "--out", tmp_path / "made")
    assert again.code == 65
    assert "exists already" in again.err


def test_a_file_named_twice_is_not_read_twice(tmp_path: Path, run: Run, capsys: Capture) -> None:
    (file,) = list(run.path.glob("trials/*/raw/rank0/steps.json"))[:1]
    done = call(capsys, "normalize", file, file.parent / "../rank0/steps.json", "--out", tmp_path / "t")
    assert (done.code, "is named twice" in done.err) == (64, True)
    assert not (tmp_path / "t").exists()
