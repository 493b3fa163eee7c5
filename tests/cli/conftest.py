"""A trace and a run for the commands that look at them."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path

import pytest

from profrun import cli
from profrun.backends import local_checks
from profrun.store.runs import Run
from tests.cli.sides import TRIALS, words_of, write_trial
from tests.runner.scripted import begin, leave, new_run
from tests.tracekit import make_trace

SLICES = [
    ("step", "profrun.step#1", 0, 1000, "main", {"depth": 0}),
    ("api", "cudaLaunchKernel", 10, 5, "main", {"parent": 0, "depth": 1}),
    ("kernel", "gemm", 100, 300, "stream 7", {"launch": 1}),
    ("kernel", "relu", 500, 200, "stream 7", {"launch": 1}),
]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A step with two kernels: 500 of 1000 ns."""
    with make_trace(tmp_path / "t", SLICES) as made:
        made.check()
    return tmp_path / "t"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run whose first trial finished and whose second nobody started; nobody drives it."""
    run, _ = new_run(tmp_path / "runs")
    first = begin(run.trial("000-a-none-r1"))
    run.log().append("started", first.folder.name, attempt=1, handle={"backend": "local", "data": {}})
    leave(first)
    first.stdout.write_text("out 1\nout 2")
    first.stderr.write_text("err\n")
    return run


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four trials a side: b's kernel takes twice as long, its step follows; c is a with blocking launches."""
    root = tmp_path_factory.mktemp("sides")
    for trial in range(TRIALS):
        write_trial(root / f"a{trial}", 1_000_000, 500_000, trial)
        write_trial(root / f"b{trial}", 1_500_000, 1_000_000, trial)
        write_trial(root / f"c{trial}", 1_200_000, 500_000, trial, blocking=True)
    return root


@pytest.fixture
def sides(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of both sides, current."""
    monkeypatch.chdir(made)
    return made


@pytest.fixture(scope="session")
def kept(made: Path) -> Path:
    """Baselines a and b, each of its side's trials: they compare as the traces do, and are read at once."""
    folder = made / "kept"
    for side in "ab":
        traces = [str(made / word) for word in words_of(side)]
        assert cli.run(["baseline", "save", side, *traces, "--dir", str(folder)]) == 0
    return folder


@pytest.fixture
def maybe_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of which it is not sure that it has no GPU: launch-blocking twins are planned."""
    monkeypatch.setattr(local_checks, "surely_no_gpu", lambda *_: False)


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that surely has no GPU."""
    monkeypatch.setattr(local_checks, "surely_no_gpu", lambda *_: True)


@pytest.fixture
def addresses(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that a browser was asked to open; none is started."""
    found: list[str] = []

    def pretend(address: str) -> bool:
        found.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", pretend)
    return found


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, current, with this Python first on the PATH."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PROFRUN_RUNS", raising=False)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path
