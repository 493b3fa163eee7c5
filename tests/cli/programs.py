"""Small programs as jobs, and what can be seen of their runs from outside."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from profrun.store.events import read_events
from profrun.store.runs import Run, all_runs

STEPS = """
import sys, time
import profrun
for _ in range(int(sys.argv[1])):
    time.sleep(0.005)
    profrun.step()
print("done", flush=True)
"""
"""A program that makes a number of steps."""


WAITS = """
import pathlib, sys, time
import profrun
for _ in range(8):
    profrun.step()
with open("ran", "a") as file:
    print(sys.argv[1], file=file)
while not pathlib.Path("go." + sys.argv[1]).exists():
    time.sleep(0.02)
"""
"""A program that leaves its argument in a file and waits until go.<argument> is there."""


def write_job(here: Path, source: str, argument: str = "8", **more: object) -> Path:
    (here / "work.py").write_text(source)
    spec = {"name": "t", "command": f"python work.py {argument}", "collectors": ["none"], **more}
    (here / "job.yaml").write_text(json.dumps(spec))  # JSON is YAML
    return here / "job.yaml"


def last_run(here: Path) -> Run:
    return all_runs(here / "runs")[-1]


def wait_until(condition: Callable[[], object], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.02)


def has_event(here: Path, event: str, times: int = 1) -> bool:
    runs = all_runs(here / "runs") if (here / "runs").exists() else []
    found = read_events(runs[-1].events).items if runs else []
    return len([item for item in found if item["event"] == event]) >= times
