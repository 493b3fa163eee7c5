"""The objects of a run as plain dicts: a pure function, golden-tested, what ``--dry-run`` prints.

Needs Kubernetes 1.29 (``backoffLimitPerIndex``). Fields: kubernetes.io/docs/reference/kubernetes-api/
workload-resources/job-v1. Quantities of GPUs are strings, as the API wants them.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from profrun.backends.cluster import is_launcher
from profrun.backends.kubernetes.launch import NOT_THERE, script_of_many, script_of_nodes
from profrun.backends.kubernetes.network import policy
from profrun.backends.kubernetes.objects import TRIAL, ApiObject, Manifest
from profrun.backends.kubernetes.placement import placement, topology_spread, with_nodes
from profrun.backends.kubernetes.pod_patch import patched
from profrun.backends.kubernetes.pod_paths import CLAIM_PATH, run_in_pod, volume_mounts
from profrun.backends.kubernetes.pod_resources import pod_resources
from profrun.backends.kubernetes.resource_groups import Caller, ResourceGroup, security
from profrun.backends.kubernetes.states import JOB
from profrun.backends.profilers import margin_s
from profrun.contract.command import NODE_VARIABLE
from profrun.errors import UsageError
from profrun.jobs.cluster import ClusterSettings
from profrun.jobs.model import Job
from profrun.plans.model import Plan, Trial

PORT = 29500
"""Port where ranks meet; a pod has a network of its own, so nothing else uses it."""
PULL_S = 1800
"""A pod's deadline counts from before its image is pulled; the vendors' images have tens of GB."""
TTL_S = 3600
USER = "profrun"
"""What the pods' user is called."""
RUN_LABEL = "profrun/run"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
PATH_NOTE = "profrun/path"


@dataclass(frozen=True)
class JobObjects:
    """A Job and what belongs to it.

    Attributes:
        policy: the NetworkPolicy that turns the pods' network off, or None where the job wants one.
        secret: name of the Secret that holds the job's secrets, or None; its values are never in a manifest.
        beside: the trial whose nodes the pods will be bound to, while they are not known; else None.
    """

    job: Manifest
    policy: Manifest | None
    service: Manifest | None
    secret: str | None
    trials: tuple[Trial, ...]
    beside: str | None = None

    @property
    def name(self) -> str:
        """Name of the Job."""
        return str(self.job["metadata"]["name"])

    @property
    def objects(self) -> list[Manifest]:
        """Everything but the Secret."""
        return [value for value in (self.job, self.policy, self.service) if value is not None]


def job_objects(
    plan: Plan, group: ResourceGroup, run: Path, cwd: Path, *, number: int = 0, caller: Caller | None = None
) -> JobObjects:
    """The Job of a group, its NetworkPolicy unless the job wants a network, and a headless Service when a
    trial has several nodes.

    Args:
        cwd: the folder that the job's relative paths count from.
        number: of the Job in this run, so that a resumed run's Jobs have new names.

    Raises:
        UsageError: image, volume, GPUs and cluster block do not fit together.
    """
    name, settings, caller = job_name(run, number), group.settings, caller or Caller.here()
    nodes = plan.job.resources.nodes
    secret = name if plan.job.secrets or plan.job.env_file else None
    job = indexed_job(
        name,
        settings,
        run,
        caller,
        {
            "completions": nodes if nodes > 1 else len(group.trials),
            "parallelism": nodes if nodes > 1 else min(settings.parallel or 1, len(group.trials)),
            **(_gang_policy() if nodes > 1 else _index_policy()),
            "ttlSecondsAfterFinished": TTL_S if settings.ttl is None else int(settings.ttl),
        },
        _pod(plan, group, run, cwd, name, secret, caller),
    )
    if group.nodes.names:
        pod = job["spec"]["template"]["spec"]
        pod["affinity"] = with_nodes(pod.get("affinity") or {}, group.nodes)
    metadata = _metadata(settings, run)
    closed = None if plan.job.network else policy(name, metadata, nodes=nodes)
    beside = None if group.nodes.names or group.nodes.note else group.beside
    service = _service(name, metadata) if nodes > 1 else None
    return JobObjects(job, closed, service, secret, group.trials, beside)


