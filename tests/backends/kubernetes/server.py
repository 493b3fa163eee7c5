"""A Kubernetes API server on loopback: objects, watches, logs, and faults on order. No pod runs by itself."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import kubernetes_validate

NAMESPACED = re.compile(
    r"/(?:api/v1|apis/batch/v1|apis/networking\.k8s\.io/v1)/namespaces/([^/]+)/([^/]+)(?:/([^/]+))?(?:/(log))?$"
)


@dataclass
class Fault:
    """Something that goes wrong once: for requests of this method whose path matches.

    Attributes:
        act: status (an answer), ``drop`` (the connection is cut), ``cut`` (a stream breaks off half way).
    """

    method: str
    path: str
    act: int | str
    body: dict[str, Any] | str = ""
    headers: dict[str, str] = field(default_factory=dict)


class Server:
    """The API server's state; ``url`` is where it listens."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.logs: dict[str, list[str]] = {}
        self.faults: list[Fault] = []
        self.requests: list[tuple[str, str, Any]] = []
        self.changed = threading.Condition(threading.RLock())
        self.history: list[tuple[int, str, dict[str, Any]]] = []
        self.version = 100
        self.oldest = 0
        self.on_delete: Callable[[str, dict[str, Any], dict[str, Any]], bool] | None = None
        self.tokens: list[str] = []
        handler = type("Handler", (_Handler,), {"state": self})
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        """Address of the server."""
        return f"http://127.0.0.1:{self.http.server_address[1]}"

    def close(self) -> None:
        """Stop listening."""
        self.http.shutdown()
        self.http.server_close()

    def put(self, kind: str, value: dict[str, Any], event: str = "MODIFIED") -> dict[str, Any]:
        """Store an object (``jobs``, ``pods``, ...) and tell the watches."""
        with self.changed:
            self.version += 1
            value["metadata"]["resourceVersion"] = str(self.version)
            name = value["metadata"]["name"]
            if event == "DELETED":
                self.objects.pop((kind, name), None)
            else:
                value["metadata"].setdefault("uid", f"uid-{kind}-{name}")
                self.objects[kind, name] = value
            if kind == "pods":
                self.history.append((self.version, event, json.loads(json.dumps(value))))
            self.changed.notify_all()
            return value

    def of(self, kind: str) -> list[dict[str, Any]]:
        """All objects of a kind."""
        with self.changed:
            return [value for (have, _), value in self.objects.items() if have == kind]

    def fault(self, method: str, path: str) -> Fault | None:
        """The next fault for this request, taken from the list."""
        with self.changed:
            for fault in self.faults:
                if fault.method == method and re.search(fault.path, path):
                    self.faults.remove(fault)
                    return fault
        return None

    def asked(self, method: str, path: str) -> int:
        """How many requests like this came."""
        return sum(have == method and bool(re.search(path, where)) for have, where, _ in self.requests)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: Server

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""

    def do_GET(self) -> None:
        """Get, list, watch, log."""
        self._any("GET")

    def do_POST(self) -> None:
        """Create."""
        self._any("POST")

    def do_DELETE(self) -> None:
        """Delete."""
        self._any("DELETE")

    def _any(self, method: str) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        self.state.requests.append((method, self.path, body))
        self.state.tokens.append(self.headers.get("Authorization") or "")
        fault = self.state.fault(method, self.path)
        if fault is not None and fault.act == "drop":
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        if fault is not None and isinstance(fault.act, int):
            self._answer(fault.act, fault.body or {"message": f"told to say {fault.act}"}, fault.headers)
            return
        parts = urlsplit(self.path)
        match = NAMESPACED.match(parts.path)
        if match is None:
            self._answer(404, {"message": f"no such path {parts.path}"})
            return
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        _, kind, name, log = match.groups()
        if log:
            self._stream(iter(self.state.logs.get(name, ())), query, fault)
        elif method == "POST":
            self._create(kind, body or {})
        elif method == "DELETE":
            self._delete(kind, name, body or {})
        elif name:
            found = self.state.objects.get((kind, name))
            self._answer(200 if found else 404, found or {"message": f'{kind} "{name}" not found'})
        elif query.get("watch"):
            self._watch(query, fault)
        else:
            self._list(kind, query)

    def _create(self, kind: str, body: dict[str, Any]) -> None:
        if (kind, body["metadata"]["name"]) in self.state.objects:
            self._answer(409, {"message": f'{kind} "{body["metadata"]["name"]}" already exists'})
            return
        try:
            kubernetes_validate.validate(body, "1.37", strict=True)
        except kubernetes_validate.ValidationError as error:
            self._answer(422, {"message": str(error)[:500]})
            return
        self._answer(201, self.state.put(kind, body, "ADDED"))

    def _delete(self, kind: str, name: str, body: dict[str, Any]) -> None:
        found = self.state.objects.get((kind, name))
        if found is None:
            self._answer(404, {"message": "not found"})
            return
        if self.state.on_delete is None or not self.state.on_delete(kind, found, body):
            self.state.put(kind, found, "DELETED")
        self._answer(200, {"kind": "Status", "status": "Success"})

    def _list(self, kind: str, query: dict[str, str]) -> None:
        items = self.state.of(kind)
        if selector := query.get("labelSelector"):
            key, value = selector.split("=")
            items = [item for item in items if (item["metadata"].get("labels") or {}).get(key) == value]
        self._answer(200, {"metadata": {"resourceVersion": str(self.state.version)}, "items": items})

    def _watch(self, query: dict[str, str], fault: Fault | None) -> None:
        since = int(query["resourceVersion"] or 0)
        if since < self.state.oldest:
            gone = {"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "too old"}}
            self._stream(iter([json.dumps(gone)]), {}, None)
            return
        self._stream(self._events(since, float(query["timeoutSeconds"])), {}, fault)

    def _events(self, since: int, seconds: float) -> Iterator[str]:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with self.state.changed:
                fresh = [entry for entry in self.state.history if entry[0] > since]
                if not fresh:
                    self.state.changed.wait(0.1)
                    continue
            for version, kind, value in fresh:
                since = version
                yield json.dumps({"type": kind, "object": value})

    def _stream(self, lines: Iterator[str], query: dict[str, str], fault: Fault | None) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        kept = (
            [line for line in lines if not query.get("sinceTime") or line >= query["sinceTime"]]
            if query
            else lines
        )
        if query.get("tailLines") and isinstance(kept, list):
            kept = kept[-int(query["tailLines"]) :]
        try:
            for number, line in enumerate(kept):
                if fault is not None and fault.act == "cut" and number:
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                data = line.encode() + b"\n"
                self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True

    def _answer(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        data = value.encode() if isinstance(value, str) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)
