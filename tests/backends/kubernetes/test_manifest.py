"""Manifests as values: golden files, each valid for every Kubernetes that profrun says it works with."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from profrun.backends.kubernetes.backend import KubernetesBackend
from profrun.backends.kubernetes.manifest import JobObjects, job_name, job_objects, to_yaml
from profrun.backends.kubernetes.probe import probe_manifest
from profrun.backends.kubernetes.resource_groups import Caller, resource_groups
from profrun.backends.node_probe import probe_job
from profrun.contract.command import Command, ImageUsed
from profrun.errors import UsageError
from profrun.jobs.cluster import ClusterSettings
from profrun.plans.model import Plan
from profrun.store.runs import Run
from tests.backends.plans import plan, prepared

GOLDEN = Path(__file__).parent / "golden"
RUN = Path("/shared/runs/transformer-20260101T000000Z-abcd")
CWD = Path("/shared/me/project")
ME = Caller(1000, 1000)
NGC = "nvcr.io/nvidia/pytorch:25.12-py3"
VERSIONS = [f"1.{minor}" for minor in range(29, 38)]
CASES: dict[str, dict[str, str]] = {
    "nvidia": {"image": NGC, "cluster": "pvc: runs, vendor: nvidia, parallel: 4"},
    "amd": {
        "image": "rocm",
        "resources": "gpus: 1, cpus: 8, memory: 64GiB, shm: 8GiB, timeout: 10m, grace: 30s",
        "cluster": (
            "pvc: runs, vendor: amd, namespace: ml, queue: gpu, priority_class: high, service_account: prof, "
            "pvc_path: /data, shared: /shared, node_selector: {gpu: mi300x}, labels: {team: a}, ttl: 10m, "
            "annotations: {note: b}, image_pull_secrets: [pull], image_pull_policy: Always, "
            "tolerations: [{key: amd.com/gpu, operator: Exists, effect: NoExecute, seconds: 30}]"
        ),
    },
    "nodes": {
        "image": NGC,
        "command": "torchrun train.py --batch {batch}",
        "resources": "gpus: 8, nodes: 2, ranks_per_node: 8",
        "cluster": "pvc: runs, gpu_resource: nvidia.com/gpu",
    },
    "cpu": {"image": "python:3.12", "resources": "gpus: 0, shm: 1GiB", "cluster": "pvc: runs"},
}


def bundles(made: Plan) -> list[JobObjects]:
    """What a plan asks of the API."""
    return [
        job_objects(made, group, RUN, CWD, number=number, caller=ME)
        for number, group in enumerate(resource_groups(made, made.trials))
    ]


def pod(bundle: JobObjects) -> dict[str, Any]:
    """The pods' spec."""
    spec: dict[str, Any] = bundle.job["spec"]["template"]["spec"]
    return spec


@pytest.mark.parametrize("name", CASES)
def test_manifests_are_as_kept(name: str) -> None:
    text = "---\n".join(to_yaml(bundle) for bundle in bundles(plan(**CASES[name]))[:2])
    kept = GOLDEN / f"{name}.yaml"
    if os.environ.get("PROFRUN_GOLDEN") == "write":
        kept.write_text(text)
    assert text == kept.read_text()


@pytest.mark.parametrize("version", VERSIONS)
def test_manifests_are_valid(version: str) -> None:
    for name in CASES:
        for value in bundles(plan(**CASES[name]))[0].objects:
            kubernetes_validate.validate(value, version, strict=True)
    probe = probe_manifest(probe_job(ClusterSettings(pvc="runs", vendor="nvidia"), "auto"), RUN, ME)
    kubernetes_validate.validate(probe, version, strict=True)


def test_the_check_knows_a_wrong_manifest() -> None:
    (bundle,) = bundles(plan(**CASES["cpu"]))
    bundle.job["spec"]["backoffLimits"] = 0
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(bundle.job, VERSIONS[-1], strict=True)


def test_one_job_holds_all_trials_of_a_shape_and_each_node_trial_has_its_own() -> None:
    (one,) = bundles(plan(**CASES["nvidia"]))
    assert one.job["spec"]["completions"] == 8
    assert one.job["spec"]["parallelism"] == 4
    assert pod(one)["containers"][0]["args"] == [trial.id for trial in one.trials]
    many = bundles(plan(**CASES["nodes"]))
    assert [bundle.job["spec"]["completions"] for bundle in many] == [2] * 8
    assert len({bundle.name for bundle in many}) == 8


def test_nodes_of_a_trial_find_each_other() -> None:
    bundle = bundles(plan(**CASES["nodes"]))[0]
    assert bundle.service is not None
    name = bundle.service["metadata"]["name"]
    assert bundle.service["spec"]["clusterIP"] == "None"
    assert bundle.service["spec"]["selector"] == {"batch.kubernetes.io/job-name": bundle.name}
    assert pod(bundle)["subdomain"] == name
    script = pod(bundle)["containers"][0]["command"][2]
    assert f"MASTER_ADDR={bundle.name}-0.{name} " in script  # an Indexed Job's pods are called <job>-<index>
    assert len(f"{bundle.name}-999") <= 63


