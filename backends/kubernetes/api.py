"""The Kubernetes API as JSON: the only place that talks to it.

The official client brings what is hard (kubeconfig, exec plugins, certificates, proxies); its models are not
used, because they drop or refuse what they do not know. Paths: kubernetes.io/docs/reference/kubernetes-api.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from profrun.backends.kubernetes.objects import TRIAL, ApiObject, Manifest
from profrun.backends.kubernetes.refusals import Gone, http_status, refused, unreachable
from profrun.errors import ProfrunError, UnavailableError

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

CONNECT_S = 10.0
READ_S = 60.0
AGAIN = frozenset({429, 500, 502, 503, 504})
"""Answers after which the same request may work a little later."""
TRIES = 5
_KINDS = {
    "Job": ("/apis/batch/v1", "jobs"),
    "Service": ("/api/v1", "services"),
    "Secret": ("/api/v1", "secrets"),
    "NetworkPolicy": ("/apis/networking.k8s.io/v1", "networkpolicies"),
}
_POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class Api:
    """One cluster and namespace.

    Args:
        context: of the kubeconfig; None: the current one, or the pod's own account inside a cluster.
        namespace: None: the context's.
        pause: waits, seconds; for tests.

    Raises:
        UnavailableError: the client is not installed, or there is no configuration for a cluster.
    """

    def __init__(
        self,
        context: str | None = None,
        namespace: str | None = None,
        *,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self._client, own = _connect(context)
        self.namespace = namespace or own
        self.context = context
        self._pause = pause

    def create(self, manifest: ApiObject) -> Manifest:
        """Create an object, or return the one that an earlier attempt of the same run has made.

        A create may have worked although its answer was lost, so a repeated one may meet its own result.
        """
        path = self._path(manifest["kind"])
        try:
            return self._json("POST", path, body={**manifest})
        except ProfrunError as error:
            if http_status(error) != 409:
                raise
            name = str(manifest["metadata"]["name"])
            there = self._json("GET", f"{path}/{name}")
            if (there["metadata"].get("annotations") or {}).get("profrun/path") != (
                manifest["metadata"].get("annotations") or {}
            ).get("profrun/path"):
                raise
            return there

    def claim(self, name: str) -> Manifest:
        """A persistent volume claim."""
        return self._json("GET", f"/api/v1/namespaces/{self.namespace}/persistentvolumeclaims/{name}")

    def node(self, name: str) -> Manifest | None:
        """A node; None when there is none of this name."""
        try:
            return self._json("GET", f"/api/v1/nodes/{name}")
        except ProfrunError as error:
            if http_status(error) == 404:
                return None
            raise

    def local_queue(self, name: str) -> Manifest | None:
        """A LocalQueue of Kueue; None where the cluster has no Kueue. Which version it speaks, it says."""
        group = "/apis/kueue.x-k8s.io"
        try:
            version = self._json("GET", group)["preferredVersion"]["version"]
        except ProfrunError as error:
            if http_status(error) == 404:
                return None
            raise
        return self._json("GET", f"{group}/{version}/namespaces/{self.namespace}/localqueues/{name}")

    def jobs(self, selector: str) -> list[Manifest]:
        """Jobs with these labels, in one question."""
        found: list[Manifest] = self._json("GET", self._path("Job"), {"labelSelector": selector})["items"]
        return found

    def pods(self, selector: str) -> tuple[list[Manifest], str]:
        """Pods with these labels, in one question, and the version to watch from."""
        told = self._json("GET", self._pods(), {"labelSelector": selector})
        return told["items"], str(told["metadata"].get("resourceVersion") or "")

    def refusals(self) -> dict[str, str]:
        """Job name -> why its pods could not be made, the newest word of each."""
        path = f"/api/v1/namespaces/{self.namespace}/events"
        query = {"fieldSelector": "reason=FailedCreate,involvedObject.kind=Job"}
        told = sorted(self._json("GET", path, query)["items"], key=_when)
        return {event["involvedObject"]["name"]: str(event.get("message") or "") for event in told}

    def delete_job(self, name: str) -> None:
        """Delete a Job and, behind it, its pods, with the grace that they carry; none is no error."""
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        self._gone("DELETE", f"{self._path('Job')}/{name}", body)

    def delete_pod(self, name: str, grace_s: int) -> None:
        """SIGTERM to the pod's containers, SIGKILL ``grace_s`` later; none is no error."""
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": grace_s}
        self._gone("DELETE", f"{self._pods()}/{name}", body)

    def log(
        self, pod: str, *, follow: bool = False, tail: int | None = None, since: str = ""
    ) -> Iterator[str]:
        """Lines of a pod's log, each behind its time stamp (RFC 3339) and a blank.

        Args:
            since: from this time stamp's second on.
        """
        query: dict[str, object] = {"container": TRIAL, "timestamps": "true"}
        query |= {"follow": "true"} if follow else {}
        query |= {"tailLines": tail} if tail is not None else {}
        query |= {"sinceTime": since} if since else {}
        answer = self._send("GET", f"{self._pods()}/{pod}/log", query, read_s=None if follow else READ_S)
        yield from _lines(answer)

    def watch_pods(self, selector: str, version: str, seconds: int) -> Iterator[tuple[str, Manifest]]:
        """Changes of these pods since ``version``: (ADDED | MODIFIED | DELETED | BOOKMARK, pod).

        Ends when the server says so, at the latest after ``seconds``.

        Raises:
            Gone: the version is too old: list again.
            UnavailableError: the connection broke: watch again from the last version that was seen.
        """
        query = {
            "labelSelector": selector,
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": seconds,
        }
        for line in _lines(self._send("GET", self._pods(), query, read_s=seconds + 5.0)):
            try:
                event = json.loads(line)
            except ValueError:
                raise unreachable("the watch broke off in the middle of a line") from None
            if event["type"] == "ERROR":
                told = event["object"]
                raise refused(int(told.get("code") or 500), told, "watch pods")
            yield event["type"], event["object"]

    def _path(self, kind: str) -> str:
        group, plural = _KINDS[kind]
        return f"{group}/namespaces/{self.namespace}/{plural}"

    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def _gone(self, method: str, path: str, body: ApiObject) -> None:
        try:
            self._json(method, path, body=body)
        except ProfrunError as error:
            if http_status(error) != 404:
                raise

    def _json(
        self, method: str, path: str, query: Mapping[str, object] | None = None, body: ApiObject | None = None
    ) -> Manifest:
        answer = self._send(method, path, query, body)
        try:
            value = json.loads(answer.read())
        except _broken() as error:
            raise unreachable(f"its answer broke off ({error})") from None
        finally:
            answer.release_conn()
        if not isinstance(value, dict):
            raise unreachable("it answered something else than an object")
        return value

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, object] | None = None,
        body: ApiObject | None = None,
        *,
        read_s: float | None = READ_S,
    ) -> BaseHTTPResponse:
        """One request, repeated with growing pauses while the server is busy or cannot be reached.

        Raises:
            Gone, UsageError, UnavailableError: as ``refusals.refused`` says.
        """
        pause = 0.5
        for left in range(TRIES - 1, -1, -1):
            try:
                answer = self._once(method, path, query, body, read_s)
            except _broken() as error:
                if not left:
                    raise unreachable(str(error)) from None
                self._pause(pause)
            else:
                if answer.status < 400:
                    return answer
                told = _told(answer)
                if answer.status not in AGAIN or not left:
                    raise refused(answer.status, told, f"{method} {path}")
                self._pause(max(pause, _retry_after(answer)))
            pause *= 2
        raise AssertionError("unreachable")

    def _once(
        self,
        method: str,
        path: str,
        query: Mapping[str, object] | None,
        body: ApiObject | None,
        read_s: float | None,
    ) -> BaseHTTPResponse:
        import urllib3

        config = self._client.configuration
        headers = {"Accept": "application/json", "User-Agent": "profrun"}
        for setting in config.auth_settings().values():  # asks exec plugins for a fresh token
            if setting["in"] == "header" and setting["value"]:
                headers[setting["key"]] = setting["value"]
        if body is not None:
            headers["Content-Type"] = "application/json"
        answer: BaseHTTPResponse = self._client.rest_client.pool_manager.request(
            method,
            config.host.rstrip("/") + path + (f"?{urlencode(query)}" if query else ""),
            body=None if body is None else json.dumps(body),
            headers=headers,
            preload_content=False,
            retries=False,
            timeout=urllib3.Timeout(connect=CONNECT_S, read=read_s),
        )
        return answer


