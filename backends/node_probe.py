"""What a probe of a cluster node asks for and answers. ``slurm.probe`` and ``kubernetes.probe`` run it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from profrun.jobs.cluster import ClusterSettings
from profrun.jobs.model import Job, Resources

PATIENCE_S = 600.0
"""How long a probe waits for a node, seconds."""


@dataclass(frozen=True)
class NodeAnswer:
    """What a node's preflight said.

    Attributes:
        node: host name of the node, or of the pod.
        preflight: the wrapper's document (vendor, gpus, collectors with findings).
        waited_s: seconds from the request to the answer.
    """

    node: str
    preflight: Mapping[str, Any]
    waited_s: float


def probe_job(cluster: ClusterSettings, image: str, gpus: int | None = None) -> Job:
    """A job that only carries what a probe needs; its command is not run.

    Args:
        gpus: to ask for; None: as the cluster block says.
    """
    resources = Resources(gpus="auto" if gpus is None else gpus)
    return Job(name="probe", command="true", image=image, cluster=cluster, resources=resources)
