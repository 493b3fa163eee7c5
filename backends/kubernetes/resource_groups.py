"""``ResourceGroup``: trials whose pods need the same and share a Job. Pure."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from profrun.backends.base import Lane
from profrun.backends.cluster import by_site, gpus_per_node, is_launcher, vendor_of
from profrun.backends.kubernetes.objects import Manifest
from profrun.backends.privileges import DROP_ROOT, IPC_LOCK, PERFMON, become_caller, needs_of
from profrun.contract.command import Vendor
from profrun.errors import UsageError
from profrun.jobs.cluster import ClusterSettings
from profrun.plans.model import Plan, Trial

MAX_INDEXES = 1000
"""Trials a Job; Kubernetes takes 100 000, but the trials' names are in the pod's arguments."""
GPU_RESOURCE: Mapping[Vendor, str] = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu"}
NOBODY = 65532
"""Who pods run as when the caller is root: the number that distroless images call nonroot."""


@dataclass(frozen=True)
class Caller:
    """Numeric user and group that the pods' processes have: those who own the run folder."""

    uid: int
    gid: int

    @classmethod
    def here(cls) -> Caller:
        """This process's, or ``NOBODY`` for root: pods do not run as root."""
        uid = os.getuid()
        return cls(uid, os.getgid()) if uid else cls(NOBODY, NOBODY)


@dataclass(frozen=True)
class NodeChoice:
    """On which nodes the pods of a Job run.

    Attributes:
        names: of the nodes; empty: the scheduler chooses.
        firm: no other nodes will do; False: others only if these cannot be had.
        note: what a person should know of the choice.
    """

    names: tuple[str, ...] = ()
    firm: bool = True
    note: str | None = None


@dataclass(frozen=True)
class ResourceGroup:
    """Trials whose pods are alike.

    Attributes:
        settings: the cluster block at their site.
        vendor: nvidia, amd or none.
        gpus: of each pod.
        capabilities: added, without CAP_.
        nodes: where the pods run.
        beside: the first trial of the site, whose nodes these trials take once they are known; None: they
            take any.
    """

    trials: tuple[Trial, ...]
    settings: ClusterSettings
    vendor: Vendor
    gpus: int
    capabilities: tuple[str, ...] = ()
    nodes: NodeChoice = NodeChoice()
    beside: str | None = None


def resource_groups(plan: Plan, trials: Sequence[Trial]) -> list[ResourceGroup]:
    """Groups in the order of their first trial. Trials that the driver starts in turn are each its own.

    Raises:
        UsageError: GPUs are wanted and nothing says whose.
    """
    shared = {site: _share_a_job(plan, members) for site, members in by_site(plan.trials).items()}
    grouped: dict[tuple[object, ...], list[Trial]] = {}
    for trial in trials:
        alone = None if shared[trial.site] else trial.id
        grouped.setdefault((*_shape(plan, trial), alone), []).append(trial)
    found = []
    for members in grouped.values():
        for start in range(0, len(members), MAX_INDEXES):
            found.append(_resource_group(plan, members[start : start + MAX_INDEXES]))
    return found


def lane_of(plan: Plan, trial: Trial) -> Lane:
    """What a trial waits behind: those of its site, ``cluster.parallel`` at once.

    One Job keeps this order itself. Several Jobs do not know of each other: each is made when its turn comes.
    """
    width = plan.job.cluster.of_site(trial.site).parallel or 1
    return Lane(trial.site or "", width, together=_share_a_job(plan, by_site(plan.trials)[trial.site]))


def _share_a_job(plan: Plan, members: Sequence[Trial]) -> bool:
    """Whether all trials of a site are indexes of one Job, which keeps their order and their number.

    The pods of a Job have one template, so those that share nodes with the first trial need their own.
    """
    shapes = {_shape(plan, trial) for trial in members}
    same_nodes = plan.job.cluster.of_site(members[0].site).allocation == "one"
    alike = plan.job.resources.nodes == 1 and len(shapes) == 1 and len(members) <= MAX_INDEXES
    return alike and not same_nodes