def _connect(context: str | None) -> tuple[Any, str]:
    """A client and its default namespace."""
    try:
        from kubernetes import client, config
    except ImportError:
        raise UnavailableError(
            "backend kubernetes needs the Kubernetes client",
            why="the Python package kubernetes is not installed",
            fix="pip install 'profrun[k8s]'",
        ) from None
    try:
        contexts, active = config.list_kube_config_contexts()
    except config.ConfigException as error:
        return _in_cluster(context, client, config, str(error))
    names = {entry["name"]: entry for entry in contexts}
    if context is not None and context not in names:
        raise UnavailableError(
            f"the kubeconfig has no context {context!r}", fix=f"it has {', '.join(sorted(names)) or 'none'}"
        )
    chosen = names[context] if context is not None else active
    try:
        made = config.new_client_from_config(context=context)
    except (config.ConfigException, OSError, ValueError) as error:
        raise UnavailableError("the kubeconfig cannot be used", why=str(error)) from None
    return made, str(chosen["context"].get("namespace") or "default")


def _in_cluster(context: str | None, client: Any, config: Any, why: str) -> tuple[Any, str]:
    """The account of the pod we run in, if we do."""
    settings = client.Configuration()
    try:
        if context is not None:
            raise config.ConfigException(why)
        config.load_incluster_config(client_configuration=settings)
        return client.ApiClient(settings), _POD_NAMESPACE.read_text().strip()
    except (config.ConfigException, OSError):
        raise UnavailableError(
            "no Kubernetes cluster is configured here", why=why, fix="set KUBECONFIG or write ~/.kube/config"
        ) from None


