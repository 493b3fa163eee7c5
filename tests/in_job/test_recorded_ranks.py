"""Only some ranks of a trial are recorded, the others run with the hook alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profrun.contract.command import Command
from profrun.contract.recording import Rank
from profrun.in_job.config import HookConfig
from profrun.in_job.recorded_ranks import OnlyRecorded, is_expected, of_process, told, wraps
from tests.conftest import first
from tests.in_job.kit import Done, Trial, fake_nsys, python

STEPS = python("import profrun", "for _ in range(6): profrun.step()")


def command(ranks: int, *recorded: int, collector: str = "timeline") -> Command:
    return Command("t", "r", "j", "v", collector, ("a",), "/", ranks=ranks, recorded=recorded)


def test_a_wrapper_that_starts_one_rank_records_it_or_not() -> None:
    job = command(512, 0, 8)
    assert [rank for rank in range(512) if wraps(job, Rank(rank, 0, 512))] == [0, 8]
    assert wraps(replace(job, recorded=None), Rank(7, 0, 512))
    assert wraps(command(1, 3), Rank()), "the command may be a launcher"


def test_a_wrapper_of_a_launcher_records_its_node_when_one_of_its_ranks_is_wanted() -> None:
    job = command(32, 0, 17)
    assert [node for node in range(4) if wraps(job, Rank(node, 0, 4))] == [0, 2]


def test_what_is_expected_of_a_rank() -> None:
    job = command(4, 1, 3)
    assert [is_expected(job, rank, Rank(), inside=True) for rank in range(4)] == [False, True, False, True]
    assert [is_expected(job, rank, Rank(), inside=False) for rank in range(4)] == [True, False, False, False]


@pytest.mark.parametrize(
    ("job", "own", "inside", "sentences"),
    [
        (command(512, 8, 0), Rank(0, 0, 512), True, ["recorded ranks 0, 8 of 512"]),
        (command(4, 2), Rank(0, 0, 4), False, ["recorded rank 2 of 4"]),
        (command(4, 2), Rank(1, 0, 4), False, []),
        (command(4, 2, collector="none"), Rank(0, 0, 4), False, []),
        (command(8, 5), Rank(0, 0, 2), True, ["recorded rank 5 of 8"]),
        (
            command(8, 5),
            Rank(0, 0, 2),
            False,
            ["recorded rank 5 of 8", "ranks 4, 6-7 are recorded, too"],
        ),
        (command(1, 2), Rank(), True, ["rank 2 could not be recorded"]),
    ],
)
def test_what_is_said(job: Command, own: Rank, inside: bool, sentences: list[str]) -> None:
    assert [finding.what for finding in told(job, own, [own.rank], inside=inside)] == sentences


def test_the_hook_of_another_rank_only_times_steps() -> None:
    orders = HookConfig("f", "torch", "torch", hook="in_process", emitter="in_process", recorded=(1,))
    assert of_process(orders, Rank(1, 1, 2)) == orders
    other = of_process(orders, Rank(0, 0, 2))
    assert (other.hook, other.emitter, other.profiler, other.collector) == ("none", None, "none", "torch")


def test_a_rank_that_is_known_late_is_not_recorded_either() -> None:
    class Counting:
        starts_at, names_steps, is_torch_profiler, memory_factor, emitter = "active", True, True, 2.0, None

        def __init__(self) -> None:
            self.calls: list[str] = []

        def start(self, step: int, *, whole: bool = False) -> None:
            self.calls.append("start")

        def __getattr__(self, name: str) -> Any:
            return lambda: self.calls.append(name)

    for wanted, calls in ((False, []), (True, ["start", "step", "stop", "discard"])):
        inner: Any = Counting()
        recorder = OnlyRecorded(inner, [wanted].pop)
        assert (recorder.memory_factor, recorder.is_torch_profiler) == (2.0, True)
        recorder.start(3)
        recorder.step()
        recorder.stop()
        recorder.discard()
        assert inner.calls == calls


def of_two(trial: Trial, env: dict[str, str]) -> Done:
    slurm = {"SLURM_NTASKS": "2", "SLURM_JOB_ID": "5", "SLURM_JOB_NODELIST": "n[1-2]", **env}
    processes = [
        trial.start(slurm | {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)}) for rank in (0, 1)
    ]
    assert [trial.finish(process).code for process in processes] == [0, 0]
    return Done(trial.folder, 0, "", "")


@pytest.mark.parametrize("recorded", first(1, [1, 0]))
def test_a_profiler_round_the_program_starts_in_recorded_ranks_only(tmp_path: Path, recorded: int) -> None:
    trial = Trial(tmp_path, STEPS, collector="nsys", ranks=2, recorded=[recorded])
    done = of_two(trial, fake_nsys(tmp_path, 0.1))
    assert done.exit["state"] == "finished"
    assert (tmp_path / "nsys-starts").stat().st_size == 1
    paths = {row["path"]: row["state"] for row in done.exit["artefacts"]}
    assert set(paths.values()) == {"whole"}
    assert {path for path in paths if "report" in path} == {
        f"raw/rank{recorded}/report{ending}"
        for ending in {path.partition("report")[2] for path in paths if "report" in path}
    }
    assert f"recorded rank {recorded} of 2: the job names them under ranks" in done.warnings
    assert [done.steps(rank)["profiler"] for rank in (0, 1)] == [
        "nsys" if rank == recorded else "none" for rank in (0, 1)
    ]
    assert (done.exit["profiler"], done.exit["tool"]) == ("nsys", "nsys")


RANKS = """
import os, subprocess, sys, torch, profrun
if "RANK" not in os.environ:
    for rank in "012":
        env = {**os.environ, "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "3"}
        subprocess.run([sys.executable, "job.py"], env=env, check=True)
    sys.exit(0)
for _ in range(6):
    profrun.step()
"""


@pytest.mark.thorough  # four imports of torch
def test_a_profiler_inside_the_program_records_wanted_ranks_of_a_launcher(
    tmp_path: Path,
) -> None:
    trial = Trial(tmp_path, [*python()[:1], "job.py"], RANKS, collector="torch", recorded=[1, 7])
    done = trial.run()
    assert done.exit["state"] == "finished", done.exit["reason"]
    recorded = {row["path"].split("/")[1] for row in done.exit["artefacts"] if ".pt.trace" in row["path"]}
    assert recorded == {"rank1"}
    assert {row["state"] for row in done.exit["artefacts"]} == {"whole"}
    assert [done.steps(rank)["profiler"] for rank in range(3)] == ["none", "torch", "none"]
    codes = {row["code"]: row["what"] for row in done.exit["warnings"]}
    assert codes["ranks-recorded"] == "recorded rank 1 of 3"
    assert codes["rank-not-there"] == "rank 7 could not be recorded"
