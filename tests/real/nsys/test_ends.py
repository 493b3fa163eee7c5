"""Each part of a real nsys may be killed while it works: the trial ends soon, and says what was saved."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from profrun.in_job import proctree
from profrun.in_job.outcome import PROFILER_DIED
from tests.in_job.kit import Trial, python
from tests.real.nsys.kit import nsys

pytestmark = pytest.mark.nsys

STEPS = python(
    "import profrun, time",
    "for number in range(3): profrun.step()",
    "print('running', flush=True)",
    "time.sleep(300)",
)
AFTER_IT = 60.0
"""Seconds that the import of what is left, and a busy machine, may take beside the grace."""


@pytest.mark.parametrize("part", ["nsys-launcher", "--start-agent", "profile"])
def test_a_part_that_is_killed_ends_the_trial(tmp_path: Path, part: str) -> None:
    trial = Trial(tmp_path, STEPS, collector="nsys", grace_s=5.0, timeout_s=600.0)
    process = trial.start({"PROFRUN_NSYS": nsys()})
    trial.wait_for("running\n")
    parts = [
        one
        for one in proctree.descendants(process.pid)
        if "nsys" in Path(one.program).name and any(word.endswith(part) for word in one.argv[:2])
    ]
    began = time.monotonic()
    os.kill(parts[-1].pid, signal.SIGKILL)
    done = trial.finish(process)
    assert time.monotonic() - began < 5.0 + AFTER_IT
    found = done.exit
    assert (found["state"], found["code"], found["signal"]) == ("failed", PROFILER_DIED, None)
    assert "was gone while the program ran" in found["reason"]
    assert "the times of 3 steps were kept" in found["reason"]
    whole = [
        row for row in found["artefacts"] if row["state"] == "whole" and row["path"].endswith("nsys-rep")
    ]
    assert ("the recording was kept" in found["reason"]) == bool(whole)
