"""A whole trial: the wrapper and the hook drive a stand-in for triton.profiler, and its file is read."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from profrun.collectors.normalize import normalize
from profrun.traces.trace import Trace
from tests.collectors.proton.files import issues
from tests.conftest import ROOT, first
from tests.in_job.kit import Trial

SCRIPT = """
import torch, profrun
from triton.profiler import launch
for step in range(8):
    launch("outside")
    with profrun.range("forward"):
        launch("gemm")
    profrun.step()
"""
STANDIN = {"PYTHONPATH": str(ROOT / "tests" / "standins" / "proton")}


def run(tmp_path: Path, **command: object) -> tuple[Trial, list[Path]]:
    """Run the trial; returns it and the files that Proton left."""
    trial = Trial(
        tmp_path,
        [sys.executable, "job.py"],
        SCRIPT,
        collector="proton",
        profiler="proton",
        vendor="nvidia",
        sample=0,
        schedule={"wait": 2, "warmup": 1, "active": 2, "repeat": 1, "skip_first": 0},
        **command,
    )
    done = trial.run(STANDIN)
    assert done.code == 0, done.stderr
    (warning,) = done.warnings
    assert warning.startswith("the first recorded step of each cycle")
    return trial, sorted(
        path for path in (trial.folder / "raw" / "rank0").iterdir() if path.name != "steps.json"
    )


@pytest.mark.thorough
def test_the_active_steps_are_in_the_trace_with_their_ranges(tmp_path: Path) -> None:
    _, files = run(tmp_path)
    assert [path.suffix for path in files] == [".chrome_trace"]
    normalize(files, tmp_path / "trace")
    trace = Trace(tmp_path / "trace")
    kernels = "SELECT name, ts_ns FROM slices WHERE kind = 'kernel' ORDER BY ts_ns"
    names = [name for name, _ in trace.sql(kernels).rows]
    assert names == ["outside", "gemm"] * 2
    ranges = "SELECT name, ts_ns, dur_ns FROM slices WHERE kind = 'range' ORDER BY ts_ns, dur_ns DESC"
    assert trace.sql(ranges).rows == [
        ("profrun.step#3", 0, 11_000),
        ("forward", 10_000, 1_000),
        ("profrun.step#4", 20_000, 11_000),
        ("forward", 30_000, 1_000),
    ]
    assert issues(trace).keys() >= {"scope_times_from_kernels"}
    assert trace.sql("SELECT pid > 0, rank FROM processes").rows == [(True, 0)]


@pytest.mark.thorough
def test_what_the_hook_emitted_is_counted(tmp_path: Path) -> None:
    trial, _ = run(tmp_path)
    steps = (trial.folder / "raw" / "rank0" / "steps.json").read_text()
    assert '"emitter": "proton"' in steps
    assert '"ranges_emitted": 4' in steps


@pytest.mark.parametrize("data", first(0, ["tree", "trace"]))
def test_each_kind_of_data_leaves_its_file(tmp_path: Path, data: str) -> None:
    _, files = run(tmp_path, options={"data": data, "hook": "none"})
    assert [path.suffix for path in files] == [{"trace": ".chrome_trace", "tree": ".hatchet"}[data]]
    normalize(files, tmp_path / "trace")
    trace = Trace(tmp_path / "trace")
    kernels = trace.sql("SELECT name, count(*) FROM slices WHERE kind = 'kernel' GROUP BY name").rows
    assert sorted(kernels) == [("gemm", 2), ("outside", 2)]
    ranges = {name for (name,) in trace.sql("SELECT name FROM slices WHERE kind = 'range'").rows}
    assert ranges == {"forward"} | ({"profrun.step#3", "profrun.step#4"} if data == "trace" else set())
