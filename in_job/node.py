"""The node of a cluster on which a wrapper runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..contract.command import NODE_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping


def node_names(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Its name as the cluster has it; empty where no cluster runs the trial.

    The host's name will not do: that of a container is often made up.

    Args:
        environ: the wrapper's. Kubernetes' pods have ``NODE_VARIABLE``, Slurm's tasks ``SLURMD_NODENAME``
            (man srun).
    """
    name = environ.get(NODE_VARIABLE) or environ.get("SLURMD_NODENAME")
    return (name,) if name else ()
