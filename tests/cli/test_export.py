"""``profrun export``: files for Perfetto, Chrome, speedscope and pprof."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.contract.line_names import Line, line_name
from tests.cli.running import Capture, call
from tests.tracekit import make_trace


@pytest.mark.parametrize(("to", "suffix"), [("perfetto", ".pftrace"), ("chrome", ".json.gz")])
def test_export_writes_every_slice_and_never_over_a_file(
    tmp_path: Path, trace: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, to: str, suffix: str
) -> None:
    monkeypatch.chdir(tmp_path)
    found = call(capsys, "export", trace, "--to", to, "--json").json
    assert (found["path"], found["slices"], found["to"]) == (f"t{suffix}", 4, to)
    assert Path(found["path"]).stat().st_size == found["bytes"] > 0
    again = call(capsys, "export", trace, "--to", to)
    assert again.code == 64
    assert "exists already" in again.err
    assert call(capsys, "export", trace, "--to", to, "--out", tmp_path / "x").code == 0
    assert call(capsys, "export", trace, "--to", "pdf").code == 64


@pytest.mark.parametrize(("to", "suffix"), [("speedscope", ".speedscope.json"), ("pprof", ".pb.gz")])
def test_export_writes_stacks_and_says_that_they_have_no_lines(
    tmp_path: Path, trace: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, to: str, suffix: str
) -> None:
    monkeypatch.chdir(tmp_path)
    told = call(capsys, "export", trace, "--to", to)
    assert told.out.startswith(f"t{suffix}: 2 stacks, ")
    assert told.out.endswith("B; GPU time of 1 step: 500 ns\n")
    assert told.err.startswith("The stacks have no lines of the program: it has no Python stacks, and no")
    found = call(capsys, "export", trace, "--to", to, "--json", "--out", "x").json
    assert (found["path"], found["to"], found["gpu_ns"], found["launches"]) == ("x", to, 500, 2)
    assert (found["resolved_ns"], Path("x").stat().st_size) == (None, found["bytes"])
    assert call(capsys, "export", trace, "--to", to).code == 64


def test_export_says_how_much_of_the_time_has_a_line(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mapping: 300 ns of a line, 100 ns of none."""
    rows = [
        ("range", line_name(Line("train.py", 3, "main")), 0, 50, "main"),
        ("api", "cudaLaunchKernel", 10, 5, "main", {"parent": 0, "depth": 1}),
        ("api", "cudaLaunchKernel", 60, 5, "main"),
        ("kernel", "gemm", 100, 300, "stream 7", {"launch": 1}),
        ("kernel", "add", 400, 100, "stream 7", {"launch": 2}),
    ]
    make_trace(tmp_path / "t", rows).close()
    monkeypatch.chdir(tmp_path)
    told = call(capsys, "export", "t", "--to", "speedscope")
    assert "GPU time of the recording: 400 ns, 75.0 % of it with a line of the program" in told.out
    assert told.err == ""
