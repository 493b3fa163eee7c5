"""A short pod that says which collectors work on the cluster's nodes, before hours of queueing.

It runs the wrapper's own preflight (``run.py --preflight --json``) with the same image, GPUs and security
context as a trial, and brings its answer back through the claim.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from profrun.backends.cluster import site_settings
from profrun.backends.kubernetes.api import Api
from profrun.backends.kubernetes.ending import lives, until
from profrun.backends.kubernetes.launch import PROBE
from profrun.backends.kubernetes.logs import last_words
from profrun.backends.kubernetes.manifest import RUN_LABEL, image_of, job_name, pod_spec, run_label
from profrun.backends.kubernetes.pod_paths import run_in_pod
from profrun.backends.kubernetes.refusals import forbidden_pod
from profrun.backends.kubernetes.resource_groups import Caller, Shape, pod_gpus, security, vendor
from profrun.backends.kubernetes.states import pod_seen
from profrun.errors import UnavailableError
from profrun.jobs.cluster import ClusterSettings
from profrun.jobs.model import Job, Resources
from profrun.plans.model import Plan
from profrun.store.files import make_dir, read_json

PATIENCE_S = 600.0
_ROUND_S = 2.0


@dataclass(frozen=True)
class Answer:
    """What a node's preflight said.

    Attributes:
        node: host name of the pod.
        preflight: the wrapper's document (vendor, gpus, collectors with findings).
        waited_s: seconds from the request to the answer.
    """

    node: str
    preflight: Mapping[str, Any]
    waited_s: float


def probe_job(cluster: ClusterSettings, image: str = "auto", gpus: int | None = None) -> Job:
    """A job that only carries what a probe needs."""
    resources = Resources(gpus="auto" if gpus is None else gpus, shm=64 << 20)
    return Job(name="probe", command="true", image=image, cluster=cluster, resources=resources)


def probe_manifest(job: Job, folder: Path, caller: Caller | None = None) -> dict[str, Any]:
    """The probe's Job. Pure.

    Args:
        job: a job with the cluster block and image to be probed; its command is not run.
        folder: where the bundle lies and the answer goes; in the claim.

    Raises:
        UsageError: image, volume and GPUs do not fit together.
    """
    settings, plan = site_settings(job, None), Plan(job, (), "auto")
    whose = vendor(plan, settings)
    shape = Shape((), settings, whose, pod_gpus(plan, settings))
    context, _ = security((), caller or Caller.here())
    pod = pod_spec(job, shape, context, image_of(job, whose))
    pod["activeDeadlineSeconds"] = int(PATIENCE_S)
    container = pod["containers"][0]
    container["command"] = ["/bin/sh", "-c", PROBE]
    container["env"].append({"name": "PROFRUN_RUN", "value": run_in_pod(settings, folder)})
    labels = {**settings.get("labels", {}), "app.kubernetes.io/managed-by": "profrun"}
    labels[RUN_LABEL] = run_label(folder)
    queue = {"kueue.x-k8s.io/queue-name": settings["queue"]} if settings.get("queue") else {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(folder, 0),
            **({"namespace": settings["namespace"]} if settings.get("namespace") else {}),
            "labels": {**labels, **queue},
            "annotations": dict(settings.get("annotations", {})),
        },
        "spec": {
            "completionMode": "Indexed",
            "completions": 1,
            "parallelism": 1,
            "backoffLimit": 0,
            "ttlSecondsAfterFinished": 60,
            **({"suspend": True} if queue else {}),
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def probe(job: Job, root: Path, *, patience_s: float = PATIENCE_S, api: Api | None = None) -> Answer:
    """Start the probe and wait for its answer; nothing of it is left behind.

    Args:
        root: a folder in the claim; a subfolder is made there and removed again.
        patience_s: how long to wait for a node and the image.

    Raises:
        UnavailableError: the API server refuses, the wait takes longer, or the pod could not run; says why.
    """
    from profrun.plans.bundle import write_bundle

    settings = site_settings(job, None)
    make_dir(root)
    folder = Path(mkdtemp(prefix=".probe-", dir=root.resolve()))
    try:
        manifest = probe_manifest(job, folder)
        engine = api or Api(settings.get("context"), settings.get("namespace"))
        write_bundle(folder / "bundle")
        folder.chmod(0o755)
        if not os.getuid():  # root's pods do not run as root
            os.chown(folder, Caller.here().uid, Caller.here().gid)
        started = time.monotonic()
        engine.create(manifest)
        try:
            _wait(engine, manifest, folder, started + patience_s)
            document = read_json(folder / "answer.json")
            if document is None:
                raise UnavailableError("the probe ended without an answer", why=_why(engine, manifest))
        finally:
            engine.delete_job(manifest["metadata"]["name"])
        node = (folder / "node").read_text(errors="replace").strip()
        return Answer(node, document, time.monotonic() - started)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait(engine: Api, manifest: Mapping[str, Any], folder: Path, deadline: float) -> None:
    """Until the answer is there or the pod has ended.

    Raises:
        UnavailableError: the deadline passed, or the pod will never start.
    """
    name, selector = manifest["metadata"]["name"], _selector(manifest)
    reason = "the cluster has not started it"
    while time.monotonic() < deadline:
        left = min(_ROUND_S, deadline - time.monotonic())
        ended = until(engine, selector, lambda pods: any(not lives(pod) for pod in pods.values()), left)
        if ended or (folder / "answer.json").exists():
            _seen_here(folder)
            return
        pods, _ = engine.pods(selector)
        if pods:
            seen = pod_seen(pods[0])
            reason = seen.status.reason or seen.status.state
            never: str | None = reason if seen.hopeless else None
        else:
            refusal = engine.refusals().get(name)
            reason = refusal or reason
            never = forbidden_pod(refusal) if refusal else None
        if never:
            raise UnavailableError("the probe cannot start", why=never)
    raise UnavailableError("the probe did not get to run", why=reason, fix="try again later")


def _seen_here(folder: Path, patience_s: float = 2.0) -> None:
    """Its last file may take a moment to be seen here."""
    deadline = time.monotonic() + patience_s
    while not (folder / "answer.json").exists() and time.monotonic() < deadline:
        time.sleep(0.1)


def _why(engine: Api, manifest: Mapping[str, Any]) -> str:
    for pod in engine.pods(_selector(manifest))[0]:
        words = last_words(engine, str(pod["metadata"]["name"]))
        return "; ".join(part for part in (pod_seen(pod).status.reason, words) if part)
    return "its pod is gone"


def _selector(manifest: Mapping[str, Any]) -> str:
    return f"{RUN_LABEL}={manifest['metadata']['labels'][RUN_LABEL]}"