def _shape(plan: Plan, trial: Trial) -> tuple[object, ...]:
    """What is the same for all trials of a Job."""
    return (trial.site, _capabilities(plan, trial), is_launcher(trial))


def _resource_group(plan: Plan, members: Sequence[Trial]) -> ResourceGroup:
    settings = plan.job.cluster.of_site(members[0].site)
    gpus = pod_gpus(plan, settings)
    if plan.job.resources.ranks_per_node > 1 and not is_launcher(members[0]):
        raise UsageError(
            f"a pod starts the command once, and the job asks for "
            f"{plan.job.resources.ranks_per_node} ranks a node",
            fix="let the command start its ranks: torchrun, which finds its nodes and ranks set",
        )
    first = next((trial.id for trial in plan.trials if trial.site == members[0].site), None)
    return ResourceGroup(
        tuple(members),
        settings,
        vendor(plan, settings),
        gpus,
        _capabilities(plan, members[0]),
        beside=first if settings.allocation == "one" and first != members[0].id else None,
    )


def vendor(plan: Plan, settings: ClusterSettings) -> Vendor:
    """As stated, else by the resource's name, by the GPU type's name, else the plan's."""
    if not settings.vendor and settings.gpu_resource:
        for name, known in GPU_RESOURCE.items():
            if settings.gpu_resource.partition("/")[0] == known.partition("/")[0]:
                return name
    return vendor_of(settings, plan)


def pod_gpus(plan: Plan, settings: ClusterSettings) -> int:
    """GPUs of a pod; ``auto``: one a rank where the cluster block says whose they are.

    Raises:
        UsageError: some are wanted and nothing says whose.
    """
    count = gpus_per_node(plan.job, settings)
    if plan.job.resources.gpus == "auto" and settings.vendor in GPU_RESOURCE:
        count = plan.job.resources.ranks_per_node
    if count and not settings.gpu_resource and vendor(plan, settings) not in GPU_RESOURCE:
        raise UsageError(
            f"the job asks for {count} GPU{'s' if count > 1 else ''} a pod, and nothing says whose",
            why="this machine cannot see what GPUs the cluster has",
            fix="set cluster.vendor to nvidia or amd, or cluster.gpu_resource",
        )
    return count


def gpu_resource(group: ResourceGroup) -> str:
    """The extended resource to ask for."""
    return group.settings.gpu_resource or GPU_RESOURCE[group.vendor]


def _capabilities(plan: Plan, trial: Trial) -> tuple[str, ...]:
    """What the job asks for and its profilers need. What the nodes allow to everybody is not known here."""
    settings = plan.job.cluster.of_site(trial.site)
    lock = (IPC_LOCK,) if settings.ipc_lock else ()
    return (*lock, PERFMON) if needs_of(trial, vendor(plan, settings)) else lock


def security(
    capabilities: Sequence[str], caller: Caller, groups: Sequence[int] = ()
) -> tuple[Manifest, tuple[str, ...]]:
    """The container's security context, and the words before its command.

    Without capabilities it is what the Pod Security level ``restricted`` asks for. Kubernetes gives added
    capabilities to root only, so a container that needs one starts as root with it, and ``setpriv`` becomes
    the caller before anything else runs, keeping just that one (as an ambient capability).

    Args:
        groups: further groups of the caller in the pod, which ``setpriv`` would leave out.
    """
    context: Manifest = {
        "allowPrivilegeEscalation": False,
        "runAsNonRoot": True,
        "runAsUser": caller.uid,
        "runAsGroup": caller.gid,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    if not capabilities:
        return context, ()
    context |= {"runAsNonRoot": False, "runAsUser": 0, "runAsGroup": 0}
    context["capabilities"] = {"drop": ["ALL"], "add": sorted({*capabilities, *DROP_ROOT})}
    return context, become_caller(capabilities, caller.uid, caller.gid, groups)