def test_gpus_are_strings_and_a_trial_without_any_sees_none() -> None:
    gpu, amd, cpu = (bundles(plan(**CASES[name]))[0] for name in ("nvidia", "amd", "cpu"))
    assert pod(gpu)["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    assert pod(amd)["containers"][0]["resources"]["limits"]["amd.com/gpu"] == "1"
    assert pod(cpu)["containers"][0]["resources"] == {}
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in pod(cpu)["containers"][0]["env"]
    assert pod(cpu)["volumes"][1] == {
        "name": "shm",
        "emptyDir": {"medium": "Memory", "sizeLimit": str(1 << 30)},
    }


def test_a_pod_has_time_to_write_its_report() -> None:
    # grace 60 s, twice nsys's 120 s to finalise, 60 s for the rest; 30 min of work and 30 for the image.
    spec = pod(bundles(plan(**CASES["nvidia"]))[0])
    assert spec["terminationGracePeriodSeconds"] == 360
    assert spec["activeDeadlineSeconds"] == 1800 + 360 + 1800


def test_only_a_collector_that_needs_a_capability_gets_one() -> None:
    made = plan(image=NGC, cluster="pvc: runs, vendor: nvidia")
    job = made.job
    with_metrics = [
        trial
        if trial.collector != "nsys"
        else type(trial)(**{**vars(trial), "options": {"nsys": {"sample": "process-tree"}}})
        for trial in made.trials
    ]
    plain, able = bundles(Plan(job, tuple(with_metrics), made.vendor))
    context = pod(plain)["containers"][0]["securityContext"]
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert (context["runAsUser"], context["runAsNonRoot"]) == (1000, True)
    assert {trial.collector for trial in able.trials} == {"nsys"}
    asked = pod(able)["containers"][0]
    assert asked["securityContext"]["capabilities"]["add"] == ["PERFMON", "SETGID", "SETPCAP", "SETUID"]
    # Root without DAC_OVERRIDE may not write into the caller's folder: setpriv comes before the script.
    assert asked["command"][:5] == ["setpriv", "--reuid", "1000", "--regid", "1000"]
    assert asked["command"][8:11] == ["--bounding-set=-all,+perfmon", "--", "/bin/sh"]


def test_secrets_are_named_and_their_values_are_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf-very-secret")
    made = plan(image=NGC, cluster="pvc: runs, vendor: nvidia")
    made = Plan(type(made.job)(**{**vars(made.job), "secrets": ("HF_TOKEN",)}), made.trials, made.vendor)
    (request,) = KubernetesBackend().render(prepared(made), made.trials, Run(RUN))
    assert "HF_TOKEN" in request.text.splitlines()[0]
    assert "hf-very-secret" not in request.text + str(request.body)
    container = request.body["objects"][0]["spec"]["template"]["spec"]["containers"][0]
    assert container["envFrom"] == [{"secretRef": {"name": request.body["secret"]}}]


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ({"image": NGC, "cluster": "vendor: nvidia"}, "needs a persistent volume claim"),
        (
            {"image": NGC, "cluster": "pvc: a, vendor: amd, shared: /other"},
            "is not in /other, which the claim a",
        ),
        ({"image": NGC, "cluster": "pvc: a"}, "asks for 2 GPUs a pod, and nothing says whose"),
        ({"image": "none", "cluster": "pvc: a, vendor: amd"}, "image: none names no image for a pod"),
        (
            {"image": "auto", "resources": "gpus: 0", "cluster": "pvc: a"},
            "cannot see what GPUs the cluster has",
        ),
        (
            {"image": NGC, "resources": "gpus: 4, ranks_per_node: 4", "cluster": "pvc: a, vendor: amd"},
            "torchrun",
        ),
        ({"image": NGC, "cluster": "pvc: a, vendor: amd, time: 5m"}, "360 s of it are for writing reports"),
    ],
)
def test_what_does_not_fit_together_is_said(case: dict[str, str], message: str) -> None:
    made = plan(**case)
    with pytest.raises(UsageError, match=message):
        bundles(made)


def test_paths_of_this_machine_become_those_of_the_pod() -> None:
    made = plan(image=NGC, cluster="pvc: runs, vendor: nvidia, shared: /shared, pvc_path: /data")
    backend = KubernetesBackend()
    known = backend.prepare(made, made.trials, Run(RUN), Path("/shared/me/project"), ask=False)
    command = Command("t", "r", "j", "v", "none", ("x",), cwd="/shared/me/project")
    told = backend.adapt(known, made.trials[0], Run(RUN), command)
    assert told == replace(command, cwd="/data/me/project", vendor="nvidia", image=ImageUsed(NGC))
    with pytest.raises(UsageError, match="the pods do not see /home/me, where the command is to run"):
        backend.adapt(known, made.trials[0], Run(RUN), replace(command, cwd="/home/me"))
    env = pod(bundles(made)[0])["containers"][0]["env"]
    assert {"name": "PROFRUN_RUN", "value": f"/data/runs/{RUN.name}"} in env


def test_mounts_are_parts_of_the_claim() -> None:
    made = plan(image=NGC, cluster="pvc: runs, vendor: nvidia, shared: /shared")

    def mounted(text: str) -> list[dict[str, Any]]:
        job = type(made.job)(**{**vars(made.job), "mounts": (text,)})
        found: list[dict[str, Any]] = pod(bundles(Plan(job, made.trials, made.vendor))[0])["containers"][0][
            "volumeMounts"
        ]
        return found

    assert mounted("/shared/data:/data:ro")[-1] == {
        "name": "runs",
        "mountPath": "/data",
        "subPath": "data",
        "readOnly": True,
    }
    with pytest.raises(UsageError, match="/etc/data cannot be mounted in a pod"):
        mounted("/etc/data:/data")


def test_names_differ_between_jobs_runs_and_folders() -> None:
    names = {
        job_name(RUN, 0),
        job_name(RUN, 1),
        job_name(Path("/b") / RUN.name, 0),
        job_name(Path("/b/x"), 0),
    }
    assert len(names) == 4
    long = job_name(Path("/runs/" + "A_very.long job name" * 9), 12)
    assert len(long) <= 57
    assert long.replace("-", "").isalnum()
