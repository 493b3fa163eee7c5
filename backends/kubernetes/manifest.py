"""The objects of a run as plain dicts: a pure function, golden-tested, what ``--dry-run`` prints.

Needs Kubernetes 1.29 (``backoffLimitPerIndex``). Fields: kubernetes.io/docs/reference/kubernetes-api/
workload-resources/job-v1. Quantities of GPUs are strings, as the API wants them.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profrun.backends.cluster import is_launcher
from profrun.backends.kubernetes.launch import NOT_THERE, script_of_many, script_of_nodes
from profrun.backends.kubernetes.network import policy
from profrun.backends.kubernetes.pod_paths import CLAIM_PATH, run_in_pod, volume_mounts
from profrun.backends.kubernetes.resource_groups import Caller, Shape, gpu_resource, security
from profrun.backends.profilers import margin_s
from profrun.errors import UsageError
from profrun.jobs.model import Job
from profrun.plans.model import Plan, Trial

PORT = 29500
"""Of the rendezvous: a pod has a network of its own, so nothing else is there."""
PULL_S = 1800
"""A pod's deadline counts from before its image is pulled; the vendors' images have tens of GB."""
TTL_S = 3600
RUN_LABEL = "profrun/run"
PATH_NOTE = "profrun/path"


@dataclass(frozen=True)
class Bundle:
    """A Job and what belongs to it.

    Attributes:
        policy: the NetworkPolicy that turns the pods' network off, or None where the job wants one.
        secret: name of the Secret that holds the job's secrets, or None; its values are never in a manifest.
    """

    job: dict[str, Any]
    policy: dict[str, Any] | None
    service: dict[str, Any] | None
    secret: str | None
    trials: tuple[Trial, ...]

    @property
    def name(self) -> str:
        """Of the Job."""
        return str(self.job["metadata"]["name"])

    @property
    def objects(self) -> list[dict[str, Any]]:
        """Everything but the Secret."""
        return [value for value in (self.job, self.policy, self.service) if value is not None]


def manifests(
    plan: Plan, shape: Shape, run: Path, cwd: Path, *, number: int = 0, caller: Caller | None = None
) -> Bundle:
    """The Job of a shape, its NetworkPolicy unless the job wants a network, and a headless Service when a
    trial has several nodes.

    Args:
        cwd: the folder the job was submitted from.
        number: of the Job in this run, so that a resumed run's Jobs have new names.

    Raises:
        UsageError: image, volume, GPUs and cluster block do not fit together.
    """
    name = job_name(run, number)
    nodes = plan.job.resources.nodes
    secret = name if plan.job.secrets or plan.job.env_file else None
    marks = _marks(shape.settings, run)
    template = {
        "metadata": {"labels": {**marks["labels"]}, "annotations": {**marks["annotations"]}},
        "spec": _pod(plan, shape, run, cwd, name, secret, caller or Caller.here()),
    }
    template["metadata"]["labels"].pop("kueue.x-k8s.io/queue-name", None)
    spec = {
        "completionMode": "Indexed",
        "completions": nodes if nodes > 1 else len(shape.trials),
        "parallelism": nodes if nodes > 1 else min(int(shape.settings.get("parallel", 1)), len(shape.trials)),
        **(_gang_policy() if nodes > 1 else _index_policy()),
        "ttlSecondsAfterFinished": int(shape.settings.get("ttl", TTL_S)),
        **({"suspend": True} if shape.settings.get("queue") else {}),
        "template": template,
    }
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, **marks}, "spec": spec}
    closed = None if plan.job.network else policy(name, marks, nodes=nodes)
    return Bundle(job, closed, _service(name, marks) if nodes > 1 else None, secret, shape.trials)


def job_name(run: Path, number: int) -> str:
    """A DNS label with room for the index in pods' host names; runs are unique in their folder only."""
    place = hashlib.sha256(os.fsencode(run.absolute())).hexdigest()[:6]
    words = re.sub(r"[^a-z0-9]+", "-", run.name.lower()).strip("-")[:34].strip("-")
    return f"profrun-{words}-{place}{f'-{number}' if number else ''}"


def run_label(run: Path) -> str:
    """The run's name as a label's value (63 characters, ends in a letter or digit)."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", run.name)[-63:].strip("-_.")


def _marks(settings: Mapping[str, Any], run: Path) -> dict[str, Any]:
    """Namespace, labels and annotations of every object."""
    labels = {
        **settings.get("labels", {}),
        "app.kubernetes.io/managed-by": "profrun",
        RUN_LABEL: run_label(run),
        **({"kueue.x-k8s.io/queue-name": settings["queue"]} if settings.get("queue") else {}),
    }
    return {
        **({"namespace": settings["namespace"]} if settings.get("namespace") else {}),
        "labels": labels,
        "annotations": {**settings.get("annotations", {}), PATH_NOTE: str(run.absolute())},
    }


def _index_policy() -> dict[str, Any]:
    """One trial's failure is its own; a pod that was evicted is made again; a wrong volume ends them all.

    The first rule that fits counts. The script that starts again finds what the first attempt left.
    """
    codes = {"containerName": "trial", "operator": "In", "values": [NOT_THERE]}
    failed = {"containerName": "trial", "operator": "NotIn", "values": [0]}
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


def _gang_policy() -> dict[str, Any]:
    """Nodes of one trial end together: the others are asked to end, and write what they have."""
    failed = {"containerName": "trial", "operator": "NotIn", "values": [0]}
    return {
        "backoffLimit": 0,
        "podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": failed}]},
    }


def _service(name: str, marks: Mapping[str, Any]) -> dict[str, Any]:
    """Gives the pods of a trial names that the others can resolve, before they are ready."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, **marks},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {"batch.kubernetes.io/job-name": name},
            "ports": [{"name": "rendezvous", "port": PORT}],
        },
    }


