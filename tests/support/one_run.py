"""A recorded run without its steps: ``as_one_run`` makes of it what a program without steps leaves."""

from __future__ import annotations

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from profrun.contract.steps import RUN_RANGE

START_NS = 1_500_000_000
"""How long torch.profiler is made to have taken to start, ns."""


def as_one_run(run: Path) -> None:
    """Make the recorded steps of every trial one run; its time is that of the steps together.

    Args:
        run: folder of a run whose trials have no traces yet.
    """
    for trial in (run / "trials").iterdir():
        for path in trial.glob("raw/rank*/steps*.json"):
            _steps(path)
        for path in trial.glob("raw/rank*/*.pt.trace.json.gz"):
            _ranges(path)
        for path in trial.glob("raw/rank*/*.sqlite"):
            _nvtx(path)


def _steps(path: Path) -> None:
    document = json.loads(path.read_text())
    active = [step for step in document["steps"] if step["window"] == "active"]
    whole = sum(step["dur_ns"] for step in active)
    one = active[0] | {"step": 0, "dur_ns": whole, "host_ns": whole}
    start = START_NS if document["collector"] == "torch" else 0  # the others start outside of the program
    path.write_text(json.dumps(document | {"how": "run", "profiler_start_ns": start, "steps": [one]}))


def _ranges(path: Path) -> None:
    """One range over all steps of the host, and none on the GPU."""
    with gzip.open(path) as file:
        document = json.load(file)
    kept: list[dict[str, Any]] = []
    steps: list[dict[str, Any]] = []
    for event in document["traceEvents"]:
        (steps if str(event.get("name")).startswith("ProfilerStep#") else kept).append(event)
    host = [event for event in steps if event["cat"] == "user_annotation"]
    begin = min(event["ts"] for event in host)
    end = max(event["ts"] + event["dur"] for event in host)
    document["traceEvents"] = [*kept, host[0] | {"name": RUN_RANGE, "ts": begin, "dur": end - begin}]
    with gzip.open(path, "wt") as file:
        json.dump(document, file)


def _nvtx(path: Path) -> None:
    """The same for a report of nsys."""
    steps = "FROM NVTX_EVENTS WHERE text LIKE 'profrun.step#%'"
    with closing(sqlite3.connect(path)) as report, report:
        first, begin, end = report.execute(f"SELECT min(rowid), min(start), max(end) {steps}").fetchone()
        report.execute(f"DELETE {steps} AND rowid > ?", (first,))
        report.execute(
            "UPDATE NVTX_EVENTS SET text = ?, start = ?, end = ? WHERE rowid = ?",
            (RUN_RANGE, begin, end, first),
        )
