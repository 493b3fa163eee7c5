"""Several wrappers that share a trial folder, as srun starts them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.conftest import first
from tests.in_job.kit import Done, Trial, python

PROGRAM = python(
    "import os, sys, time, profrun",
    "rank = int(os.environ['RANK'])",
    "print('rank', rank, 'of', os.environ['WORLD_SIZE'], os.environ['MASTER_ADDR'])",
    "for _ in range(4): profrun.step()",
    "time.sleep(0.3 * rank)",
    "sys.exit(rank * int(os.environ['FAIL']))",
)


def run(trial: Trial, fail: int) -> list[int]:
    slurm = {"SLURM_NTASKS": "2", "SLURM_JOB_ID": "5", "SLURM_JOB_NODELIST": "n[1-2]", "FAIL": str(fail)}
    processes = [
        trial.start(slurm | {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)}) for rank in (0, 1)
    ]
    return [trial.finish(process).code for process in processes]


def test_one_exit_json_for_all_ranks_written_when_the_last_has_ended(tmp_path: Path) -> None:
    trial = Trial(tmp_path, PROGRAM, ranks=2)
    codes = run(trial, 0)
    done = Done(trial.folder, codes[0], "", "")
    assert codes == [0, 0]
    assert done.exit["state"] == "finished"
    assert {row["path"] for row in done.exit["artefacts"]} == {"raw/rank0/steps.json", "raw/rank1/steps.json"}
    assert done.steps(1)["world_size"] == 2
    assert done.log() == "rank 0 of 2 n1\n"
    assert done.log("stdout.rank1") == "rank 1 of 2 n1\n"
    notes = {path.name.split(".")[1] for path in (trial.folder / "hook").glob("process.*.json")}
    assert notes == {"rank0", "rank1"}  # two containers may have the same host name and the same pids


def test_a_failed_rank_fails_the_trial_and_is_named(tmp_path: Path) -> None:
    trial = Trial(tmp_path, PROGRAM, ranks=2)
    assert run(trial, 9) == [0, 9]
    value = Done(trial.folder, 0, "", "").exit
    assert (value["state"], value["exit_code"]) == ("failed", 9)
    assert value["reason"].startswith("rank 1: the program exited with 9")


LATE = python(
    "import os, pathlib, time",
    "rank = os.environ['RANK']",
    "end = time.monotonic() + float(os.environ['LATE']) * (rank in os.environ['WHO'])",
    "while time.monotonic() < end: time.sleep(0.05)",
)
HANGS = python(
    "import os, sys, time",
    "if os.environ['RANK'] == os.environ['WHO']: sys.exit(9)",
    "print('waits', flush=True)",
    "time.sleep(600)",
)


def start(trial: Trial, **more: str) -> list[subprocess.Popen[str]]:
    """Both ranks."""
    env = {"SLURM_NTASKS": "2", "SLURM_JOB_ID": "5", "SLURM_JOB_NODELIST": "n[1-2]", **more}
    return [
        trial.start(env | {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)}, start_new_session=True)
        for rank in (0, 1)
    ]


def wait_for(what: Path, seconds: float = 120.0) -> None:
    """Until it is there."""
    deadline = time.monotonic() + seconds
    while not what.exists():
        assert time.monotonic() < deadline, f"{what} never appeared"
        time.sleep(0.02)


def kill(process: subprocess.Popen[str]) -> None:
    """A wrapper and all below it, as when its node is gone."""
    children = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True, check=False
    ).stdout.split()
    for pid in [process.pid, *map(int, children)]:
        os.kill(pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.thorough
@pytest.mark.parametrize("who", ["1", "0"])
def test_a_rank_that_is_later_than_the_grace_and_the_patience_is_waited_for(tmp_path: Path, who: str) -> None:
    trial = Trial(tmp_path, LATE, ranks=2, grace_s=0.5, patience_s=3.0)
    processes = start(trial, LATE="8", WHO=who)
    if who == "1":
        wait_for(trial.folder / "hook/exit.rank0.json")
    assert [trial.finish(process).code for process in processes] == [0, 0]
    value = Done(trial.folder, 0, "", "").exit
    assert (value["state"], value["reason"], value["silent"], value["wrappers"]) == ("finished", None, [], 2)
    assert not (trial.folder / "phase").exists()


def test_the_phase_says_which_rank_is_waited_for(tmp_path: Path) -> None:
    trial = Trial(tmp_path, LATE, ranks=2, grace_s=0.5)
    processes = start(trial, LATE="600", WHO="1")
    wait_for(trial.folder / "hook/exit.rank0.json")
    deadline = time.monotonic() + 60
    while json.loads((trial.folder / "phase").read_text()).get("waiting") != "rank 1":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    for process in processes:
        kill(process)


@pytest.mark.thorough
def test_a_rank_that_was_killed_is_told_from_a_late_one(tmp_path: Path) -> None:
    trial = Trial(tmp_path, LATE, ranks=2, grace_s=0.5, patience_s=2.0)
    processes = start(trial, LATE="600", WHO="1")
    wait_for(trial.folder / "stdout.rank1.log")
    kill(processes[1])
    done = trial.finish(processes[0])
    assert done.code == 0
    assert (done.exit["state"], done.exit["code"], done.exit["silent"]) == ("failed", "rank-silent", [1])
    assert done.exit["reason"] == ("rank 1 never said how it ended: it was killed, or its node is gone")
    own = json.loads((trial.folder / "hook/exit.rank0.json").read_text())
    assert own["state"] == "finished"


@pytest.mark.parametrize("who", first(1, ["1", "0"]))
def test_a_rank_that_waits_for_a_failed_one_is_ended(tmp_path: Path, who: str) -> None:
    trial = Trial(tmp_path, HANGS, ranks=2, grace_s=5, patience_s=2.0)
    codes = [trial.finish(process).code for process in start(trial, WHO=who)]
    assert codes == ([9, 130] if who == "0" else [130, 9])
    value = Done(trial.folder, 0, "", "").exit
    assert (value["state"], value["exit_code"]) == ("failed", 9)
    assert "the program exited with 9" in value["reason"]


@pytest.mark.thorough
def test_a_rank_that_waits_for_a_killed_one_is_ended(tmp_path: Path) -> None:
    trial = Trial(tmp_path, LATE, ranks=2, grace_s=5, patience_s=2.0)
    processes = start(trial, LATE="600", WHO="01")
    for name in ("stdout.rank1.log", "stdout.log"):
        wait_for(trial.folder / name)
    kill(processes[1])
    done = trial.finish(processes[0])
    assert (done.exit["state"], done.exit["code"], done.code) == ("failed", "rank-silent", 130)


@pytest.mark.thorough
def test_a_rank_that_waits_for_rank_0_in_vain_is_ended(tmp_path: Path) -> None:
    trial = Trial(tmp_path, LATE, ranks=2, grace_s=5, patience_s=2.0)
    processes = start(trial, LATE="600", WHO="01")
    for name in ("stdout.rank1.log", "stdout.log"):
        wait_for(trial.folder / name)
    kill(processes[0])
    assert trial.finish(processes[1]).code == 130
    said = json.loads((trial.folder / "hook/exit.rank1.json").read_text())
    assert (said["state"], said["code"], said["stopped_by"]) == ("cancelled", "ended-with-rank", "rank")
    assert not (trial.folder / "exit.json").exists()  # the engine knows how rank 0 ended


@pytest.mark.thorough
@pytest.mark.parametrize(("cancel", "state"), [(True, "cancelled"), (False, "timeout")])
def test_a_signal_ends_the_wait_within_the_grace(tmp_path: Path, cancel: bool, state: str) -> None:
    trial = Trial(tmp_path, LATE, ranks=2, grace_s=0.5)
    processes = start(trial, LATE="600", WHO="1")
    wait_for(trial.folder / "hook/exit.rank0.json")
    processes[1].send_signal(signal.SIGSTOP)  # it lives, and says nothing
    if cancel:
        (trial.folder / "cancel").write_text("{}")
    began = time.monotonic()
    processes[0].send_signal(signal.SIGTERM)
    done = trial.finish(processes[0])
    assert time.monotonic() - began < 60
    assert (done.exit["state"], done.exit["stopped_by"], done.exit["silent"]) == (state, "SIGTERM", [1])
    kill(processes[1])


def test_a_cancel_while_rank_0_waits_takes_what_the_others_say(tmp_path: Path) -> None:
    trial = Trial(tmp_path, LATE, ranks=2, grace_s=5)
    processes = start(trial, LATE="600", WHO="1")
    wait_for(trial.folder / "hook/exit.rank0.json")
    wait_for(trial.folder / "stdout.rank1.log")
    (trial.folder / "cancel").write_text("{}")
    for process in reversed(processes):
        process.send_signal(signal.SIGURG)
    assert [trial.finish(process).code for process in processes] == [0, 130]
    value = Done(trial.folder, 0, "", "").exit
    assert (value["state"], value["silent"]) == ("cancelled", [])
