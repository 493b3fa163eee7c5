"""``profrun normalize``: a profiler's file becomes a trace."""

from __future__ import annotations

import json
from pathlib import Path

from profrun.store.runs import Run
from tests.cli.running import Capture, call
from tests.collectors.torch.kineto import api, document, kernel


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


def test_what_was_done_about_a_clock_is_said(tmp_path: Path, capsys: Capture) -> None:
    events = [
        api("cudaLaunchKernel", 5.001, 10, 1),
        kernel("gemm", 5020, 30, 1),
        api("cudaDeviceSynchronize", 20, 40, 2),
    ]
    file = tmp_path / "a.json"
    file.write_text(json.dumps(document(events)))
    moved = call(capsys, "normalize", file, "--out", tmp_path / "moved")
    assert "GPU times of device 0 were moved by -4.993 ms" in moved.err
    kept = call(capsys, "normalize", file, "--out", tmp_path / "kept", "--no-repair")
    assert "GPU times of device 0 are not on the host's clock, and were left as they are" in kept.err
    done = call(capsys, "normalize", file, "--out", tmp_path / "json", "--json")
    assert [clock["verdict"] for clock in done.json["clocks"]] == ["offset"]
