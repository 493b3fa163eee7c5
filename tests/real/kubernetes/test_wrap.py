"""Pods that profrun has not made: the Job of docs/examples/jobset.yaml, started by its own controller."""

from __future__ import annotations

import copy
import json
import time
from typing import Any

import pytest
import yaml

import profrun
from profrun.plans.bundle import write_pyz
from tests.conftest import ROOT
from tests.real.kubernetes.conftest import NODE_LABEL, Desk
from tests.real.kubernetes.test_runs import DDP
from tests.support.containers import CALLER_UID
from tests.support.kube_api import Object

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(900)]

JOB = "train-node-0"
"""What the JobSet controller calls the only Job of the example; its pods are ``train-node-0-<index>``."""


def job_of_example(desk: Desk) -> Object:
    """The Job, as the JobSet controller makes it of the example, for this cluster.

    Other than in the example are the image, the claim, and what the cluster asks for: no GPU is there, the
    namespace is restricted, and the nodes are those of the test.
    """
    (jobset,) = yaml.safe_load_all((ROOT / "docs/examples/jobset.yaml").read_text())
    spec: Object = copy.deepcopy(jobset["spec"]["replicatedJobs"][0]["template"]["spec"])
    pod = spec["template"]
    pod["metadata"] = {
        "labels": {"jobset.sigs.k8s.io/jobset-uid": "77aa", "jobset.sigs.k8s.io/restart-attempt": "0"}
    }
    pod["spec"]["subdomain"] = "train"
    pod["spec"]["automountServiceAccountToken"] = False  # the stand-in kubelet has no such volume
    pod["spec"]["nodeSelector"] = {NODE_LABEL: desk.namespace}
    pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] = "runs"
    pod["spec"]["securityContext"] = {
        "runAsNonRoot": True,
        "runAsUser": CALLER_UID,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    (container,) = pod["spec"]["containers"]
    del container["resources"]
    container["image"] = desk.image
    container["env"].append({"name": "HOME", "value": "/tmp"})
    container["securityContext"] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": JOB}, "spec": spec}


def finished(desk: Desk) -> Object:
    """The Job when it has ended."""
    deadline = time.monotonic() + 300
    while True:
        job = desk.plane.api.get(f"{desk.jobs_path}/{JOB}")
        ended = [
            one["type"] for one in job.get("status", {}).get("conditions", ()) if one["status"] == "True"
        ]
        if {"Complete", "Failed"} & set(ended):
            return job
        assert time.monotonic() < deadline, json.dumps([pod["status"] for pod in desk.pods()])
        time.sleep(0.5)


def test_the_pods_of_another_controller_make_one_trial(desk: Desk) -> None:
    """torchrun in two pods; the ranks agree by the folder alone, and each pod's process has the number 1."""
    desk.cli.write("train.py", DDP)
    write_pyz(desk.folder / "wrap.pyz")
    service: dict[str, Any] = {
        "metadata": {"name": "train"},
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"job-name": JOB}},
    }
    desk.plane.api.post(f"{desk.path}/services", service)
    desk.plane.api.post(desk.jobs_path, job_of_example(desk))
    job = finished(desk)
    out = desk.folder / "runs/train"
    logs = {path.name: path.read_text() for path in out.glob("trials/*/std*.log")}
    assert job["status"].get("succeeded") == 2, (job["status"], logs)
    (launch,) = (out / "launches").iterdir()
    document = json.loads((launch / "launch.json").read_text())
    assert (document["launch"], document["launcher"]) == ("77aa.0", "Kubeflow")
    assert {path.name for path in launch.iterdir()} == {"launch.json", "rank0", "rank1"}
    assert not list(out.rglob("*.tmp")) + list(out.glob(".*"))
    done = desk.finish(desk.begin("normalize", "runs/train", "--json"))
    assert (done["exit_code"], done["state"]) == (0, "finished"), done["said"]
    with profrun.open(out / "trials/000-default-torch-r1/trace") as trace:
        ranks = trace.sql("SELECT DISTINCT rank FROM processes ORDER BY rank").rows
    assert ranks == [(0,), (1,)]
