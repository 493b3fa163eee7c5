"""Launchers that start processes by themselves, and the variables by which a process knows its rank.

Every Python process of a job imports this, so it holds plain values.

Sources of the names: torchrun's page of the PyTorch documentation (``RANK``, ``PET_*``); Open MPI's FAQ on
environment variables; Hydra's PMI-1 (``PMI_RANK``, MPICH and Intel MPI); srun's manual; the user guide of AWS
Batch, on environment variables of multi-node parallel jobs; SkyPilot's page on distributed jobs; dstack's
reference of environment variables; Kubernetes' page on Indexed Jobs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Launcher:
    """The variables of one launcher.

    Args:
        name: in words.
        rank: the variable that holds the rank, from 0.
        world: the variable that holds how many there are; empty: there is none.
        local_rank: the variable that holds the rank within the node; empty: there is none.
        launch: variables that together tell one launch from the next, where they are set.
    """

    def __init__(
        self, name: str, rank: str, world: str, local_rank: str = "", launch: tuple[str, ...] = ()
    ) -> None:
        self.name, self.rank, self.world, self.local_rank, self.launch = name, rank, world, local_rank, launch


GIVEN_RANK, GIVEN_WORLD = "PROFRUN_RANK", "PROFRUN_WORLD_SIZE"
"""What ``profrun wrap --rank`` and ``--world-size`` set, for the hook."""

PROCESSES = (
    Launcher("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", ("TORCHELASTIC_RUN_ID",)),
    Launcher(
        "Open MPI",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        ("OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE"),
    ),
    Launcher("MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    Launcher("PMIx", "PMIX_RANK", "", "", ("PMIX_NAMESPACE",)),
    Launcher("Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", ("SLURM_JOB_ID", "SLURM_STEP_ID")),
)
"""Launchers that start every process, the ones that are started last first: torchrun's variables win over
MPI's, and those over Slurm's."""

NODES = (
    Launcher("profrun wrap", GIVEN_RANK, GIVEN_WORLD),
    Launcher("Kubeflow", "PET_NODE_RANK", "PET_NNODES", "", ("PET_RDZV_ID",)),
    Launcher(
        "AWS Batch",
        "AWS_BATCH_JOB_NODE_INDEX",
        "AWS_BATCH_JOB_NUM_NODES",
        "",
        ("AWS_BATCH_JOB_ID", "AWS_BATCH_JOB_ATTEMPT"),
    ),
    Launcher("SkyPilot", "SKYPILOT_NODE_RANK", "SKYPILOT_NUM_NODES", "", ("SKYPILOT_TASK_ID",)),
    Launcher("dstack", "DSTACK_NODE_RANK", "DSTACK_NODES_NUM", "", ("DSTACK_RUN_ID",)),
)
"""Launchers that start one process per node. They count only where no launcher of ``PROCESSES`` does, and
where both variables are set."""

INDEX = "JOB_COMPLETION_INDEX"
"""The index of a pod of an Indexed Job of Kubernetes. Nothing says how many there are, and the pods of many
such jobs know nothing of each other: it is the rank only where somebody says the number."""


def node_launcher(environ: Mapping[str, str]) -> Launcher | None:
    """The launcher of ``NODES`` that started this process; None: none of them."""
    for one in NODES:
        if environ.get(one.rank, "").isdigit() and environ.get(one.world, "").isdigit():
            return one
    return None


def process_launcher(environ: Mapping[str, str]) -> Launcher | None:
    """The launcher of ``PROCESSES`` that started this process; None: none of them."""
    for one in PROCESSES:
        if environ.get(one.rank, "").isdigit():
            return one
    return None


def launch_of(environ: Mapping[str, str]) -> str | None:
    """What tells this launch from others, by the variables of all launchers; None: nothing does.

    The id of a child of a multi-node parallel job of AWS Batch ends in ``#<node>``, which is no part of it.
    """
    found = {}
    for one in (*PROCESSES, *NODES):
        for name in one.launch:
            if environ.get(name):
                found[name] = environ[name].partition("#")[0] if name == "AWS_BATCH_JOB_ID" else environ[name]
    return " ".join(f"{name}={value}" for name, value in found.items()) or None
