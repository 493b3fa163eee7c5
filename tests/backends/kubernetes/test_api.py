"""The client against a server that refuses, breaks off, and comes back."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from profrun.backends.kubernetes.api import Api
from profrun.backends.kubernetes.ending import until
from profrun.backends.kubernetes.refusals import Gone, forbidden_pod
from profrun.errors import ProfrunError, UnavailableError, UsageError
from tests.backends.kubernetes.server import Fault, Server

SECRET: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "annotations": {}}}
POD_SECURITY = (
    'pods "x-0" is forbidden: violates PodSecurity "baseline:latest": non-default capabilities (container '
    '"trial" must not include "PERFMON" in securityContext.capabilities.add)'
)


def pod(name: str, phase: str = "Running") -> dict[str, Any]:
    """A pod as the server keeps it."""
    return {"metadata": {"name": name, "labels": {"a": "b"}}, "status": {"phase": phase}}


@pytest.fixture
def api(connect: Callable[[str | None, str | None], Api]) -> Api:
    return connect(None, None)


def test_context_and_namespace_come_from_the_kubeconfig(server: Server) -> None:
    assert Api().namespace == "team"
    assert Api("there").namespace == "default"
    assert Api("there", "mine").namespace == "mine"
    with pytest.raises(UnavailableError, match="no context 'nowhere'; it has here, there"):
        Api("nowhere")


def test_without_the_client_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: Any, **more: Any) -> Any:
        if name.split(".")[0] == "kubernetes":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(UnavailableError, match=r"pip install 'profrun\[k8s\]'"):
        Api()


def test_the_backend_is_there_without_the_client() -> None:
    import subprocess

    code = (
        "import sys; from profrun.backends.base import load; load('kubernetes');"
        "print(any(name.split('.')[0] in ('kubernetes', 'urllib3') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_no_configuration_is_said(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", "/nowhere")
    with pytest.raises(UnavailableError, match=r"no Kubernetes cluster is configured here.*set KUBECONFIG"):
        Api()


def test_inside_a_cluster_the_pods_own_account_is_used(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("token", "ca.crt", "namespace"):
        (tmp_path / name).write_text("ml\n")
    inside = "kubernetes.config.incluster_config"
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", "/nowhere")
    monkeypatch.setattr(f"{inside}.SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(f"{inside}.SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setattr("profrun.backends.kubernetes.api._POD_NAMESPACE", tmp_path / "namespace")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    api = Api()
    assert api.namespace == "ml"
    assert api._client.configuration.host == "https://10.0.0.1:443"


def test_the_token_is_sent(server: Server, api: Api) -> None:
    api.jobs("a=b")
    assert server.tokens == ["Bearer secret-token"]


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_busy_server_is_asked_again(server: Server, api: Api, pauses: list[float], status: int) -> None:
    server.faults = [Fault("GET", "/jobs", status)] * 3
    assert api.jobs("a=b") == []
    assert pauses == [0.5, 1.0, 2.0]


def test_the_server_may_say_how_long_to_wait(server: Server, api: Api, pauses: list[float]) -> None:
    server.faults = [Fault("GET", "/jobs", 429, headers={"Retry-After": "7"})]
    assert api.jobs("a=b") == []
    assert pauses == [7.0]


def test_a_server_that_stays_away_is_an_error_with_words(
    server: Server, api: Api, pauses: list[float]
) -> None:
    server.faults = [Fault("GET", "/jobs", "drop")] * 4
    assert api.jobs("a=b") == []
    assert len(pauses) == 4
    server.faults = [Fault("GET", "/jobs", "drop")] * 5
    with pytest.raises(UnavailableError, match="the Kubernetes API server cannot be reached"):
        api.jobs("a=b")


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


def test_deleting_what_is_gone_is_no_error(server: Server, api: Api) -> None:
    api.delete_job("none")
    api.delete_pod("none", 0)


def test_a_watch_goes_on_after_it_was_dropped(server: Server, api: Api) -> None:
    server.put("pods", pod("one"), "ADDED")
    server.faults = [Fault("GET", "watch=true", "drop"), Fault("GET", "watch=true", 500)]
    seen: list[set[str]] = []

    def done(pods: Any) -> bool:
        if not seen:
            server.put("pods", pod("two"), "ADDED")
        seen.append(set(pods))
        return "two" in pods

    assert until(api, "a=b", done, 10)
    assert server.asked("GET", "watch=true") == 3
    assert server.asked("GET", r"/pods\?labelSelector=a%3Db$") == 1  # not listed again


def test_a_stream_that_breaks_off_goes_on_from_the_last_version(server: Server, api: Api) -> None:
    listed: list[dict[str, Any]] = []

    def done(pods: Any) -> bool:
        if not listed:
            listed.append({})
            server.put("pods", pod("one"), "ADDED")
            server.put("pods", pod("two"), "ADDED")
        return "two" in pods

    server.faults = [Fault("GET", "watch=true", "cut")]
    assert until(api, "a=b", done, 10)
    first, second = [path for method, path, _ in server.requests if "watch=true" in path]
    assert "resourceVersion=100&" in first
    assert "resourceVersion=101&" in second


def test_a_watch_that_is_too_old_starts_from_a_list(server: Server, api: Api) -> None:
    def done(pods: Any) -> bool:
        if server.oldest:
            return True
        server.oldest = 200
        return False

    server.oldest = 200
    with pytest.raises(Gone):
        list(api.watch_pods("a=b", "1", 1))
    server.oldest = 0
    assert until(api, "a=b", done, 10)
    assert server.asked("GET", r"/pods\?labelSelector=a%3Db$") == 2


def test_a_watch_answered_with_410_starts_from_a_list(server: Server, api: Api) -> None:
    server.faults = [Fault("GET", "watch=true", 410, {"message": "too old resource version"})]
    calls: list[int] = []

    def done(pods: Any) -> bool:
        calls.append(1)
        return len(calls) == 2

    assert until(api, "a=b", done, 10)
    assert server.asked("GET", r"/pods\?labelSelector=a%3Db$") == 2


def test_waiting_has_an_end(server: Server, api: Api) -> None:
    assert not until(api, "a=b", lambda pods: False, 0.3)


def test_a_pod_that_policy_forbids_is_told_from_one_that_must_wait() -> None:
    assert "leave those out" in (forbidden_pod(POD_SECURITY) or "")
    assert forbidden_pod('pods "x" is forbidden: exceeded quota: gpus, requested: 8') is None
    assert "cannot make the pod" in (forbidden_pod('pods "x" is forbidden: no PriorityClass high') or "")
