"""What a probe of a cluster's node asks for and answers. ``slurm.probe`` and ``kubernetes.probe`` run it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from profrun.contract.codec import DocumentError, from_json
from profrun.contract.preflight import Preflight
from profrun.errors import UnavailableError
from profrun.jobs.cluster import ClusterSettings
from profrun.jobs.model import Job, Resources
from profrun.store.files import read_json

PATIENCE_S = 600.0
"""How long a probe waits for a node, seconds."""


@dataclass(frozen=True)
class NodeAnswer:
    """What a node's preflight said.

    Attributes:
        node: host name of the node, or of the pod.
        preflight: what the wrapper's own preflight said there.
        waited_s: seconds from the request to the answer.
    """

    node: str
    preflight: Preflight
    waited_s: float


def probe_job(cluster: ClusterSettings, image: str, gpus: int | None = None) -> Job:
    """A job that only carries what a probe needs; its command is not run.

    Args:
        gpus: to ask for; None: as the cluster block says.
    """
    resources = Resources(gpus="auto" if gpus is None else gpus)
    return Job(name="probe", command="true", image=image, cluster=cluster, resources=resources)


def read_answer(folder: Path) -> Preflight | None:
    """What the preflight left in a probe's folder; None when it left nothing.

    Raises:
        UnavailableError: it left something else.
    """
    document = read_json(folder / "answer.json")
    if document is None:
        return None
    try:
        return from_json(Preflight, document)
    except DocumentError as error:
        raise UnavailableError("the probe's answer cannot be read", why=str(error)) from error
