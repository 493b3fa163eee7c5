"""Whose run is the run of a rank."""

from __future__ import annotations

import json
from pathlib import Path

from profrun.contract.command import Command
from profrun.contract.paths import TrialPaths
from profrun.contract.provenance import Process
from profrun.contract.recording import Rank
from profrun.contract.steps import Anchor, StepsFile, StepTime
from profrun.in_job.command_end import Outcome
from profrun.in_job.process_note import ProcessNote
from profrun.in_job.ranks import Ranks
from profrun.in_job.run_time import write_run

COMMAND = Command(trial="t", run="r", job="j", variant="v", collector="none", argv=("a",), cwd="")
ENDED = Outcome(status=0, pid=99, began_ns=1_000, run_s=2.5)


def note(pid: int, cpu_ns: int, *, rank: int = 0, used_gpu: bool = False, run: bool = True) -> ProcessNote:
    steps = StepsFile(rank, pid, "run", "wall", Anchor(0, 0, 0), steps=(StepTime(0, 0, 7, 7, "active"),))
    process = Process(pid=pid, rank=rank, used_gpu=used_gpu)
    return ProcessNote(process, "3.11", run=steps if run else None, cpu_ns=cpu_ns)


def pids(folder: Path, *notes: ProcessNote) -> dict[str, int]:
    """Rank -> pid of the process whose run is its run."""
    folder.mkdir(exist_ok=True)
    write_run(COMMAND, "none", Ranks(TrialPaths(folder), Rank()), notes, ENDED)
    found = sorted(folder.glob("raw/rank*/steps.json"))
    return {path.parent.name: json.loads(path.read_text())["pid"] for path in found}


def test_the_process_that_did_the_work_is_chosen_per_rank(tmp_path: Path) -> None:
    busiest = pids(tmp_path / "cpu", note(1, 5), note(2, 9), note(3, 99, run=False))
    assert busiest == {"rank0": 2}
    gpu = pids(tmp_path / "gpu", note(1, 5, used_gpu=True), note(2, 9), note(3, 4, rank=1))
    assert gpu == {"rank0": 1, "rank1": 3}


def test_without_a_framework_it_is_timed_from_outside(tmp_path: Path) -> None:
    assert pids(tmp_path, note(3, 99, run=False)) == {"rank0": 99}
    written = json.loads((tmp_path / "raw/rank0/steps.json").read_text())
    (run,) = written["steps"]
    assert (written["how"], run["ts_ns"], run["dur_ns"], run["window"]) == (
        "run",
        1_000,
        2_500_000_000,
        "active",
    )


def test_steps_that_were_seen_stay(tmp_path: Path) -> None:
    (tmp_path / "raw/rank0").mkdir(parents=True)
    (tmp_path / "raw/rank0/steps.json").write_text('{"pid": 5}')
    assert pids(tmp_path, note(1, 5)) == {"rank0": 5}
