"""A short pod that says which collectors work on the cluster's nodes.

It runs the wrapper's own preflight (``run.py --preflight --json``) with the same image, GPUs and security
context as a trial, and brings its answer back through the claim.
"""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

from profrun.backends.kubernetes.api import Api
from profrun.backends.kubernetes.ending import lives, until
from profrun.backends.kubernetes.launch import PROBE
from profrun.backends.kubernetes.logs import last_line_of_log
from profrun.backends.kubernetes.manifest import RUN_LABEL, image_of, indexed_job, job_name, pod_spec
from profrun.backends.kubernetes.objects import ApiObject, Manifest, name_of
from profrun.backends.kubernetes.pod_paths import run_in_pod
from profrun.backends.kubernetes.pod_resources import wants_huge_pages
from profrun.backends.kubernetes.refusals import forbidden_pod
from profrun.backends.kubernetes.resource_groups import Caller, ResourceGroup, pod_gpus, security, vendor
from profrun.backends.kubernetes.states import from_pod
from profrun.backends.node_probe import PATIENCE_S, NodeAnswer, read_answer
from profrun.errors import UnavailableError
from profrun.jobs.model import Job
from profrun.plans.model import Plan
from profrun.store.files import make_dir

_ROUND_S = 2.0
_MEMORY = 4 << 30
_SHM = 64 << 20
"""Bytes of /dev/shm; the preflight needs none."""


def probe_manifest(job: Job, folder: Path, caller: Caller | None = None) -> Manifest:
    """The probe's Job. Pure.

    Args:
        job: a job with the cluster block and image to be probed; its command is not run.
        folder: where the bundle lies and the answer goes; in the claim.

    Raises:
        UsageError: image, volume and GPUs do not fit together.
    """
    settings = job.cluster.of_site(None)
    memory = _MEMORY if wants_huge_pages(settings) else None  # Kubernetes takes these only with memory
    job = replace(job, resources=replace(job.resources, shm=_SHM, memory=memory))
    plan = Plan(job, (), "auto")
    whose = vendor(plan, settings)
    group = ResourceGroup((), settings, whose, pod_gpus(plan, settings))
    caller = caller or Caller.here()
    context, _ = security((), caller)
    pod = pod_spec(job, group, context, image_of(job, whose))
    pod["activeDeadlineSeconds"] = int(PATIENCE_S)
    container = pod["containers"][0]
    container["command"] = ["/bin/sh", "-c", PROBE]
    container["env"].append({"name": "PROFRUN_RUN", "value": run_in_pod(settings, folder)})
    spec = {"completions": 1, "parallelism": 1, "backoffLimit": 0, "ttlSecondsAfterFinished": 60}
    return indexed_job(job_name(folder, 0), settings, folder, caller, spec, pod)


def probe(job: Job, root: Path, *, patience_s: float = PATIENCE_S, api: Api | None = None) -> NodeAnswer:
    """Start the probe and wait for its answer; nothing of it is left behind.

    Args:
        root: a folder in the claim; a subfolder is made there and removed again.
        patience_s: how long to wait for a node and the image.

    Raises:
        UnavailableError: the API server refuses, the wait takes longer, or the pod could not run; says why.
    """
    from profrun.plans.bundle import write_bundle

    settings = job.cluster.of_site(None)
    make_dir(root)
    folder = Path(mkdtemp(prefix=".probe-", dir=root.resolve()))
    try:
        manifest = probe_manifest(job, folder)
        engine = api or Api(settings.context, settings.namespace)
        write_bundle(folder / "bundle")
        folder.chmod(0o755)
        if not os.getuid():  # root's pods do not run as root
            os.chown(folder, Caller.here().uid, Caller.here().gid)
        started = time.monotonic()
        engine.create(manifest)
        try:
            _wait(engine, manifest, folder, started + patience_s)
            preflight = read_answer(folder)
            if preflight is None:
                raise UnavailableError("the probe ended without an answer", why=_why(engine, manifest))
        finally:
            engine.delete_job(manifest["metadata"]["name"])
        node = (folder / "node").read_text(errors="replace").strip()
        return NodeAnswer(node, preflight, time.monotonic() - started)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait(engine: Api, manifest: ApiObject, folder: Path, deadline: float) -> None:
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
            _wait_for_file(folder)
            return
        pods, _ = engine.pods(selector)
        if pods:
            observed = from_pod(pods[0])
            reason = observed.status.reason or observed.status.state
            never: str | None = reason if observed.hopeless else None
        else:
            refusal = engine.refusals().get(name)
            reason = refusal or reason
            never = forbidden_pod(refusal) if refusal else None
        if never:
            raise UnavailableError("the probe cannot start", why=never)
    raise UnavailableError("the probe did not get to run", why=reason, fix="try again later")


def _wait_for_file(folder: Path, patience_s: float = 2.0) -> None:
    """Its last file may take a moment to be seen here."""
    deadline = time.monotonic() + patience_s
    while not (folder / "answer.json").exists() and time.monotonic() < deadline:
        time.sleep(0.1)


def _why(engine: Api, manifest: ApiObject) -> str:
    for pod in engine.pods(_selector(manifest))[0]:
        line = last_line_of_log(engine, name_of(pod))
        return "; ".join(part for part in (from_pod(pod).status.reason, line) if part)
    return "its pod is gone"


def _selector(manifest: ApiObject) -> str:
    return f"{RUN_LABEL}={manifest['metadata']['labels'][RUN_LABEL]}"
