"""A real recording read once, and a small run made once, for all tests of the Python API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import profrun
from tests.conftest import ROOT

H200 = ROOT / "tests/data/h200/transformer"
STEPS = """
import sys, time
import profrun
for _ in range(8):
    time.sleep(float(sys.argv[1]))
    profrun.step()
"""
"""A program of eight steps; how long each takes, in seconds, is its argument."""


def recording(trial: str) -> Path:
    """The torch recording of a trial on an H200."""
    return H200 / trial / "rank0/pt.trace.json.gz"


def plain(value: object) -> object:
    """A JSON value as one reads it back from what a command printed."""
    return json.loads(json.dumps(value))


def write_job(folder: Path, **more: object) -> Path:
    """A job that needs no torch and no GPU: two variants, two repeats of each."""
    (folder / "work.py").write_text(STEPS)
    spec = {
        "name": "tiny",
        "command": "python work.py {seconds}",
        "variants": {"baseline": {"seconds": 0.004}, "optimised": {"seconds": 0.002}},
        "collectors": ["none"],
        "repeats": 2,
        **more,
    }
    (folder / "job.yaml").write_text(json.dumps(spec))  # JSON is YAML
    return folder / "job.yaml"


class Told:
    """An observer that keeps what it was told."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.notes: list[str] = []
        self.ticks = 0

    def event(self, event: dict[str, object]) -> None:
        """Something was written to the run's log."""
        self.events.append(str(event["event"]))

    def tick(self, active: object) -> None:
        """Time passes."""
        self.ticks += 1

    def note(self, text: str) -> None:
        """Something to tell the person."""
        self.notes.append(text)


@pytest.fixture(scope="package")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace folder of a recording from an H200."""
    out = tmp_path_factory.mktemp("recorded") / "trace"
    profrun.normalize(recording("baseline-torch-r1"), out).close()
    return out


@pytest.fixture
def trace(recorded: Path) -> Iterator[profrun.Trace]:
    """That trace, open."""
    with profrun.open(recorded) as opened:
        yield opened


@pytest.fixture(scope="package")
def submitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[profrun.Run, Told]:
    """A run of four trials on this machine, submitted from its folder by relative paths, and its observer."""
    folder, told = tmp_path_factory.mktemp("submitted"), Told()
    write_job(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.delenv("PROFRUN_RUNS", raising=False)
        return profrun.submit("job.yaml", observer=told), told


@pytest.fixture
def run(submitted: tuple[profrun.Run, Told]) -> profrun.Run:
    """That run. The current folder is no longer the one that it was submitted from."""
    return submitted[0]