def _pod(
    plan: Plan, shape: Shape, run: Path, cwd: Path, name: str, secret: str | None, caller: Caller
) -> dict[str, Any]:
    settings, nodes = shape.settings, plan.job.resources.nodes
    context, before = security(shape.capabilities, caller)
    ranks = plan.job.resources.ranks_per_node if is_launcher(shape.trials[0]) else None
    if nodes > 1:
        address = f"{name}-0.{name}"
        script = script_of_nodes(nodes=nodes, address=address, port=PORT, ranks=ranks)
    else:
        script = script_of_many(ranks=ranks)
    margin = margin_s(plan, shape.trials)
    pod = pod_spec(plan.job, shape, context, image_of(plan.job, shape.vendor))
    pod["terminationGracePeriodSeconds"] = margin
    pod["activeDeadlineSeconds"] = _limit(plan.job, settings, margin)
    if nodes > 1:
        pod["subdomain"] = name
    container = pod["containers"][0]
    container["command"] = [*before, "/bin/sh", "-c", script, "profrun"]
    container["args"] = [trial.id for trial in shape.trials]
    container["env"].append({"name": "PROFRUN_RUN", "value": run_in_pod(settings, run)})
    container["volumeMounts"] += volume_mounts(plan.job, settings, run, cwd)
    if secret:
        container["envFrom"] = [{"secretRef": {"name": secret}}]
    return pod


def _limit(job: Job, settings: Mapping[str, Any], margin: int) -> int:
    """Seconds that a pod may be there. The trial's own limit is the wrapper's; this one is a last resort.

    Raises:
        UsageError: ``cluster.time`` leaves none for the work.
    """
    stated = settings.get("time")
    if stated and float(stated) <= margin:
        raise UsageError(
            f"cluster.time is {float(stated):.0f} s, and {margin} s of it are for writing reports",
            fix="raise it, or lower resources.grace",
        )
    return math.ceil(float(stated or job.resources.timeout + margin + PULL_S))


def pod_spec(job: Job, shape: Shape, context: Mapping[str, Any], image: str) -> dict[str, Any]:
    """A pod with one container ``trial`` that still lacks its command."""
    settings = shape.settings
    shm: dict[str, Any] = {"medium": "Memory"}
    if job.resources.shm:
        shm["sizeLimit"] = str(job.resources.shm)
    env = [
        {"name": "HOME", "value": "/tmp"},
        {"name": "PROFRUN_POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
    ]
    if (
        not shape.gpus
    ):  # NVIDIA's images ask for every GPU, which a node may grant to a pod that asked for none
        env.append({"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"})
    container = {
        "name": "trial",
        "image": image,
        "imagePullPolicy": settings.get("image_pull_policy", "IfNotPresent"),
        "env": env,
        "resources": _resources(job, shape),
        "securityContext": dict(context),
        "volumeMounts": [
            {"name": "runs", "mountPath": str(settings.get("pvc_path") or CLAIM_PATH)},
            {"name": "shm", "mountPath": "/dev/shm"},
        ],
    }
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        **_placement(settings),
        "containers": [container],
        "volumes": [
            {"name": "runs", "persistentVolumeClaim": {"claimName": settings.get("pvc")}},
            {"name": "shm", "emptyDir": shm},
        ],
    }


def _placement(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Where and as whom: only what the cluster block says."""
    found: dict[str, Any] = {}
    for key, field in (
        ("service_account", "serviceAccountName"),
        ("priority_class", "priorityClassName"),
        ("node_selector", "nodeSelector"),
    ):
        if settings.get(key):
            found[field] = settings[key]
    if settings.get("image_pull_secrets"):
        found["imagePullSecrets"] = [{"name": name} for name in settings["image_pull_secrets"]]
    if settings.get("tolerations"):
        found["tolerations"] = [
            {("tolerationSeconds" if key == "seconds" else key): value for key, value in toleration.items()}
            for toleration in settings["tolerations"]
        ]
    return found


def _resources(job: Job, shape: Shape) -> dict[str, Any]:
    """Requests equal limits: a trial that is throttled by its neighbours measures them."""
    asked: dict[str, str] = {}
    if job.resources.cpus is not None:
        asked["cpu"] = str(job.resources.cpus)
    if job.resources.memory is not None:
        asked["memory"] = str(job.resources.memory)
    if shape.gpus:
        asked[gpu_resource(shape)] = str(shape.gpus)
    return {"requests": dict(asked), "limits": asked} if asked else {}


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


def to_yaml(bundle: Bundle, secret_names: Sequence[str] = ()) -> str:
    """The objects as `kubectl create -f -` takes them, scripts as blocks."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Texts of several lines as they are written."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Dumper.add_representer(str, text)
    Dumper.ignore_aliases = lambda *_: True  # type: ignore[method-assign]
    parts = [yaml.dump(value, Dumper=Dumper, sort_keys=False, width=120) for value in bundle.objects]
    note = ""
    if bundle.secret:
        listed = f": {', '.join(secret_names)}" if secret_names else ""
        note = f"# Secret {bundle.secret}, made at submit and deleted with the Job{listed}\n"
    return note + "---\n".join(parts)