def indexed_job(
    name: str, settings: ClusterSettings, run: Path, caller: Caller, spec: Manifest, pod: Manifest
) -> Manifest:
    """A Job whose pods have completion indexes, and the site's patch of them.

    Args:
        caller: as whom the pods run.
        spec: how many pods, and what follows when one fails.
        pod: what each of them runs.

    Raises:
        UsageError: the patch cannot be taken.
    """
    metadata = _metadata(settings, run)
    labels = {label: value for label, value in metadata["labels"].items() if label != QUEUE_LABEL}
    template: Manifest = {
        "metadata": {"labels": labels, "annotations": {**metadata["annotations"]}},
        "spec": {**pod, **topology_spread(settings, {JOB: name})},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, **metadata},
        "spec": {
            "completionMode": "Indexed",
            **spec,
            **({"suspend": True} if settings.queue else {}),
            "template": patched(template, settings, caller),
        },
    }


def job_name(run: Path, number: int) -> str:
    """A DNS label with room for the index in pods' host names; runs are unique in their folder only."""
    digits = hashlib.sha256(os.fsencode(run.absolute())).hexdigest()[:6]
    words = re.sub(r"[^a-z0-9]+", "-", run.name.lower()).strip("-")[:34].strip("-")
    return f"profrun-{words}-{digits}{f'-{number}' if number else ''}"


def run_label(run: Path) -> str:
    """The run's name as a label's value (63 characters, ends in a letter or digit)."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", run.name)[-63:].strip("-_.")


def _metadata(settings: ClusterSettings, run: Path) -> Manifest:
    """Namespace, labels and annotations of every object."""
    labels = {
        **(settings.labels or {}),
        "app.kubernetes.io/managed-by": "profrun",
        RUN_LABEL: run_label(run),
        **({QUEUE_LABEL: settings.queue} if settings.queue else {}),
    }
    return {
        **({"namespace": settings.namespace} if settings.namespace else {}),
        "labels": labels,
        "annotations": {**(settings.annotations or {}), PATH_NOTE: str(run.absolute())},
    }


def _index_policy() -> Manifest:
    """One trial's failure is its own; a pod that was evicted is made again; a wrong volume ends them all.

    The first rule that fits counts. The script that starts again finds what the first attempt left.
    """
    codes = {"containerName": TRIAL, "operator": "In", "values": [NOT_THERE]}
    failed = {"containerName": TRIAL, "operator": "NotIn", "values": [0]}
    return {
        "backoffLimitPerIndex": 0,
        "podFailurePolicy": {
            "rules": [
                {"action": "FailJob", "onExitCodes": codes},
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                {"action": "FailIndex", "onExitCodes": failed},
            ]
        },
    }


def _gang_policy() -> Manifest:
    """Nodes of one trial end together: the others are asked to end, and write what they have."""
    failed = {"containerName": TRIAL, "operator": "NotIn", "values": [0]}
    return {"backoffLimit": 0, "podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": failed}]}}


def _service(name: str, metadata: ApiObject) -> Manifest:
    """Gives the pods of a trial names that the others can resolve, before they are ready."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, **metadata},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {JOB: name},
            "ports": [{"name": "rendezvous", "port": PORT}],
        },
    }


def _pod(
    plan: Plan, group: ResourceGroup, run: Path, cwd: Path, name: str, secret: str | None, caller: Caller
) -> Manifest:
    settings, nodes = group.settings, plan.job.resources.nodes
    groups = (settings.fs_group, *(settings.supplemental_groups or ()))
    context, before = security(group.capabilities, caller, [each for each in groups if each is not None])
    ranks = plan.job.resources.ranks_per_node if is_launcher(group.trials[0]) else None
    if nodes > 1:
        address = f"{name}-0.{name}"
        script = script_of_nodes(nodes=nodes, address=address, port=PORT, ranks=ranks)
    else:
        script = script_of_many(ranks=ranks)
    margin = margin_s(plan, group.trials)
    pod = pod_spec(plan.job, group, context, image_of(plan.job, group.vendor))
    pod["terminationGracePeriodSeconds"] = margin
    pod["activeDeadlineSeconds"] = _limit(plan.job, settings, margin)
    if nodes > 1:
        pod["subdomain"] = name
    container = pod["containers"][0]
    container["command"] = [*before, "/bin/sh", "-c", script, "profrun"]
    container["args"] = [trial.id for trial in group.trials]
    container["env"].append({"name": "PROFRUN_RUN", "value": run_in_pod(settings, run)})
    container["volumeMounts"] += volume_mounts(plan.job, settings, run, cwd)
    if secret:
        container["envFrom"] = [{"secretRef": {"name": secret}}]
    return pod


