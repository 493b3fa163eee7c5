"""Which rank a process is, by the variables that each launcher really sets."""

from __future__ import annotations

import pytest

from profrun.contract.recording import Rank
from profrun.in_job import process_rank
from profrun.in_job.launchers import launch_of, node_launcher, process_launcher

AWS = {
    "AWS_BATCH_JOB_ID": "6f3c#1",
    "AWS_BATCH_JOB_ATTEMPT": "2",
    "AWS_BATCH_JOB_NODE_INDEX": "1",
    "AWS_BATCH_JOB_MAIN_NODE_INDEX": "0",
    "AWS_BATCH_JOB_NUM_NODES": "4",
}
SKYPILOT = {
    "SKYPILOT_NODE_RANK": "1",
    "SKYPILOT_NUM_NODES": "2",
    "SKYPILOT_NODE_IPS": "10.0.0.1\n10.0.0.2",
    "SKYPILOT_TASK_ID": "sky-2026-11-26_train_1-0",
}
DSTACK = {"DSTACK_NODE_RANK": "2", "DSTACK_NODES_NUM": "3", "DSTACK_RUN_ID": "51e8", "DSTACK_RUN_NAME": "a"}
KUBEFLOW = {"PET_NODE_RANK": "1", "PET_NNODES": "2", "PET_NPROC_PER_NODE": "auto"}
TRAINING_OPERATOR = {"RANK": "1", "WORLD_SIZE": "2", "PET_NODE_RANK": "1", "PET_NNODES": "2"}
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "PMIX_RANK": "3",
    "PMIX_NAMESPACE": "1879441409",
    "OMPI_MCA_ess_base_jobid": "1879441409",
}
MPICH = {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1"}
SLURM = {"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_LOCALID": "0", "SLURM_JOB_ID": "9"}


@pytest.mark.parametrize(
    ("environ", "name", "rank"),
    [
        (AWS, "AWS Batch", Rank(1, 0, 4)),
        (SKYPILOT, "SkyPilot", Rank(1, 0, 2)),
        (DSTACK, "dstack", Rank(2, 0, 3)),
        (KUBEFLOW, "Kubeflow", Rank(1, 0, 2)),
        (TRAINING_OPERATOR, "torchrun", Rank(1, 0, 2)),
        (OPEN_MPI, "Open MPI", Rank(3, 1, 4)),
        (MPICH, "MPICH", Rank(1, 1, 2)),
        (SLURM, "Slurm", Rank(1, 0, 2)),
        ({"PROFRUN_RANK": "5", "PROFRUN_WORLD_SIZE": "6"}, "profrun wrap", Rank(5, 0, 6)),
    ],
)
def test_the_rank_by_each_launchers_variables(environ: dict[str, str], name: str, rank: Rank) -> None:
    launcher = process_launcher(environ) or node_launcher(environ)
    assert launcher is not None
    assert launcher.name == name
    assert process_rank.from_environ(environ) == rank


@pytest.mark.parametrize("node", [AWS, SKYPILOT, DSTACK, KUBEFLOW])
def test_torchruns_own_rank_wins_over_that_of_its_node(node: dict[str, str]) -> None:
    inside = {**node, "RANK": "7", "LOCAL_RANK": "3", "WORLD_SIZE": "8"}
    assert process_rank.from_environ(inside) == Rank(7, 3, 8)


def test_a_nodes_rank_alone_is_no_rank() -> None:
    """Pods of an Indexed Job may have nothing to do with each other."""
    for name in ("JOB_COMPLETION_INDEX", "PET_NODE_RANK", "SKYPILOT_NODE_RANK"):
        assert process_rank.from_environ({name: "3"}) == Rank()


def test_a_launch_is_told_from_the_next_where_the_launcher_says_it() -> None:
    assert launch_of(AWS) == "AWS_BATCH_JOB_ID=6f3c AWS_BATCH_JOB_ATTEMPT=2", "without the node's number"
    assert launch_of({**AWS, "AWS_BATCH_JOB_ID": "6f3c"}) == launch_of(AWS), "the main node has no number"
    assert launch_of(SKYPILOT) == "SKYPILOT_TASK_ID=sky-2026-11-26_train_1-0"
    assert launch_of(DSTACK) == "DSTACK_RUN_ID=51e8"
    assert launch_of({**SLURM, "SLURM_STEP_ID": "3"}) == "SLURM_JOB_ID=9 SLURM_STEP_ID=3"
    assert launch_of(KUBEFLOW) is None
