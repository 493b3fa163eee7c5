"""The wrapper and hook under a real nsys, without a GPU: what is emitted is in the report."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from pathlib import Path

import pytest

from tests.collectors.nsys.exports import issues, trace_of
from tests.conftest import missing
from tests.in_job.kit import Done, Trial

pytestmark = pytest.mark.nsys

PROGRAM = """
import os, sys, time, torch, profrun
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(int(sys.argv[1])):
    with profrun.range("forward"):
        out = net(torch.randn(4, 8))
    with profrun.range("backward"):
        out.sum().backward()
    opt.step(); opt.zero_grad()
    if step == 5:
        print("five", flush=True)
    time.sleep(float(sys.argv[2]))
"""


def nsys() -> dict[str, str]:
    named = os.environ.get("PROFRUN_NSYS") or shutil.which("nsys")
    if not named:
        missing("nsys")
    return {"PROFRUN_NSYS": named, "OMP_NUM_THREADS": "1"}


def ranges(done: Done) -> list[tuple[int, int, str]]:
    """(start, end, text) of push/pop ranges (eventType 59)."""
    (path,) = (done.folder / "raw/rank0").glob("*.sqlite")
    connection = sqlite3.connect(path)
    try:
        return connection.execute(
            'SELECT start, "end", coalesce(text, (SELECT value FROM StringIds WHERE id = textId)) '
            'FROM NVTX_EVENTS WHERE eventType = 59 ORDER BY start, -"end"'
        ).fetchall()
    finally:
        connection.close()


def check_nesting(found: list[tuple[int, int, str]]) -> None:
    open_until: list[int] = []
    for start, end, text in found:
        while open_until and open_until[-1] <= start:
            open_until.pop()
        assert not open_until or end <= open_until[-1], text
        open_until.append(end)


def test_every_emitted_range_is_recorded_and_nests(tmp_path: Path) -> None:
    trial = Trial(
        tmp_path, [sys.executable, "job.py", "5", "0"], PROGRAM, collector="nsys", ranges={"modules": 1}
    )
    done = trial.run(nsys())
    assert done.exit["state"] == "finished", done.exit["reason"]
    assert done.steps()["emitter"] == "nvtx-injection"
    found = ranges(done)
    assert len(found) == done.exit["ranges_emitted"]
    check_nesting(found)
    texts = [text for _, _, text in found]
    assert [texts.count(f"profrun.step#{step}") for step in range(5)] == [1] * 5
    assert texts.count("nn.Module: root (Sequential)") == texts.count("nn.Module: 0 (Linear) backward") == 5
    steps = {text: (start, end) for start, end, text in found if text.startswith("profrun.step#")}
    backwards = [(start, end) for start, end, text in found if text == "backward"]
    inside = [any(low <= start and end <= high for low, high in steps.values()) for start, end in backwards]
    assert inside == [True] * 5


def stopped_after(folder: Path, limit_s: float) -> Done:
    """The program without an end, stopped by this time limit."""
    command = [sys.executable, "job.py", "1000000", "0.05"]
    return Trial(folder, command, PROGRAM, collector="nsys", timeout_s=limit_s, grace_s=40.0).run(nsys())


def test_ended_by_its_time_limit_the_report_is_whole(tmp_path: Path) -> None:
    done = stopped_after(tmp_path, 10.0)
    for limit_s in (40.0, 160.0):  # torch imports for more than 20 s on a busy machine
        if "five" not in done.log():
            done = stopped_after(tmp_path, limit_s)
    assert "five" in done.log()
    assert (done.exit["state"], done.exit["signal"]) == ("timeout", "SIGTERM")
    assert {row["state"] for row in done.exit["artefacts"]} == {"whole"}
    found = ranges(done)
    # The signal may come after a range is emitted and before it is counted.
    assert len(found) - done.exit["ranges_emitted"] in (0, 1)
    assert done.exit["ranges_emitted"] > 10
    check_nesting(found)


def test_a_killed_program_has_no_step_that_lasts_until_nsys_ended(tmp_path: Path) -> None:
    """nsys gives the end of its session to what was open: at least two seconds later here.

    It may have lost all but the first steps.
    """
    killed = PROGRAM + "    if step == 20:\n        time.sleep(2)\n        os.kill(os.getpid(), 9)\n"
    done = Trial(tmp_path, [sys.executable, "job.py", "99", "0.01"], killed, collector="nsys").run(nsys())
    assert done.exit["signal"] == "SIGKILL"
    last = max(end for _, end, _ in ranges(done))
    unended = {text for _, end, text in ranges(done) if end == last}
    assert any(text.startswith("profrun.step#") for text in unended)
    (path,) = (done.folder / "raw/rank0").glob("*.sqlite")
    trace = trace_of(tmp_path, path)
    steps = trace.sql("SELECT name, dur_ns FROM steps").rows
    assert len(steps) <= 20
    assert not unended & {name for name, _ in steps}
    assert all(dur_ns < 2e9 for _, dur_ns in steps)
    assert issues(trace)["range-unfinished"] == len(unended)
