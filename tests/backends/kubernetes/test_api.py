"""The client against a server that refuses, breaks off, and comes back."""

from __future__ import annotations

import builtins
import sys
from pathlib import Path
from typing import Any

import pytest

from profrun.backends.kubernetes.api import Api
from profrun.errors import UnavailableError
from tests.backends.kubernetes.server import Fault, Server


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


def test_deleting_what_is_gone_is_no_error(server: Server, api: Api) -> None:
    api.delete_job("none")
    api.delete_pod("none", 0)
