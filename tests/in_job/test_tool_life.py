"""A profiler that loses a part of itself, or does nothing any more, holds up nobody."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from profrun.in_job import proctree
from profrun.in_job.outcome import PROFILER_DIED
from profrun.in_job.tool_life import ToolLife
from tests.conftest import missing
from tests.in_job.kit import Done, Trial, python

NSYS = """#!{python} -I
# A stand-in nsys of two processes: a launcher starts the program and tells when it has ended.
import os, subprocess, sys, time
if sys.argv[1:] == ["--version"]:
    print("NVIDIA Nsight Systems version 2024.2.3.38-242334140272v0")
    sys.exit(0)
if sys.argv[1] == "export":
    sys.exit(1)
out = next(word.split("=", 1)[1] for word in sys.argv if word.startswith("--output="))
rest = sys.argv[2:]
while rest[0].startswith("-"):
    rest.pop(0)
home, told = os.path.dirname(os.path.abspath(sys.argv[0])), out + ".told"
subprocess.Popen([os.path.join(home, "nsys-launcher"), told, *rest])
{afterwards}
while not os.path.exists(told):
    time.sleep(0.05)
open(out + ".nsys-rep", "w").write("whole report")
"""
LAUNCHER = """#!{python} -I
import subprocess, sys
subprocess.Popen({runs}).wait()
if {tells}:
    open(sys.argv[1], "w").close()
"""
STEPS = python(
    "import profrun, time",
    "for number in range(3): profrun.step()",
    "print('running', flush=True)",
    "time.sleep(300)",
)
WAIT_FOR_ALL = """
while not os.path.exists(told) or os.path.exists("/proc/" + open({helper!r}).read()):
    time.sleep(0.05)
