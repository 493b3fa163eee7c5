"""A run without steps under a real nsys, without a GPU: recorded as a whole, and cut at a limit.

The program imports a module named like a GPU framework that is not torch, so nothing of torch is needed.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from profrun.collectors.normalize import normalize
from profrun.traces.trace import Trace
from tests.in_job.kit import Done, Trial
from tests.real.nsys.kit import nsys

pytestmark = pytest.mark.nsys

PROGRAM = """
import os, sys, time
import profrun
with profrun.range("before"):
    import cupy
count = 0
while not os.path.exists("end") if sys.argv[1] == "wait" else count < 100:
    with profrun.range("work"):
        time.sleep(0.001)
    count += 1
print(count)
sys.exit(int(sys.argv[2]))
"""


def trial(folder: Path, *argv: str, steps: str = "off", **schedule: Any) -> Trial:
    made = Trial(
        folder,
        ["python", "job.py", *argv],
        PROGRAM,
        collector="nsys",
        ranges={"modules": 0, "steps": steps},
        schedule=schedule,
    )
    (made.work / "cupy.py").touch()
    return made


def rows(done: Done, folder: Path, query: str) -> list[tuple[Any, ...]]:
    normalize(sorted((done.folder / "raw/rank0").glob("*.sqlite")), folder / "trace")
    with Trace(folder / "trace") as trace:
        return trace.sql(query).rows


def codes(done: Done) -> set[str]:
    return {warning["code"] for warning in done.exit["warnings"]}


def test_the_run_is_the_one_step_of_its_trace(tmp_path: Path) -> None:
    done = trial(tmp_path, "100", "0").run({"PROFRUN_NSYS": nsys()})
    assert done.exit["state"] == "finished", done.exit["reason"]
    assert "recording-cut" not in codes(done)
    found = rows(
        done,
        tmp_path,
        "SELECT s.name, count(r.slice), sum(r.dur_ns) BETWEEN 100000000 AND s.dur_ns FROM steps s "
        "JOIN slices r ON r.name = 'work' AND r.parent = s.slice GROUP BY s.name, s.dur_ns",
    )
    assert found == [("profrun.run", 100, True)]


def test_without_an_earlier_trial_the_program_runs_a_second_time(tmp_path: Path) -> None:
    done = trial(tmp_path, "100", "0", steps="auto").run({"PROFRUN_NSYS": nsys()})
    assert done.exit["state"] == "finished", done.exit["reason"]
    assert "second-run" in codes(done)
    assert done.log().split("\n").count("100") == 2
    assert [path.name for path in (done.folder / "raw/rank0").glob("*.nsys-rep")] == ["report.nsys-rep"]
    (step,) = rows(done, tmp_path, "SELECT step, name FROM steps")
    assert step == (0, "profrun.run")


def test_at_a_limit_the_recording_ends_and_the_program_goes_on(tmp_path: Path) -> None:
    made = trial(tmp_path, "wait", "3", max_seconds=2)
    process = made.start({"PROFRUN_NSYS": nsys()})
    deadline = time.monotonic() + 240
    while not list((made.folder / "raw/rank0").glob("report.*")):  # a report, or its stream
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.1)
    (made.work / "end").touch()
    done = made.finish(process)
    assert (done.code, done.exit["exit_code"]) == (3, 3)
    assert "recording-cut" in codes(done)
    (step,) = rows(done, tmp_path, "SELECT step, name, dur_ns / 1e9 FROM steps")
    assert step[:2] == (0, "profrun.run")
    assert 0 < step[2] < 60
    with Trace(tmp_path / "trace") as trace:
        ((recorded,),) = trace.sql("SELECT count(*) FROM slices WHERE name = 'work'").rows
    made_all = next(int(line) for line in done.log().splitlines() if line.isdigit())
    assert 0 < recorded < made_all


def test_a_recording_that_grows_too_large_is_ended(tmp_path: Path) -> None:
    made = trial(tmp_path, "100", "0", max_size=1)  # reached as soon as nsys has made its first file
    done = made.run({"PROFRUN_NSYS": nsys()})
    assert done.exit["exit_code"] == 0
    (cut,) = (text for text in done.warnings if "schedule.max_size" in text)
    assert "schedule.max_size is 1 B" in cut
