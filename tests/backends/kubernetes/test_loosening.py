"""What makes a pod less secure is found, each by its name, wherever it stands."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from profrun.backends.kubernetes.loosening import loosenings
from profrun.backends.kubernetes.strategic_merge import merge
from profrun.jobs.cluster import Loosening
from tests.backends.kubernetes.made import CASES, bundles
from tests.backends.plans import plan

TOKEN = {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}


def of_trial(**context: Any) -> dict[str, Any]:
    """A patch of the trial container's security context."""
    return {"spec": {"containers": [{"name": "trial", "securityContext": context}]}}


LOOSE: dict[Loosening, list[tuple[dict[str, Any], str]]] = {
    "allowPrivilegeEscalation": [
        (
            of_trial(allowPrivilegeEscalation=True),
            "spec.containers[trial].securityContext.allowPrivilegeEscalation is true",
        ),
        (
            of_trial(allowPrivilegeEscalation=None),
            "spec.containers[trial].securityContext.allowPrivilegeEscalation is missing",
        ),
    ],
    "appArmorProfile": [
        (
            of_trial(appArmorProfile={"type": "Unconfined"}),
            "spec.containers[trial].securityContext.appArmorProfile.type is Unconfined",
        ),
        (
            {
                "metadata": {
                    "annotations": {"container.apparmor.security.beta.kubernetes.io/trial": "unconfined"}
                }
            },
            "metadata.annotations.container.apparmor.security.beta.kubernetes.io/trial is unconfined",
        ),
    ],
    "automountServiceAccountToken": [
        ({"spec": {"automountServiceAccountToken": True}}, "spec.automountServiceAccountToken is true"),
        ({"spec": {"automountServiceAccountToken": None}}, "spec.automountServiceAccountToken is missing"),
    ],
    "capabilities": [
        (
            of_trial(capabilities={"add": ["SYS_ADMIN", "NET_RAW"]}),
            "spec.containers[trial].securityContext.capabilities.add is SYS_ADMIN, NET_RAW",
        ),
        (
            of_trial(capabilities={"drop": ["NET_RAW"]}),
            "spec.containers[trial].securityContext.capabilities.drop is NET_RAW",
        ),
        (of_trial(capabilities=None), "spec.containers[trial].securityContext.capabilities.drop is missing"),
    ],
    "hostIPC": [({"spec": {"hostIPC": True}}, "spec.hostIPC is true")],
    "hostNetwork": [({"spec": {"hostNetwork": True}}, "spec.hostNetwork is true")],
    "hostPID": [({"spec": {"hostPID": True}}, "spec.hostPID is true")],
    "hostPath": [
        (
            {"spec": {"volumes": [{"name": "a", "hostPath": {"path": "/dev"}}]}},
            "spec.volumes[a].hostPath is /dev",
        )
    ],
    "hostPort": [
        (
            {"spec": {"containers": [{"name": "trial", "ports": [{"containerPort": 1, "hostPort": 22}]}]}},
            "spec.containers[trial].ports[1].hostPort is 22",
        )
    ],
    "privileged": [
        (of_trial(privileged=True), "spec.containers[trial].securityContext.privileged is true"),
    ],
    "procMount": [
        (of_trial(procMount="Unmasked"), "spec.containers[trial].securityContext.procMount is Unmasked")
    ],
    "readOnlyRootFilesystem": [
        (
            of_trial(readOnlyRootFilesystem=False),
            "spec.containers[trial].securityContext.readOnlyRootFilesystem is false",
        ),
    ],
    "runAsNonRoot": [
        (of_trial(runAsNonRoot=False), "spec.containers[trial].securityContext.runAsNonRoot is false"),
        (
            {"spec": {"securityContext": {"runAsNonRoot": False}}},
            "spec.securityContext.runAsNonRoot is false",
        ),
    ],
    "runAsUser": [
        ({"spec": {"securityContext": {"runAsUser": 0}}}, "spec.securityContext.runAsUser is 0"),
        (of_trial(runAsUser=0), "spec.containers[trial].securityContext.runAsUser is 0"),
    ],
    "seLinuxOptions": [
        (
            of_trial(seLinuxOptions={"type": "spc_t"}),
            "spec.containers[trial].securityContext.seLinuxOptions is {'type': 'spc_t'}",
        )
    ],
    "seccompProfile": [
        (
            of_trial(seccompProfile={"type": "Unconfined"}),
            "spec.containers[trial].securityContext.seccompProfile.type is Unconfined",
        ),
        (
            of_trial(seccompProfile=None),
            "spec.containers[trial].securityContext.seccompProfile.type is missing",
        ),
        (
            {"spec": {"securityContext": {"seccompProfile": {"type": "Unconfined"}}}},
            "spec.securityContext.seccompProfile.type is Unconfined",
        ),
    ],
    "serviceAccountToken": [
        (
            {"spec": {"volumes": [{"name": "a", **TOKEN}]}},
            "spec.volumes[a].projected.sources is a token of the cluster",
        )
    ],
    "sysctls": [
        (
            {"spec": {"securityContext": {"sysctls": [{"name": "net.core.somaxconn", "value": "1"}]}}},
            "spec.securityContext.sysctls is net.core.somaxconn",
        )
    ],
}


EVERY = [(field, patch, said) for field, cases in LOOSE.items() for patch, said in cases]


def template(case: str = "cpu") -> dict[str, Any]:
    """Of a job's pods."""
    found: dict[str, Any] = bundles(plan(**CASES[case]))[0].job["spec"]["template"]
    return found


def test_every_field_that_a_job_can_allow_is_tried() -> None:
    assert set(LOOSE) == set(get_args(Loosening))


@pytest.mark.parametrize(("field", "patch", "said"), EVERY)
def test_a_loosening_is_found_by_its_name_and_place(
    field: Loosening, patch: dict[str, Any], said: str
) -> None:
    (found,) = loosenings(merge(template(), patch))
    assert (found.field, found.text) == (field, said)


@pytest.mark.parametrize("kind", ["initContainers", "ephemeralContainers"])
def test_every_kind_of_container_is_looked_at(kind: str) -> None:
    pod = template()
    (trial,) = pod["spec"]["containers"]
    pod["spec"][kind] = [
        {"name": "more", "securityContext": {**trial["securityContext"], "privileged": True}}
    ]
    (found,) = loosenings(pod)
    assert found.text == f"spec.{kind}[more].securityContext.privileged is true"


def test_a_pod_of_ours_has_none_unless_its_job_asks() -> None:
    assert loosenings(template()) == []
    assert {found.field for found in loosenings(template("rdma"))} == {
        "hostIPC",
        "capabilities",
        "runAsNonRoot",
        "runAsUser",
    }