"""


@pytest.fixture(autouse=True)
def proc() -> None:
    if not Path("/proc/self/stat").exists():
        missing("/proc")


UNSEEN = "[*sys.argv[2:-1], sys.argv[-1] + ' ']"
"""What the launcher runs where the wrapper shall not recognise the program, as if it had ended unseen."""


def two_part_nsys(
    folder: Path, *, tells: bool = True, afterwards: str = "", runs: str = "sys.argv[2:]"
) -> dict[str, str]:
    """Environment in which the wrapper finds the stand-in.

    Args:
        tells: whether the launcher says that the program has ended.
        afterwards: Python that the profiler runs once it has started the launcher.
        runs: Python for the command that the launcher runs.
    """
    for name, text in (("nsys", NSYS), ("nsys-launcher", LAUNCHER)):
        path = folder / name
        path.write_text(text.format(python=sys.executable, tells=tells, afterwards=afterwards, runs=runs))
        path.chmod(0o755)
    return {"PROFRUN_NSYS": str(folder / "nsys")}


def part(process: subprocess.Popen[str], name: str) -> int:
    """The process of the trial that was started from a file of this name."""
    return next(
        one.pid
        for one in proctree.descendants(process.pid)
        if any(Path(word).name == name for word in one.argv[:3])
    )


def ended(done: Done) -> tuple[str, str | None, str | None, str]:
    found = done.exit
    return found["state"], found["code"], found["signal"], found["reason"]


@pytest.mark.parametrize("name", ["nsys-launcher", "nsys"])
def test_a_part_that_is_killed_ends_the_trial_within_the_grace(tmp_path: Path, name: str) -> None:
    env = two_part_nsys(tmp_path)
    trial = Trial(tmp_path, STEPS, collector="nsys", grace_s=0.5, timeout_s=600.0)
    process = trial.start(env)
    trial.wait_for("running\n")
    os.kill(part(process, name), signal.SIGKILL)
    state, code, number, reason = ended(trial.finish(process))
    assert (state, code, number) == ("failed", PROFILER_DIED, None)
    assert reason.startswith("the profiler nsys did not end well: its process ")
    assert "was gone while the program ran" in reason
    assert "the times of 3 steps were kept; nothing was recorded (raw/rank0/*.nsys-rep" in reason
    assert "memory" not in reason


def test_a_profiler_that_has_written_its_recording_may_end_first(tmp_path: Path) -> None:
    """As nsys does when its `duration` is over."""
    early = "open(out + '.nsys-rep', 'w').write('whole report')\nsys.exit(0)"
    env = two_part_nsys(tmp_path, afterwards=early)
    go = tmp_path / "go"
    program = python(
        "import os, time",
        "print('running', flush=True)",
        f"while not os.path.exists({str(go)!r}): time.sleep(0.01)",
        "time.sleep(0.3)",  # some looks of the wrapper
        "print('to its end', flush=True)",
    )
    shell = (
        tmp_path / "bin" / "nsys"
    )  # the profiler is not what was started, as behind the script of a package
    shell.parent.mkdir()
    shell.write_text(f'#!/bin/sh\n{tmp_path / "nsys"} "$@" | cat\n')
    shell.chmod(0o755)
    trial = Trial(tmp_path, program, collector="nsys", grace_s=1.0)
    process = trial.start(env | {"PROFRUN_NSYS": str(shell)})
    trial.wait_for("running\n")
    go.touch()
    done = trial.finish(process)
    assert done.log() == "running\nto its end\n"
    assert done.exit["code"] != PROFILER_DIED, done.exit["reason"]


@pytest.mark.thorough
def test_a_profiler_that_waits_in_vain_is_killed_after_the_grace(tmp_path: Path) -> None:
    env = two_part_nsys(tmp_path, tells=False)
    began = time.monotonic()
    seen = python("import time", "time.sleep(1)")
    done = Trial(tmp_path, seen, collector="nsys", grace_s=1.0, timeout_s=600.0).run(env)
    state, code, number, reason = ended(done)
    assert (state, code, number) == ("failed", PROFILER_DIED, None)
    assert "it was killed: it did nothing for 5 s after the program had ended" in reason
    assert time.monotonic() - began < 60


@pytest.mark.thorough
@pytest.mark.parametrize("runs", ["sys.argv[2:]", UNSEEN])
def test_what_the_program_left_is_ended_before_the_profiler(tmp_path: Path, runs: str) -> None:
    """nsys waits for all processes that the program has started. A short program may end unseen."""
    helper = tmp_path / "helper"
    env = two_part_nsys(tmp_path, afterwards=WAIT_FOR_ALL.format(helper=str(helper)), runs=runs)
    leaves = python(
        "import subprocess, sys",
        "argv = [sys.executable, '-c', 'import time; time.sleep(298)']",
        "child = subprocess.Popen(argv, start_new_session=True, stdout=-3, stderr=-3)",
        f"open({str(helper)!r}, 'w').write(str(child.pid))",
    )
    done = Trial(tmp_path, leaves, collector="nsys", grace_s=1.0, timeout_s=600.0).run(env)
    reports = [row["path"] for row in done.exit["artefacts"] if row["state"] == "whole"]
    assert "raw/rank0/report.nsys-rep" in reports
    assert any("time.sleep(298)" in text and "left running" in text for text in done.warnings)


@pytest.mark.thorough
def test_a_program_that_is_not_recognised_may_wait_longer_than_the_grace(tmp_path: Path) -> None:
    env = two_part_nsys(tmp_path, runs=UNSEEN)
    waits = python("import time", "time.sleep(9)", "print('to its end', flush=True)")
    done = Trial(tmp_path, waits, collector="nsys", grace_s=1.0, timeout_s=600.0).run(env)
    assert done.log() == "to its end\n"
    assert not any("killed" in text for text in done.warnings)


@pytest.fixture
def sleeper() -> Iterator[proctree.Process]:
    """A process that does nothing."""
    process = subprocess.Popen([sys.executable, "-c", "print(flush=True); input()"], stdin=-1, stdout=-1)
    assert process.stdout is not None
    process.stdout.readline()
    yield next(one for one in proctree.descendants(os.getpid()) if one.pid == process.pid)
    process.communicate(b"\n")


def test_doing_nothing_for_the_grace_is_hanging_and_work_is_not(
    sleeper: proctree.Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = ToolLife("/opt/nsys", os.getpid(), 30.0)
    work = proctree.Work()
    monkeypatch.setattr(proctree, "work", lambda processes: work)
    assert not life.hangs([sleeper], 100.0)
    assert not life.hangs([sleeper], 129.0)
    work = proctree.Work(cpu_s=3.0)  # of 29 s
    assert not life.hangs([sleeper], 129.5)
    assert not life.hangs([sleeper], 159.0)
    work = proctree.Work(cpu_s=3.0, io_bytes=1 << 20)
    assert not life.hangs([sleeper], 160.0)
    work = proctree.Work(cpu_s=3.0, io_bytes=1 << 20, waits_for_disk=True)
    assert not life.hangs([sleeper], 195.0)
    work = proctree.Work(cpu_s=3.4, io_bytes=1 << 20)  # 0.4 s of 30: it only looks now and then
    assert not life.hangs([sleeper], 224.9)
    assert life.hangs([sleeper], 225.4)


def test_the_first_look_tells_nothing() -> None:
    """All may be gone already, and only not be waited for yet."""
    life = ToolLife("/opt/nsys", os.getpid(), 5.0)
    assert not life.hangs([], 1e6)
    assert not life.hangs([], 1e6 + 4.0)


def test_another_process_is_a_sign_of_work(sleeper: proctree.Process) -> None:
    life = ToolLife("/opt/nsys", os.getpid(), 0.0)
    own = next(one for one in proctree.everyone() if one.pid == os.getpid())
    assert not life.hangs([sleeper], 100.0)
    assert not life.hangs([sleeper, own], 104.9)
    assert not life.hangs([sleeper], 109.0)


def test_only_what_bears_its_name_is_surely_the_profilers(sleeper: proctree.Process) -> None:
    assert ToolLife("/opt/nsys", os.getpid(), 5.0).alone([])
    assert not ToolLife("/opt/nsys", os.getpid(), 5.0).alone([sleeper])
    assert ToolLife("/opt/python", os.getpid(), 5.0).alone([sleeper])