def _broken() -> tuple[type[BaseException], ...]:
    """What a connection that does not work raises, or an answer that is cut short (ValueError: its JSON)."""
    from urllib3.exceptions import HTTPError

    return (HTTPError, OSError, HTTPException, ValueError)


def _lines(answer: BaseHTTPResponse) -> Iterator[str]:
    """Whole lines of an answer as they come; an unfinished last one too, when the server ended it well.

    Raises:
        UnavailableError: the connection broke.
    """
    rest = b""
    try:
        for chunk in answer.stream(65536, decode_content=True):
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                yield line.decode(errors="replace")
        if rest:
            yield rest.decode(errors="replace")
    except _broken() as error:
        raise unreachable(f"the stream broke off ({error})") from None
    finally:
        answer.close()


def _told(answer: BaseHTTPResponse) -> Manifest:
    """The Status object that the server sends with a refusal, or its text as one."""
    data = b""
    try:
        data = answer.read()
        value = json.loads(data)
    except _broken():
        value = None
    finally:
        answer.release_conn()
    return value if isinstance(value, dict) else {"message": data.decode(errors="replace")[:300]}


def _when(event: ApiObject) -> str:
    """When an event was last seen; which field says so depends on who wrote it."""
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")


def _retry_after(answer: BaseHTTPResponse) -> float:
    """Seconds that the server asks to wait, at most 30."""
    told = str(answer.headers.get("Retry-After") or "")
    return min(float(told), 30.0) if told.isdigit() else 0.0


__all__ = ["Api", "Gone"]
