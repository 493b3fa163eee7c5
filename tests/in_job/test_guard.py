"""A wrapper that is killed leaves nothing running: its guard, and the kernel, end what it started."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from profrun.in_job import leftovers, proctree
from profrun.in_job.guard import Guard
from tests.conftest import missing
from tests.in_job.kit import Trial, python

PLAIN = python("import time", "print('running', flush=True)", "time.sleep(300)")
DEAF = python(
    "import signal, time",
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
    "print('running', flush=True)",
    "time.sleep(300)",
)
TREE = python(  # as torchrun's workers, each in a session of its own, and a child with an empty environment
    "import os, subprocess, sys, time",
    "sleep = [sys.executable, '-c', 'import time; time.sleep(300)']",
    "workers = [subprocess.Popen(sleep, start_new_session=True) for _ in range(2)]",
    "subprocess.Popen(sleep, env={})",
    "print('running', flush=True)",
    "time.sleep(300)",
)


@pytest.fixture(autouse=True)
def proc() -> None:
    if not Path("/proc/self/environ").exists():
        missing("/proc")


def begin(tmp_path: Path, argv: list[str], **command: Any) -> tuple[Trial, subprocess.Popen[str]]:
    """A trial whose program runs, and its wrapper."""
    trial = Trial(tmp_path, argv, **command)
    process = trial.start(start_new_session=True)
    trial.wait_for("running\n")
    return trial, process


def until(condition: Callable[[], object]) -> None:
    """With minutes of patience."""
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.02)


def of(trial: Trial) -> list[proctree.Process]:
    """What of the trial runs."""
    return leftovers.find(lambda folder, rank: folder == str(trial.folder.resolve()))


def guard_of(process: subprocess.Popen[str]) -> int:
    """The guard of a wrapper, by its name."""
    names = {p.pid: Path(f"/proc/{p.pid}/comm").read_text() for p in proctree.descendants(process.pid)}
    return next(pid for pid, name in names.items() if name == "profrun guard\n")


@pytest.mark.parametrize(("argv", "count"), [(PLAIN, 1), (DEAF, 1), (TREE, 4)], ids=["plain", "deaf", "tree"])
def test_the_program_ends_with_a_wrapper_that_is_killed(tmp_path: Path, argv: list[str], count: int) -> None:
    """Whoever waits for the wrapper's output, or for a lock that it holds, waits for the program's end."""
    trial, process = begin(tmp_path, argv, grace_s=0.5)
    before = of(trial)
    assert len(before) == count
    process.send_signal(signal.SIGKILL)
    _out, err = process.communicate(timeout=120)  # until nobody has the wrapper's stderr open any more
    assert not any(one.alive() for one in before)
    assert not (trial.folder / "exit.json").exists()
    if argv is DEAF:
        assert "the wrapper of rank 0 was killed: 1 process was left running and had to be ended" in err


def test_the_kernel_ends_the_program_when_the_guard_was_killed_too(tmp_path: Path) -> None:
    trial, process = begin(tmp_path, PLAIN)
    before = of(trial)
    os.kill(guard_of(process), signal.SIGKILL)
    process.send_signal(signal.SIGKILL)
    until(lambda: not any(one.alive() for one in before))
    process.communicate(timeout=120)


def test_without_its_guard_the_wrapper_goes_on(tmp_path: Path) -> None:
    script = (
        "import os, time",
        f"while not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(0.02)",
    )
    trial = Trial(tmp_path, python("print('running', flush=True)", *script))
    process = trial.start()
    trial.wait_for("running\n")
    os.kill(guard_of(process), signal.SIGKILL)
    (tmp_path / "go").touch()
    done = trial.finish(process)
    assert done.exit["state"] == "finished"
    assert done.warnings == [text for text in done.warnings if "left running" not in text]


def test_a_guard_that_was_told_good_bye_ends_nothing(tmp_path: Path) -> None:
    """It is started in a process of its own, as a wrapper does."""
    code = (
        "import os, subprocess, sys; from pathlib import Path; from profrun.in_job import leftovers; "
        "from profrun.in_job.guard import guarded\n"
        "folder = Path(sys.argv[1])\n"
        "with guarded(folder, 0, 1.0) as guard:\n"
        "    env = {**os.environ, **leftovers.mark(folder, 0)}\n"
        "    child = subprocess.Popen([sys.executable, '-c', 'input()'], env=env, stdin=subprocess.PIPE)\n"
        "    guard.watch(child.pid)\n"
        "print(child.poll())\n"
        "child.communicate(b'\\n')\n"
        "print(child.wait())\n"
    )
    done = subprocess.run(
        [*python(code), str(tmp_path)], capture_output=True, text=True, check=True, timeout=240
    )
    assert done.stdout == "None\n0\n"


def test_where_there_is_no_proc_there_is_no_guard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "exists", lambda path: False)
    assert Guard.start(tmp_path, 0, 1.0) is None
