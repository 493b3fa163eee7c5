"""Several wrappers that share a trial folder, as srun starts them."""

from __future__ import annotations

from pathlib import Path

from profrun.contract.exit import Artefact, Exit
from profrun.contract.finding import Finding
from profrun.in_job.ranks import merge, silent
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


def test_a_failed_rank_fails_the_trial_and_is_named(tmp_path: Path) -> None:
    trial = Trial(tmp_path, PROGRAM, ranks=2)
    assert run(trial, 9) == [0, 9]
    value = Done(trial.folder, 0, "", "").exit
    assert (value["state"], value["exit_code"]) == ("failed", 9)
    assert value["reason"].startswith("rank 1: the program exited with 9")


def test_the_worse_rank_decides() -> None:
    warning, other_warning = Finding("a", "warning", "A"), Finding("b", "warning", "B")
    own = Exit(
        "t",
        "finished",
        exit_code=0,
        artefacts=(Artefact("x", 1, "whole"),),
        ranges_emitted=2,
        warnings=(warning,),
    )
    other = Exit(
        "t",
        "failed",
        rank=3,
        exit_code=9,
        reason="boom",
        code="program-failed",
        stopped_by="SIGTERM",
        artefacts=(Artefact("y", 2, "whole"),),
        ranges_emitted=5,
        warnings=(warning, other_warning),
    )
    assert merge(own, other) == Exit(
        "t",
        "failed",
        exit_code=9,
        stopped_by="SIGTERM",
        code="program-failed",
        reason="rank 3: boom",
        artefacts=(Artefact("x", 1, "whole"), Artefact("y", 2, "whole")),
        ranges_emitted=7,
        warnings=(warning, Finding("b", "warning", "rank 3: B")),
    )


def test_a_rank_that_says_nothing_is_no_success() -> None:
    found = silent(Exit("t", "finished", exit_code=0), [1, 2])
    assert (found.state, found.code, found.reason) == (
        "failed",
        "rank-silent",
        "rank 1, 2 never said how it ended",
    )
    assert silent(Exit("t", "timeout", reason="slow"), [1]).reason == "slow"
