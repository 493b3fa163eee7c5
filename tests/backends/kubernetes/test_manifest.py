"""Manifests as values: golden files, each valid for every Kubernetes that profrun says it works with."""

from __future__ import annotations

import os
from pathlib import Path

import kubernetes_validate
import pytest

from profrun.backends.kubernetes.backend import KubernetesBackend
from profrun.backends.kubernetes.manifest import job_name, to_yaml
from profrun.backends.kubernetes.probe import probe_manifest
from profrun.backends.node_probe import probe_job
from profrun.errors import UsageError
from profrun.jobs.cluster import ClusterSettings
from profrun.plans.model import Plan
from profrun.store.runs import Run
from tests.backends.kubernetes.made import CASES, ME, NGC, RUN, bundles, pod
from tests.backends.plans import plan, prepared
from tests.conftest import first

GOLDEN = Path(__file__).parent / "golden"
VERSIONS = [f"1.{minor}" for minor in range(29, 38)]


@pytest.mark.parametrize("name", CASES)
def test_manifests_are_as_kept(name: str) -> None:
    text = "---\n".join(to_yaml(bundle) for bundle in bundles(plan(**CASES[name]))[:2])
    kept = GOLDEN / f"{name}.yaml"
    if os.environ.get("PROFRUN_GOLDEN") == "write":
        kept.write_text(text)
    assert text == kept.read_text()


@pytest.mark.parametrize("version", first(2, [VERSIONS[0], *reversed(VERSIONS[1:])]))
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


def test_only_tmp_is_writable_unless_the_job_says_otherwise() -> None:
    case = {"image": "python:3.12", "cluster": "pvc: runs"}
    spec = pod(bundles(plan(**case, resources="gpus: 0, tmp: 2GiB"))[0])
    container = spec["containers"][0]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert {"name": "tmp", "mountPath": "/tmp"} in container["volumeMounts"]
    room = {"medium": "Memory", "sizeLimit": str(2 << 30)}
    assert {"name": "tmp", "emptyDir": room} in spec["volumes"]
    assert {e["name"]: e.get("value") for e in container["env"]}.items() >= {
        ("HOME", "/tmp"),
        ("USER", "profrun"),
        ("LOGNAME", "profrun"),
    }
    spec = pod(bundles(plan(**case, resources="gpus: 0, writable_root: true"))[0])
    assert "readOnlyRootFilesystem" not in spec["containers"][0]["securityContext"]
    assert [volume["name"] for volume in spec["volumes"]] == ["runs", "shm"]


def test_a_pod_has_time_to_write_its_report() -> None:
    # grace 60 s, twice nsys's 120 s to finalise, 60 s for the rest; 30 min of work and 30 for the image.
    spec = pod(bundles(plan(**CASES["nvidia"]))[0])
    assert spec["terminationGracePeriodSeconds"] == 360
    assert spec["activeDeadlineSeconds"] == 1800 + 360 + 1800


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
