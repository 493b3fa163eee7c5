"""What the API server's refusals mean to a person."""

from __future__ import annotations

from typing import Any

import pytest

from profrun.backends.kubernetes.api import Api
from profrun.backends.kubernetes.refusals import awaited_pod, forbidden_pod
from profrun.errors import ProfrunError, UnavailableError, UsageError
from tests.backends.kubernetes.server import Fault, Server

SECRET: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "annotations": {}}}


POD_SECURITY = (
    'pods "x-0" is forbidden: violates PodSecurity "baseline:latest": non-default capabilities (container '
    '"trial" must not include "PERFMON" in securityContext.capabilities.add)'
)


@pytest.mark.parametrize(
    ("status", "message", "kind", "said"),
    [
        (401, "Unauthorized", UnavailableError, "does not know you: Unauthorized; log in"),
        (403, 'jobs is forbidden: User "me" cannot create', UnavailableError, "your account may not do this"),
        (403, POD_SECURITY, UnavailableError, "Pod Security does not allow the pod.*leave those out, or use"),
        (403, "exceeded quota: gpus", UnavailableError, "the namespace's quota does not allow it"),
        (404, 'namespaces "x" not found', UsageError, "does not have it.*check cluster.namespace"),
        (422, "spec.x: Invalid value", UsageError, "refused the job: spec.x: Invalid value; check"),
        (400, "strict decoding error", UsageError, "refused the job: strict decoding error"),
        (418, "teapot", UnavailableError, "answered 418 to POST"),
    ],
)
def test_refusals_in_words(
    server: Server, api: Api, status: int, message: str, kind: type[ProfrunError], said: str
) -> None:
    server.faults = [Fault("POST", "/secrets", status, {"message": message})]
    with pytest.raises(kind, match=said):
        api.create(SECRET)


def test_what_the_schema_forbids_the_server_refuses(server: Server, api: Api) -> None:
    with pytest.raises(UsageError, match="refused the job"):
        api.create({**SECRET, "typo": 1})


def test_a_create_whose_answer_was_lost_is_not_repeated(server: Server, api: Api) -> None:
    mine = {**SECRET, "metadata": {"name": "s", "annotations": {"profrun/path": "/runs/a"}}}
    server.put("secrets", {**mine, "metadata": dict(mine["metadata"])}, "ADDED")
    assert api.create(mine)["metadata"]["uid"] == "uid-secrets-s"
    with pytest.raises(UsageError, match="an object of this name is there and is not this run's"):
        api.create({**mine, "metadata": {"name": "s", "annotations": {"profrun/path": "/runs/b"}}})


def test_a_pod_that_policy_forbids_is_told_from_one_that_must_wait() -> None:
    assert "leave those out" in (forbidden_pod(POD_SECURITY) or "")
    assert forbidden_pod('pods "x" is forbidden: exceeded quota: gpus, requested: 8') is None
    assert "cannot make the pod" in (forbidden_pod('pods "x" is forbidden: no PriorityClass high') or "")


def test_the_tries_to_make_a_pod_that_must_wait_have_one_reason() -> None:
    said = 'Error creating: pods "job-0-{}" is forbidden: exceeded quota: full, used: pods=0, limited: pods=0'
    (reason,) = {awaited_pod(said.format(end)) for end in ("d6kww", "5f9wg")}
    assert reason.startswith("the pod cannot be made yet: Error creating: the pod is forbidden: exceeded")
