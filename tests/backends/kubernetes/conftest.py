"""An API server for each test, and a kubeconfig that leads to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from profrun.backends.kubernetes.api import Api
from tests.backends.kubernetes.server import Server

CONFIG = """
apiVersion: v1
kind: Config
current-context: here
clusters: [{{name: here, cluster: {{server: "{url}"}}}}]
users: [{{name: me, user: {{token: secret-token}}}}]
contexts:
- {{name: here, context: {{cluster: here, user: me, namespace: team}}}}
- {{name: there, context: {{cluster: here, user: me}}}}
"""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The server; KUBECONFIG names it."""
    made = Server()
    file = tmp_path / "kubeconfig"
    file.write_text(CONFIG.format(url=made.url))
    # The client reads KUBECONFIG when it is imported.
    monkeypatch.setenv("KUBECONFIG", str(file))
    import kubernetes.config.kube_config

    monkeypatch.setattr(kubernetes.config.kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(file))
    yield made
    made.close()


@pytest.fixture
def pauses() -> list[float]:
    """Seconds that the client wanted to wait."""
    return []


@pytest.fixture
def connect(server: Server, pauses: list[float]) -> Callable[[str | None, str | None], Api]:
    """Connects without waiting."""
    return lambda context, namespace: Api(context, namespace, pause=pauses.append)


@pytest.fixture
def api(connect: Callable[[str | None, str | None], Api]) -> Api:
    return connect(None, None)