def _limit(job: Job, settings: ClusterSettings, margin: int) -> int:
    """Seconds that a pod may be there. The trial's own limit is the wrapper's; this one is a last resort.

    Raises:
        UsageError: ``cluster.time`` leaves none for the work.
    """
    if settings.time and settings.time <= margin:
        raise UsageError(
            f"cluster.time is {settings.time:.0f} s, and {margin} s of it are for writing reports",
            fix="raise it, or lower resources.grace",
        )
    return math.ceil(float(settings.time or job.resources.timeout + margin + PULL_S))


def pod_spec(job: Job, group: ResourceGroup, context: ApiObject, image: str) -> Manifest:
    """A pod with one container ``trial`` that still lacks its command."""
    settings = group.settings
    env = [
        {"name": "HOME", "value": "/tmp"},
        # The caller's number has no name in the image, and getpass.getuser() fails without these.
        *({"name": name, "value": USER} for name in ("USER", "LOGNAME")),
        {"name": "PROFRUN_POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
        {"name": NODE_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    ]
    if (
        not group.gpus
    ):  # NVIDIA's images ask for every GPU, which a node may grant to a pod that asked for none
        env.append({"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"})
    container: Manifest = {
        "name": TRIAL,
        "image": image,
        "imagePullPolicy": settings.image_pull_policy or "IfNotPresent",
        "env": env,
        "resources": pod_resources(job, group),
        "securityContext": dict(context),
        "volumeMounts": [{"name": "runs", "mountPath": settings.pvc_path or CLAIM_PATH}],
    }
    volumes: list[Manifest] = [{"name": "runs", "persistentVolumeClaim": {"claimName": settings.pvc}}]
    if not settings.host_ipc:  # the node's /dev/shm is a part of its shared memory
        container["volumeMounts"].append({"name": "shm", "mountPath": "/dev/shm"})
        volumes.append({"name": "shm", "emptyDir": _in_memory(job.resources.shm)})
    if not job.resources.writable_root:
        container["securityContext"]["readOnlyRootFilesystem"] = True
        container["volumeMounts"].append({"name": "tmp", "mountPath": "/tmp"})
        volumes.append({"name": "tmp", "emptyDir": _in_memory(job.resources.tmp)})
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        **placement(settings),
        "containers": [container],
        "volumes": volumes,
    }


def _in_memory(size: int | None) -> Manifest:
    """A folder in the pod's memory; None: as large as the node allows."""
    return {"medium": "Memory", **({"sizeLimit": str(size)} if size else {})}


def image_of(job: Job, vendor: str) -> str:
    """The image's reference.

    Raises:
        UsageError: the job names none that a pod can run.
    """
    if job.image not in ("auto", "cuda", "rocm", "none"):
        return job.image
    from profrun.images.catalogue import default_base

    wanted = job.image if job.image in ("cuda", "rocm") else {"nvidia": "cuda", "amd": "rocm"}.get(vendor)
    if wanted is None or job.image == "none":
        raise UsageError(
            f"image: {job.image} names no image for a pod",
            why=None if job.image == "none" else "this machine cannot see what GPUs the cluster has",
            fix="give image a reference, or set cluster.vendor",
        )
    return default_base("rocm" if wanted == "rocm" else "cuda").reference


def to_yaml(objects: JobObjects, secret_names: Sequence[str] = ()) -> str:
    """The objects as `kubectl create -f -` takes them, scripts as blocks."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Texts of several lines as they are written."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Dumper.add_representer(str, text)
    Dumper.ignore_aliases = lambda *_: True  # type: ignore[method-assign]
    parts = [yaml.dump(value, Dumper=Dumper, sort_keys=False, width=120) for value in objects.objects]
    note = ""
    if objects.secret:
        listed = f": {', '.join(secret_names)}" if secret_names else ""
        note = f"# Secret {objects.secret}, made at submit and deleted with the Job{listed}\n"
    if objects.beside:
        note += f"# Made when its turn comes, with node affinity to the nodes on which {objects.beside} ran\n"
    return note + "---\n".join(parts)
