"""A small client of a Kubernetes API server, for tests that act as its administrator or as a kubelet.

Objects are the dicts of their JSON. It is not the client that profrun uses, so what profrun sends is not
judged by the code that sent it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3

Object = dict[str, Any]
CORE, BATCH = "/api/v1", "/apis/batch/v1"
MERGE = "application/strategic-merge-patch+json"


class ApiError(Exception):
    """The server refused.

    Attributes:
        status: the HTTP status.
    """

    def __init__(self, status: int, said: str) -> None:
        super().__init__(f"{status}: {said}")
        self.status = status


@dataclass(frozen=True)
class KubeApi:
    """One account of one server.

    Attributes:
        server: e.g. https://127.0.0.1:16443.
        authority: file of the certificate that the server is trusted by.
        token: of the account.
    """

    server: str
    authority: Path
    token: str

    def call(
        self, method: str, path: str, body: Object | None = None, kind: str = "application/json"
    ) -> Object:
        """One request.

        Raises:
            ApiError: the server answers with 400 or more.
        """
        answer = self._send(method, path, body, kind, stream=False)
        value = json.loads(answer.data)
        if answer.status >= 400:
            raise ApiError(answer.status, str(value.get("message")))
        found: Object = value
        return found

    def get(self, path: str) -> Object:
        """An object, or a list of objects."""
        return self.call("GET", path)

    def post(self, path: str, body: Object) -> Object:
        """Create an object."""
        return self.call("POST", path, body)

    def patch(self, path: str, body: Object) -> Object:
        """Merge into an object: lists with a merge key (conditions, taints) by that key."""
        return self.call("PATCH", path, body, MERGE)

    def delete(self, path: str, grace: int | None = None) -> None:
        """Delete an object, with what it owns; one that is not there is no error."""
        body: Object = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        try:
            self.call("DELETE", path, body)
        except ApiError as error:
            if error.status != 404:
                raise

    def items(self, path: str) -> list[Object]:
        """The objects of a list."""
        return list(self.get(path)["items"])

    def watch(self, path: str, version: str, seconds: int) -> Iterator[tuple[str, Object]]:
        """Changes since a version, for so many seconds: (ADDED | MODIFIED | DELETED, object)."""
        joint = "&" if "?" in path else "?"
        query = f"{joint}watch=true&resourceVersion={version}&timeoutSeconds={seconds}"
        answer = self._send("GET", path + query, None, "", stream=True)
        rest = b""
        try:
            for chunk in answer.stream(65536):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        return
                    yield event["type"], event["object"]
        finally:
            answer.close()

    def kubeconfig(self, namespace: str) -> str:
        """A kubeconfig of this account; JSON is YAML, too."""
        authority = base64.b64encode(self.authority.read_bytes()).decode()
        context = {"cluster": "test", "user": "account", "namespace": namespace}
        cluster = {"server": self.server, "certificate-authority-data": authority}
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "test", "cluster": cluster}],
                "users": [{"name": "account", "user": {"token": self.token}}],
                "contexts": [{"name": "test", "context": context}],
                "current-context": "test",
            }
        )

    def _send(
        self, method: str, path: str, body: Object | None, kind: str, *, stream: bool
    ) -> urllib3.BaseHTTPResponse:
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = kind
        return _pool(str(self.authority)).request(
            method,
            self.server + path,
            body=None if body is None else json.dumps(body),
            headers=headers,
            preload_content=not stream,
            timeout=urllib3.Timeout(connect=10.0, read=90.0),
            retries=urllib3.Retry(5, backoff_factor=0.2, status=0, redirect=0),
        )


_POOLS: dict[str, urllib3.PoolManager] = {}


def _pool(authority: str) -> urllib3.PoolManager:
    """Connections that are kept open: one set for each server."""
    if authority not in _POOLS:
        _POOLS[authority] = urllib3.PoolManager(ca_certs=authority, maxsize=32)
    return _POOLS[authority]
