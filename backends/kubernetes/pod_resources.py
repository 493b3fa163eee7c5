"""What each pod asks its node for: CPUs, memory, GPUs, and what the cluster block adds. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from profrun.backends.kubernetes.objects import Manifest
from profrun.backends.kubernetes.resource_groups import GPU_RESOURCE, ResourceGroup, gpu_resource
from profrun.errors import UsageError
from profrun.jobs.cluster import ClusterSettings
from profrun.jobs.model import Job

_HUGE = "hugepages-"


def pod_resources(job: Job, group: ResourceGroup) -> Manifest:
    """Requests equal limits, so that no other pod's load is measured with the trial.

    Raises:
        UsageError: ``cluster.pod_resources`` has what another key asks for, or huge pages alone.
    """
    asked: dict[str, str] = {}
    if job.resources.cpus is not None:
        asked["cpu"] = str(job.resources.cpus)
    if job.resources.memory is not None:
        asked["memory"] = str(job.resources.memory)
    further = group.settings.pod_resources or {}
    _check(further, group, alone=not asked)
    if group.gpus:
        asked[gpu_resource(group)] = str(group.gpus)
    asked |= further
    return {"requests": dict(asked), "limits": asked} if asked else {}


def wants_huge_pages(settings: ClusterSettings) -> bool:
    """Whether the cluster block asks for huge pages."""
    return any(name.startswith(_HUGE) for name in settings.pod_resources or {})


def _check(further: Mapping[str, str], group: ResourceGroup, *, alone: bool) -> None:
    """Refuse what the API server would refuse only after the run was made, or what would count twice."""
    gpus = {*GPU_RESOURCE.values(), group.settings.gpu_resource}
    if alone and wants_huge_pages(group.settings):
        raise UsageError(
            "cluster.pod_resources has huge pages, and the job says neither CPUs nor memory",
            why="Kubernetes takes huge pages only together with one of them",
            fix="set resources.memory or resources.cpus",
        )
    for name in further:
        key = {"cpu": "cpus", "memory": "memory"}.get(name) or ("gpus" if name in gpus else None)
        if key:
            raise UsageError(
                f"cluster.pod_resources has {name}, and resources.{key} is its key",
                fix=f"write resources: {{{key}: ...}}",
            )
