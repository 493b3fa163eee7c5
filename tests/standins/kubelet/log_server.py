"""The kubelet's endpoint for logs: ``/containerLogs/<namespace>/<pod>/<container>`` over TLS.

The API server asks it when somebody reads ``pods/log``. It takes any certificate.
"""

from __future__ import annotations

import contextlib
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit


class LogServer:
    """Answers with what ``docker logs`` says.

    Args:
        folder: where its certificate is made.
    """

    def __init__(self, folder: Path) -> None:
        self.containers: dict[tuple[str, str], str] = {}
        """(namespace, pod) -> docker container."""
        key, certificate = folder / "kubelet.key", folder / "kubelet.crt"
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=kubelet"),
                *("-days", "2", "-keyout", str(key), "-out", str(certificate)),
            ],
            check=True,
            capture_output=True,
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        containers = self.containers

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                _answer(self, containers)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Answer nothing any more."""
        self._server.shutdown()
        self._server.server_close()


def _answer(request: BaseHTTPRequestHandler, containers: dict[tuple[str, str], str]) -> None:
    address = urlsplit(request.path)
    query = {key: values[0] for key, values in parse_qs(address.query).items()}
    _, _, namespace, pod, *_ = [*address.path.split("/"), "", "", ""]
    name = containers.get((namespace, pod))
    if name is None:
        request.send_error(404)
        return
    request.send_response(200)
    request.send_header("Content-Type", "text/plain")
    request.end_headers()
    process = subprocess.Popen(
        ["docker", "logs", *_flags(query), name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    with contextlib.suppress(OSError), process.stdout as lines:
        for line in lines:
            request.wfile.write(line)
            request.wfile.flush()
    process.kill()
    process.wait()


def _flags(query: dict[str, str]) -> list[str]:
    """docker's words for the options of a pod's log."""
    flags = [f"--{key}" for key in ("follow", "timestamps") if query.get(key) == "true"]
    flags += ["--tail", query["tailLines"]] if "tailLines" in query else []
    return flags + (["--since", query["sinceTime"]] if "sinceTime" in query else [])
