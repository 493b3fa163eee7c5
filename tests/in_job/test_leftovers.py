"""Processes of a trial are found by their mark, whatever became of their parents, and ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from profrun.in_job import leftovers, proctree
from tests.conftest import missing
from tests.in_job.kit import Trial, python

SLEEP = [sys.executable, "-c", "import time; time.sleep(300)"]
DEAF = python("import signal, time", "signal.signal(15, signal.SIG_IGN)", "print()", "time.sleep(300)")
BARE = python(
    "import subprocess, sys, time",
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'], env={})",
    "print(child.pid)",
    "time.sleep(300)",
)


@pytest.fixture(autouse=True)
def proc() -> None:
    if not Path("/proc/self/environ").exists():
        missing("/proc")


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that are gone after the test."""
    found: list[subprocess.Popen[bytes]] = []
    yield found
    for process in found:
        process.kill()
        process.communicate()


def start(
    started: list[subprocess.Popen[bytes]], argv: list[str], folder: Path, rank: int = 0
) -> subprocess.Popen[bytes]:
    environ = {**os.environ, **leftovers.mark(folder, rank)}
    process = subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE)
    started.append(process)
    return process


def test_only_processes_of_the_trial_are_found(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    own = start(started, SLEEP, tmp_path / "a", 1)
    start(started, SLEEP, tmp_path / "a", 2)
    start(started, SLEEP, tmp_path / "b", 1)
    started.append(subprocess.Popen(SLEEP))
    found = leftovers.find(lambda folder, rank: (folder, rank) == (str(tmp_path / "a"), 1))
    assert [process.pid for process in found] == [own.pid]


def test_who_asks_and_those_above_it_are_never_ended(tmp_path: Path) -> None:
    """profrun may run inside a program that is marked."""
    code = (
        "import subprocess, sys; from profrun.in_job import leftovers; "
        "print([p.pid for p in leftovers.find(lambda folder, rank: folder == sys.argv[1])])"
    )
    inner = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}, sys.argv[1]])"
    environ = {**os.environ, **leftovers.mark(tmp_path, 0)}
    done = subprocess.run(
        [sys.executable, "-c", inner, str(tmp_path)], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_what_ignores_the_request_is_killed_and_children_without_a_mark_too(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    deaf, bare = start(started, DEAF, tmp_path), start(started, BARE, tmp_path)
    assert deaf.stdout is not None
    assert bare.stdout is not None
    assert deaf.stdout.readline() == b"\n"
    child = int(bare.stdout.readline())
    ended = leftovers.end_all(lambda folder, rank: folder == str(tmp_path), 0.3)
    assert deaf.wait(60) == -signal.SIGKILL
    assert bare.wait(60) == -signal.SIGTERM
    assert proctree.descendants(bare.pid) == []
    assert child not in [process.pid for process in proctree.everyone()]
    assert len(ended) == 3
    assert leftovers.ended_text(ended).startswith("3 processes were left running and had to be ended (")


def test_nothing_is_found_where_there_is_no_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> list[str]:
        raise FileNotFoundError(path)

    monkeypatch.setattr(os, "listdir", refuse)
    assert leftovers.end_all(lambda folder, rank: True, 60.0) == []


def test_an_attempt_first_ends_what_an_earlier_one_left(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    """A queue has started the trial again, and its processes of before still run on this machine."""
    trial = Trial(tmp_path, python("print('second')"))
    before = start(started, SLEEP, trial.folder.resolve())
    other = start(started, SLEEP, trial.folder.resolve(), rank=1)
    done = trial.run()
    assert before.wait(60) == -signal.SIGTERM
    assert other.poll() is None
    assert done.exit["state"] == "finished"
    told = [row for row in done.exit["warnings"] if row["code"] == leftovers.CODE]
    assert [row["what"] for row in told] == [
        f"of an earlier attempt 1 process was left running and had to be ended ({' '.join(SLEEP)})"
    ]
