"""``run.py --wrap`` as launchers start it: two ranks with the variables of each, one trial, its ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from profrun.contract.recording import Rank
from profrun.in_job.launchers import NODES, PROCESSES
from profrun.in_job.wrap import ask
from profrun.in_job.wrap_args import WrapError, read_args
from profrun.plans.bundle import write_bundle
from tests.conftest import first
from tests.in_job.kit import Done, python

STEPS = python("import os, profrun", "for _ in range(6): profrun.step()", "print('hello')")
NAMES = [name for one in (*PROCESSES, *NODES) for name in (one.rank, one.world, one.local_rank, *one.launch)]
ENVIRONMENTS: dict[str, tuple[dict[str, str], str]] = {
    "torchrun": ({"WORLD_SIZE": "2"}, "RANK"),
    "openmpi": ({"OMPI_COMM_WORLD_SIZE": "2", "PMIX_NAMESPACE": "7"}, "OMPI_COMM_WORLD_RANK"),
    "mpich": ({"PMI_SIZE": "2"}, "PMI_RANK"),
    "slurm": ({"SLURM_NTASKS": "2", "SLURM_JOB_ID": "5", "SLURM_STEP_ID": "0"}, "SLURM_PROCID"),
    "kubeflow": ({"PET_NNODES": "2", "PET_NPROC_PER_NODE": "auto"}, "PET_NODE_RANK"),
    "aws": ({"AWS_BATCH_JOB_NUM_NODES": "2", "AWS_BATCH_JOB_ID": "a"}, "AWS_BATCH_JOB_NODE_INDEX"),
    "skypilot": ({"SKYPILOT_NUM_NODES": "2", "SKYPILOT_TASK_ID": "t"}, "SKYPILOT_NODE_RANK"),
    "dstack": ({"DSTACK_NODES_NUM": "2", "DSTACK_RUN_ID": "r"}, "DSTACK_NODE_RANK"),
}
"""Launcher -> the variables that all ranks have, and the one that holds the rank."""


class Wrap:
    """A bundle, and a folder that ranks share."""

    def __init__(self, root: Path) -> None:
        self.root, self.out = root, root / "out"
        write_bundle(root / "bundle")

    def start(self, env: Mapping[str, str], *options: str, argv: list[str] = STEPS) -> subprocess.Popen[str]:
        """Start one rank, with no launcher's variables but these."""
        clean = {name: value for name, value in os.environ.items() if name not in NAMES}
        words = ["--out", str(self.out), *options, "--", *argv]
        return subprocess.Popen(
            [sys.executable, str(self.root / "bundle/run.py"), "--wrap", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.root,
            env={**clean, **env},
        )

    def finish(self, process: subprocess.Popen[str], trial: str = "000-default-none-r1") -> Done:
        """Wait for it."""
        out, err = process.communicate(timeout=240)
        return Done(self.out / "trials" / trial, process.returncode, out, err)

    def ended(self, trial: str = "000-default-none-r1") -> dict[str, Any]:
        """exit.json of a trial."""
        found: dict[str, Any] = json.loads((self.out / "trials" / trial / "exit.json").read_text())
        return found


@pytest.mark.parametrize("launcher", first(2, ENVIRONMENTS))
def test_two_ranks_make_one_trial(launcher: str, tmp_path: Path) -> None:
    both, rank = ENVIRONMENTS[launcher]
    wrap = Wrap(tmp_path)
    processes = [wrap.start({**both, rank: str(number)}, "-c", "none") for number in (1, 0)]
    later, first = (wrap.finish(process) for process in processes)
    assert (first.code, later.code) == (0, 0), first.stderr + later.stderr
    assert first.stdout == later.stdout == "hello\n"
    assert "profrun: rank 0 of 2 of trial 000-default-none-r1" in first.stderr
    assert first.exit["state"] == "finished"
    assert [(number, first.steps(number)["world_size"]) for number in (0, 1)] == [(0, 2), (1, 2)]
    assert [path.name for path in (wrap.out / "launches").iterdir()] == ["000"]


def test_the_programs_end_is_the_wrappers(tmp_path: Path) -> None:
    wrap = Wrap(tmp_path)
    done = wrap.finish(wrap.start({}, "-c", "none", argv=python("import sys; sys.exit(7)")))
    assert (done.code, done.exit["state"], done.exit["exit_code"]) == (7, "failed", 7)
    assert "profrun: rank 0 of 1: failed: the program exited with 7" in done.stderr


def test_a_signal_ends_the_program_and_is_said(tmp_path: Path) -> None:
    wrap = Wrap(tmp_path)
    process = wrap.start(
        {}, "-c", "none", argv=python("import time; print('up', flush=True); time.sleep(600)")
    )
    log = wrap.out / "trials/000-default-none-r1/stdout.log"
    deadline = time.monotonic() + 240
    while not (log.exists() and "up" in log.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    done = wrap.finish(process)
    assert done.exit["stopped_by"] == "SIGTERM"
    assert (done.code, done.exit["state"]) == (124, "timeout")


def test_a_profiler_that_cannot_run_here_is_said_by_the_rank(tmp_path: Path) -> None:
    wrap = Wrap(tmp_path)
    env = {"PATH": str(tmp_path), "PROFRUN_NSYS": str(tmp_path / "none")}
    done = wrap.finish(wrap.start(env, "-c", "nsys"), "000-default-nsys-r1")
    assert done.code == 69
    assert "profrun: rank 0 of 1: failed: " in done.stderr
    assert done.stdout == "", "the program did not run"


def wait_for(path: Path, text: str = "") -> None:
    """Until a file is there and holds a text."""
    deadline = time.monotonic() + 240
    while not (path.exists() and text in path.read_text()):
        assert time.monotonic() < deadline, path
        time.sleep(0.02)


@pytest.mark.thorough
def test_a_second_launch_is_a_repeat_and_other_settings_are_refused(tmp_path: Path) -> None:
    wrap = Wrap(tmp_path)
    for _ in range(2):
        assert wrap.finish(wrap.start({}, "-c", "none")).code == 0
    assert wrap.ended("001-default-none-r2")["state"] == "finished"
    b = ("-c", "none", "--variant", "b")
    settings = ("--set", "resources.grace=9s")
    first = wrap.start({"WORLD_SIZE": "2", "RANK": "0"}, *b, *settings)
    wait_for(wrap.out / "launches/002/rank0")
    other = wrap.finish(wrap.start({"WORLD_SIZE": "2", "RANK": "1"}, *b))
    assert other.code == 64
    assert "rank 1 was started with other settings" in other.stderr
    assert "grace: 60.0 here, 9.0 there" in other.stderr
    assert wrap.finish(wrap.start({"WORLD_SIZE": "2", "RANK": "1"}, *b, *settings)).code == 0
    assert wrap.finish(first).code == 0
    assert wrap.ended("002-b-none-r1")["state"] == "finished"


def test_a_dry_run_prints_the_document_and_the_command_and_writes_nothing(tmp_path: Path) -> None:
    wrap = Wrap(tmp_path)
    env = {"RANK": "1", "WORLD_SIZE": "2", "PROFRUN_LAUNCH": "x"}
    done = wrap.finish(wrap.start(env, "--dry-run", "--variant", "lr=1"))
    shown = json.loads(done.stdout)
    assert (shown["rank"], shown["world_size"], shown["launcher"], shown["launch"]) == (1, 2, "torchrun", "x")
    assert shown["command"]["trial"] == "000-lr_1-torch-r1"
    assert shown["command"]["ranks"] == 2
    assert shown["wrapped"].endswith("print('hello')\"'") or "profrun.step()" in shown["wrapped"]
    assert (done.code, wrap.out.exists()) == (0, False)


def asked(environ: dict[str, str], *options: str) -> tuple[Rank, int]:
    """Which rank this is, and how many processes there are in total."""
    found = ask(read_args("p", ["--out", "x", *options, "--", "c"], environ, "/"), environ)
    return found.own, found.command.ranks


def test_an_indexed_job_needs_the_number_of_its_pods() -> None:
    with pytest.raises(WrapError, match="JOB_COMPLETION_INDEX is 1, and nothing says how many pods"):
        asked({"JOB_COMPLETION_INDEX": "1"})
    assert asked({"JOB_COMPLETION_INDEX": "1"}, "--world-size", "2") == (Rank(1, 0, 2), 2)
    assert asked({"JOB_COMPLETION_INDEX": "7"}, "--world-size", "1") == (Rank(0, 0, 1), 1)
    both = {"JOB_COMPLETION_INDEX": "1", "RANK": "3", "WORLD_SIZE": "4"}
    assert asked(both)[0] == Rank(3, 0, 4), "a launcher knows better"


def test_a_rank_that_is_given() -> None:
    assert asked({}, "--rank", "2", "--world-size", "4") == (Rank(2, 0, 4), 4)
    assert asked({"RANK": "2", "WORLD_SIZE": "4"}, "--rank", "2")[0] == Rank(2, 0, 4)
    with pytest.raises(WrapError, match="--rank 1 contradicts RANK=2"):
        asked({"RANK": "2", "WORLD_SIZE": "4"}, "--rank", "1")
    with pytest.raises(WrapError, match="--world-size 2 contradicts WORLD_SIZE=4"):
        asked({"RANK": "2", "WORLD_SIZE": "4"}, "--world-size", "2")
    with pytest.raises(WrapError, match="give --rank K"):
        asked({}, "--world-size", "2")
    with pytest.raises(WrapError, match="this is rank 3, and the launcher does not say how many there are"):
        asked({"PMIX_RANK": "3"})
    assert asked({"PMIX_RANK": "3"}, "--world-size", "4")[0] == Rank(3, 0, 4)


def test_how_many_processes_there_are_in_total() -> None:
    node = {"PET_NNODES": "2", "PET_NODE_RANK": "1"}
    assert asked({**node, "PET_NPROC_PER_NODE": "4"}) == (Rank(1, 0, 2), 8)
    assert asked({**node, "PET_NPROC_PER_NODE": "auto"}) == (Rank(1, 0, 2), 2)
    assert asked({**node, "PET_NPROC_PER_NODE": "auto"}, "--ranks", "16") == (Rank(1, 0, 2), 16)


def test_the_rank_that_was_given_reaches_the_hook(tmp_path: Path) -> None:
    wrap = Wrap(tmp_path)
    processes = [
        wrap.start({}, "-c", "none", "--rank", str(rank), "--world-size", "2", "--launch", "a")
        for rank in (0, 1)
    ]
    first, second = (wrap.finish(process) for process in processes)
    assert (first.code, second.code) == (0, 0), first.stderr + second.stderr
    assert [first.steps(rank)["rank"] for rank in (0, 1)] == [0, 1]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    wrap = Wrap(tmp_path)
    wrap.out.write_text("a file")
    done = wrap.finish(wrap.start({}, "-c", "none"))
    assert done.code == 73
    assert "the folder of the run cannot be written" in done.stderr
