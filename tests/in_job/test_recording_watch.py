"""When the recording of a profiler round the program is ended, and what is said of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from profrun.contract.finding import Finding
from profrun.contract.schedule import Schedule
from profrun.contract.wrapping import ATTEMPTS, Limits
from profrun.in_job import proctree, recording_watch
from profrun.in_job.recording_watch import RecordingWatch, size_of

THIS = [proctree.Process(os.getpid(), 0, 0, 0)]


def watch(
    folder: Path, *stop: str, seconds: float | None = None, size: int = 1 << 40, gpu: bool = False
) -> RecordingWatch:
    schedule = Schedule(max_seconds=seconds or 0.0, max_size=size)
    return RecordingWatch(Limits(stop, seconds, size), folder, os.environ, schedule.cut, gpu=gpu)


def end(watched: RecordingWatch, *, running: bool = True) -> Finding | None:
    """What is said when the command that ends the recording is over."""
    stop = watched._stop
    assert stop is not None
    _, status = os.waitpid(stop.pid, 0)
    watched.reaped({stop.pid: status}, running=running)
    return watched.finding


def look_until_busy(watched: RecordingWatch, program: Sequence[proctree.Process]) -> None:
    deadline = time.monotonic() + 60
    while not watched.busy:
        assert time.monotonic() < deadline
        watched.look(lambda: program)
        time.sleep(0.01)


def test_the_seconds_count_from_the_start_of_the_program_where_there_is_no_gpu(tmp_path: Path) -> None:
    watched = watch(tmp_path, "touch", "stopped", seconds=0.2)
    watched.look(list)  # the profiler has not started it yet
    time.sleep(0.3)
    watched.look(list)
    assert not watched.busy
    look_until_busy(watched, THIS)
    found = end(watched)
    assert (tmp_path / "stopped").exists()
    assert found is not None
    assert (found.code, found.severity) == ("recording-cut", "info")
    assert re.fullmatch(r"the first 2\d\d(\.\d)? ms of the run were recorded", found.what)
    assert found.why == "schedule.max_seconds is 0.2 s"
    watched.look(lambda: THIS)
    assert not watched.busy  # it is ended once


def test_where_there_is_a_gpu_they_count_from_its_first_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver's file is opened by a process of its own, as by a program in any language."""
    driver = tmp_path / "driver"
    driver.touch()
    monkeypatch.setattr(recording_watch, "_DRIVERS", (str(driver),))
    code = f"import sys; sys.stdin.readline(); file = open({str(driver)!r}); sys.stdin.readline()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, text=True) as program:
        processes = [proctree.Process(program.pid, 0, 0, 0)]
        watched = watch(tmp_path, "touch", "stopped", seconds=0.0, gpu=True)
        for _ in range(3):
            time.sleep(recording_watch.LOOK_S)
            watched.look(lambda: processes)
        assert not watched.busy
        assert program.stdin is not None
        program.stdin.write("\n")
        program.stdin.flush()
        look_until_busy(watched, processes)
        program.stdin.write("\n")
    found = end(watched)
    assert found is not None
    assert found.code == "recording-cut"


def test_the_size_is_that_of_all_files_of_the_recording(tmp_path: Path) -> None:
    (tmp_path / "nvidia").mkdir()
    (tmp_path / "nvidia/stream").write_bytes(bytes(600))
    assert size_of(tmp_path) == 600
    watched = watch(tmp_path, "true", size=1000)
    watched.look(lambda: THIS)
    assert not watched.busy
    (tmp_path / "report").write_bytes(bytes(400))
    look_until_busy(watched, THIS)
    found = end(watched)
    assert found is not None
    assert (found.code, found.why) == (
        "recording-cut",
        "schedule.max_size is 1000 B",
    )


def test_a_recording_that_cannot_be_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording_watch, "AGAIN_S", 0.0)
    watched = watch(tmp_path, "false", seconds=0.0)
    for _ in range(ATTEMPTS):
        assert watched.finding is None
        look_until_busy(watched, THIS)
        end(watched)
    found = watched.finding
    assert found is not None
    assert (found.code, found.severity, found.why) == ("recording-not-cut", "warning", "false: exit code 1")


def test_of_a_program_that_ends_at_the_same_moment_nothing_is_lost(tmp_path: Path) -> None:
    watched = watch(tmp_path, "false", seconds=0.0)
    look_until_busy(watched, THIS)
    assert end(watched, running=False) is None


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    watched = watch(tmp_path, "no-such-profiler", "stop", seconds=0.0)
    watched.look(lambda: THIS)
    assert not watched.busy
    assert watched.finding is not None
    assert watched.finding.why == "no-such-profiler stop: No such file or directory"
