"""What a patch may do to a pod, and what is refused with its place and what to do instead."""

from __future__ import annotations

from typing import Any

import kubernetes_validate
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.backends.kubernetes.loosening import loosenings
from profrun.backends.kubernetes.pod_patch import patched
from profrun.errors import UsageError
from profrun.jobs.cluster import ClusterSettings, Loosening
from tests.backends.kubernetes.made import CASES, ME, bundles, pod
from tests.backends.kubernetes.test_loosening import EVERY, of_trial, template
from tests.backends.plans import plan
from tests.conftest import examples

OWNER = "the run's folder belongs to this user"


def with_patch(patch: dict[str, Any], *allow: Loosening, case: str = "cpu") -> dict[str, Any]:
    """The template of a case with a patch."""
    settings = ClusterSettings(pod_patch=patch, pod_patch_allow=allow or None)
    return patched(template(case), settings, ME)


def of_container(**fields: Any) -> dict[str, Any]:
    """A patch of the trial's container."""
    return {"spec": {"containers": [{"name": "trial", **fields}]}}


def test_no_patch_and_an_empty_one_change_nothing() -> None:
    assert patched(template(), ClusterSettings(), ME) == template()
    assert with_patch({}) == template()
    assert with_patch({"spec": {}}) == template()


@pytest.mark.parametrize(("field", "patch", "said"), EVERY)
def test_less_security_must_be_allowed_by_name(field: Loosening, patch: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        with_patch(patch)
    if OWNER in str(caught.value):  # not even by name: root without capabilities may write nothing there
        assert patch == of_trial(runAsUser=0)
        return
    assert f"cluster.pod_patch makes the pods less secure: cluster.pod_patch.{said};" in str(caught.value)
    assert f"allow it: cluster.pod_patch_allow: [{field}]" in str(caught.value)
    assert with_patch(patch, field) != template()


def test_all_that_loosens_is_said_at_once_and_what_is_allowed_stays_allowed() -> None:
    patch = {"spec": {"hostNetwork": True, "hostPID": True, **of_trial(privileged=True)["spec"]}}
    with pytest.raises(UsageError) as caught:
        with_patch(patch, "hostPID")
    said = str(caught.value)
    assert "spec.hostNetwork is true; cluster.pod_patch.spec.containers[trial]" in said
    assert said.endswith("allow it: cluster.pod_patch_allow: [hostPID, hostNetwork, privileged]")


def test_what_the_job_asked_for_by_a_key_needs_no_further_permission() -> None:
    patch = {"spec": {"hostIPC": True, "dnsPolicy": "Default"}}
    assert with_patch(patch, case="rdma")["spec"]["dnsPolicy"] == "Default"


@pytest.mark.parametrize(
    ("patch", "place", "fix"),
    [
        ({"metadata": {"labels": {"profrun/run": "x"}}}, "metadata.labels.profrun/run", "cluster.labels"),
        ({"metadata": {"labels": None}}, "metadata.labels.app.kubernetes.io/managed-by", "cluster.labels"),
        (
            {"metadata": {"annotations": {"profrun/path": None}}},
            "metadata.annotations.profrun/path",
            "annotations",
        ),
        ({"spec": {"restartPolicy": "OnFailure"}}, "spec.restartPolicy", "write over its trial"),
        ({"spec": None}, "spec.restartPolicy", "leave it out"),
        (
            {"spec": {"terminationGracePeriodSeconds": 1}},
            "spec.terminationGracePeriodSeconds",
            "resources.grace",
        ),
        ({"spec": {"activeDeadlineSeconds": None}}, "spec.activeDeadlineSeconds", "cluster.time"),
        ({"spec": {"hostname": "a"}}, "spec.hostname", "find each other by it"),
        ({"spec": {"subdomain": "a"}}, "spec.subdomain", "find each other by it"),
        ({"spec": {"containers": None}}, "spec.containers[trial].name", "leave the container in"),
        (of_container(**{"$patch": "delete"}), "spec.containers[trial].name", "leave the container in"),
        (of_container(image="other"), "spec.containers[trial].image", "use image of the job"),
        (of_container(command=["sleep"]), "spec.containers[trial].command", "use command of the job"),
        (of_container(args=[]), "spec.containers[trial].args", "use command of the job"),
        (of_container(envFrom=[{"secretRef": {"name": "x"}}]), "spec.containers[trial].envFrom", "under env"),
        (
            of_container(env=[{"name": "HOME", "value": "/x"}]),
            "spec.containers[trial].env[HOME]",
            "env of the job",
        ),
        (
            of_container(env=[{"name": "PROFRUN_RUN", "$patch": "delete"}]),
            "spec.containers[trial].env[PROFRUN_RUN]",
            "env of the job",
        ),
        # Kubernetes and the script before the wrapper set these: they are in no list of ours.
        (
            of_container(env=[{"name": "JOB_COMPLETION_INDEX", "value": "0"}]),
            "spec.containers[trial].env[JOB_COMPLETION_INDEX]",
            "env of the job",
        ),
        (
            of_container(volumeMounts=[{"mountPath": "/runs", "name": "shm"}]),
            "spec.containers[trial].volumeMounts[/runs]",
            "cluster.pvc",
        ),
        (
            of_container(volumeMounts=[{"mountPath": "/runs/", "name": "shm"}]),
            "spec.containers[trial].volumeMounts[/runs/]",
            "cluster.pvc",
        ),
        (
            {"spec": {"volumes": [{"name": "tmp", "$patch": "delete"}]}},
            "spec.volumes[tmp]",
            "another name",
        ),
        ({"spec": {"volumes": None}}, "spec.volumes[runs]", "another name"),
        (of_trial(runAsUser=7), "spec.containers[trial].securityContext.runAsUser", OWNER),
        (of_trial(runAsGroup=None), "spec.containers[trial].securityContext.runAsGroup", OWNER),
        (
            {"spec": {"containers": [{"name": "more", "image": "x"}]}},
            "spec.containers[more]",
            "initContainers with restartPolicy: Always",
        ),
    ],
)
def test_what_profrun_relies_on_cannot_be_changed(patch: dict[str, Any], place: str, fix: str) -> None:
    with pytest.raises(UsageError) as caught:
        with_patch(patch, "runAsUser", "runAsNonRoot")
    assert f"cluster.pod_patch.{place} " in str(caught.value)
    assert fix in str(caught.value)


def test_ranks_of_several_nodes_and_amounts_cannot_be_changed() -> None:
    for name in ("RANK", "MASTER_ADDR", "PET_NPROC_PER_NODE"):
        with pytest.raises(UsageError, match=rf"containers\[trial\]\.env\[{name}\] cannot be changed"):
            with_patch(of_container(env=[{"name": name, "value": "0"}]), case="nodes")
    with pytest.raises(
        UsageError, match=r"resources\.limits\.nvidia\.com/gpu cannot .* cluster\.pod_resources"
    ):
        with_patch(of_container(resources={"limits": {"nvidia.com/gpu": "4"}}), case="nodes")


def test_a_patch_that_does_not_fit_names_its_place() -> None:
    with pytest.raises(
        UsageError, match=r"cluster\.pod_patch\.hostNetwork is no part .*\{spec: \{hostNetwork"
    ):
        with_patch({"hostNetwork": True})
    with pytest.raises(UsageError, match=r"cluster\.pod_patch\.spec\.containers does not fit: it is a list"):
        with_patch({"spec": {"containers": {"trial": {}}}})


FIELDS = [
    "spec",
    "metadata",
    "labels",
    "annotations",
    "containers",
    "initContainers",
    "volumes",
    "env",
    "ports",
    "name",
    "mountPath",
    "volumeMounts",
    "securityContext",
    "capabilities",
    "add",
    "drop",
    "seccompProfile",
    "appArmorProfile",
    "sysctls",
    "hostPath",
    "projected",
    "sources",
    "resources",
    "limits",
    "restartPolicy",
    "containerPort",
    "hostPort",
    "serviceAccountToken",
    "$patch",
]


def fields_of(inside: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Mappings whose keys are fields of a pod."""
    return st.dictionaries(st.sampled_from(FIELDS), inside, max_size=3)


LEAVES = (
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["trial", "runs", "delete", "ALL", "x"])
)
ANYTHING = st.recursive(
    LEAVES,
    lambda inside: (
        st.lists(inside, max_size=2)
        | st.dictionaries(st.sampled_from(FIELDS), inside, max_size=4)
        | st.builds(
            lambda name, rest: {**rest, "name": name}, st.sampled_from(["trial", "x"]), fields_of(inside)
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["spec", "metadata"]), fields_of(ANYTHING), max_size=2))
@examples(300, 20_000)
def test_any_patch_is_taken_or_refused_and_what_is_taken_is_no_less_secure(patch: dict[str, Any]) -> None:
    """Also one whose values have shapes that Kubernetes does not know."""
    before = template()
    try:
        made = with_patch(patch)
    except UsageError:
        return
    assert loosenings(made) == []
    assert [item["name"] for item in made["spec"]["containers"]] == ["trial"]
    trial, old = made["spec"]["containers"][0], before["spec"]["containers"][0]
    assert (trial["command"], trial["args"], trial["image"]) == (old["command"], old["args"], old["image"])
    assert made["metadata"]["labels"].items() >= before["metadata"]["labels"].items()


def test_a_container_that_is_added_is_as_confined_as_the_trial() -> None:
    sidecar = {"name": "net", "image": "net:1", "restartPolicy": "Always"}
    made = with_patch({"spec": {"initContainers": [sidecar]}})
    (added,) = made["spec"]["initContainers"]
    assert added["securityContext"] == made["spec"]["containers"][0]["securityContext"]
    more = {**sidecar, "securityContext": {"capabilities": {"add": ["NET_ADMIN"]}, "runAsUser": 0}}
    made = with_patch({"spec": {"initContainers": [more]}}, "capabilities", "runAsUser")
    (added,) = made["spec"]["initContainers"]
    assert added["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["NET_ADMIN"]}
    assert added["securityContext"]["allowPrivilegeEscalation"] is False


def test_a_sidecar_beside_a_trial_with_capabilities_gets_none_of_them() -> None:
    sidecar = {"name": "net", "image": "net:1", "restartPolicy": "Always"}
    made = with_patch({"spec": {"initContainers": [sidecar]}}, case="rdma")
    (added,) = made["spec"]["initContainers"]
    assert added["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert added["securityContext"]["runAsUser"] == ME.uid


def test_sites_and_the_probe_take_the_patch() -> None:
    from profrun.backends.kubernetes.probe import probe_manifest
    from profrun.backends.node_probe import probe_job
    from tests.backends.kubernetes.made import RUN

    patch = "pod_patch: {spec: {dnsPolicy: Default}}, pod_resources: {rdma/ib: 1}"
    block = f"pvc: runs, vendor: nvidia, sites: {{a: {{{patch}}}, b: {{gpu_resource: nvidia.com/gpu}}}}"
    found = bundles(plan(image=CASES["nvidia"]["image"], cluster=block))
    assert [pod(bundle).get("dnsPolicy") for bundle in (found[0], found[-1])] == ["Default", None]
    limits = [pod(bundle)["containers"][0]["resources"]["limits"] for bundle in (found[0], found[-1])]
    assert limits == [{"nvidia.com/gpu": "2", "rdma/ib": "1"}, {"nvidia.com/gpu": "2"}]
    settings = ClusterSettings(pvc="runs", vendor="nvidia", pod_patch={"spec": {"dnsPolicy": "Default"}})
    probe = probe_manifest(probe_job(settings, "auto"), RUN, ME)
    assert probe["spec"]["template"]["spec"]["dnsPolicy"] == "Default"
    kubernetes_validate.validate(probe, "1.36", strict=True)
