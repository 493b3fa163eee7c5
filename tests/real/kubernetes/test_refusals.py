"""What a real API server refuses: a quota, Pod Security, a missing right, a queue without Kueue."""

from __future__ import annotations

import time

import pytest

from tests.real.kubernetes.conftest import Desk, documented_rules
from tests.real.kubernetes.test_runs import ends
from tests.support.containers import until
from tests.support.kube_api import Object

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(900)]

QUICK = "collectors: [none]\nresources: {gpus: 0, timeout: 60s, grace: 5s}"


def test_a_quota_is_said_once_and_the_trial_starts_when_there_is_room(desk: Desk) -> None:
    quota = f"{desk.path}/resourcequotas"
    made = desk.plane.api.post(quota, {"metadata": {"name": "full"}, "spec": {"hard": {"pods": "0"}}})
    until(lambda: desk.plane.api.get(f"{quota}/full").get("status", {}).get("used"), "the quota")
    desk.spec("sleep 0", QUICK)
    process = desk.start("--json")
    until(lambda: "exceeded quota" in desk.said(process), "the reason")
    refused = _refusals(desk)
    until(lambda: _refusals(desk) > refused, "one more try of the Job controller")
    desk.plane.api.delete(f"{quota}/{made['metadata']['name']}")
    document = desk.finish(process)
    assert ends(document) == [("finished", None)]
    assert document["said"].count("exceeded quota: full") == 1, document["said"]


def _refusals(desk: Desk) -> int:
    """How often a pod was refused, by the events of the Job."""
    events = desk.plane.api.items(f"{desk.path}/events")
    return sum(event.get("count") or 1 for event in events if event["reason"] == "FailedCreate")


def test_pod_security_refuses_in_the_words_of_the_server_and_nothing_stays(desk: Desk) -> None:
    desk.spec(
        "sleep 0",
        "collectors: [nsys]\nnsys: {sample: process-tree}\nresources: {gpus: 0, timeout: 10m, grace: 5s}",
    )
    began = time.monotonic()
    document = desk.finish(desk.start("--json"))
    assert time.monotonic() - began < 120  # of the 10 minutes that a pod may wait for its image
    ((state, reason),) = ends(document)
    assert state == "failed", document["said"]
    assert 'violates PodSecurity "restricted:latest"' in str(reason)
    assert "sample" in str(reason)
    assert "pod-security.kubernetes.io/enforce=privileged" in str(reason)
    until(lambda: not desk.jobs(), "the end of the Job")
    assert desk.pods() == []


@pytest.mark.parametrize(
    ("resource", "verb", "rest", "words"),
    [
        ("jobs", "create", "", 'cannot create resource "jobs" in API group "batch"'),
        ("services", "create", ", nodes: 2", 'cannot create resource "services" in API group ""'),
        ("networkpolicies", "create", "", "the pods' network cannot be turned off"),
    ],
)
def test_a_missing_right_is_named_and_nothing_stays(
    desk: Desk, resource: str, verb: str, rest: str, words: str
) -> None:
    take_away(desk, resource, verb)
    desk.spec("sleep 0", f"collectors: [none]\nresources: {{gpus: 0, timeout: 60s, grace: 5s{rest}}}")
    process = desk.start()
    assert process.wait(240) == 69, desk.said(process)
    said = desk.said(process)
    assert words in said
    assert f"system:serviceaccount:{desk.namespace}:profrun" in said
    assert "docs/kubernetes.md lists the rights" in said or "ask for the right" in said
    assert "Traceback" not in said
    until(lambda: not desk.jobs() and not desk.pods(), "the end of what was made")


def test_a_right_that_is_missing_while_a_run_goes_on_is_named_and_its_files_count(desk: Desk) -> None:
    take_away(desk, "pods", "list")
    desk.spec("sleep 0", QUICK)
    document = desk.finish(desk.start("--json"))
    assert ends(document) == [("finished", None)], document["said"]
    said = "kubernetes cannot be asked, trying on: your account may not do this on the cluster"
    assert document["said"].count(said) == 1
    assert 'cannot list resource "pods" in API group ""' in document["said"]


def take_away(desk: Desk, resource: str, verb: str) -> None:
    """One right of the account; returns when the server goes by it."""
    rules: list[Object] = []
    group = ""
    for rule in documented_rules():
        if rule["resources"] == [resource]:
            (group,) = rule["apiGroups"]
            rule["verbs"] = [each for each in rule["verbs"] if each != verb]
        rules.append(rule)
    rights = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{desk.namespace}/roles/profrun"
    desk.plane.api.patch(rights, {"rules": rules})
    asked = {"namespace": desk.namespace, "verb": verb, "resource": resource, "group": group}
    user = f"system:serviceaccount:{desk.namespace}:profrun"
    review = {"spec": {"user": user, "resourceAttributes": asked}}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    until(lambda: not desk.plane.api.post(path, review)["status"]["allowed"], "the change of the role")


def test_a_queue_without_kueue_is_refused_before_anything_is_made(desk: Desk) -> None:
    desk.spec("sleep 0", QUICK, queue="team-a")
    process = desk.start()
    assert process.wait(120) == 64, desk.said(process)
    assert "the queue 'team-a', and the cluster has no Kueue" in desk.said(process)
    assert not (desk.folder / "runs").exists() or not any((desk.folder / "runs").iterdir())
    assert "kueue.x-k8s.io" not in {group["name"] for group in desk.plane.api.get("/apis")["groups"]}
    assert desk.jobs() == []
