"""Give one trace file to Perfetto's page in the browser, by an HTTP server that ends after that.

https://ui.perfetto.dev fetches a trace from the address in its link. Its content security policy allows one
address of the user's machine for that: http://127.0.0.1:9001. The browser keeps the trace; nothing is
uploaded.
"""

from __future__ import annotations

import contextlib
import errno
import re
import secrets
import shutil
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from profrun.errors import UnavailableError

ORIGIN = "https://ui.perfetto.dev"
"""The only page that may fetch the file."""
ADDRESS = "127.0.0.1"
PORT = 9001
"""The port that Perfetto's page may fetch from."""
DROP = f"open {ORIGIN} and drop the file there: the browser reads it, nothing is uploaded"
"""How to look at a file without a server."""
STALLED_S = 600
"""A connection on which nothing moves for so long is closed."""


class FileServer(ThreadingHTTPServer):
    """Serves one file, on one path that cannot be guessed, to one page.

    Args:
        file: the trace.
        name: what Perfetto calls it.
        port: 0 chooses a free one, for tests.

    Attributes:
        fetched: set when the whole file has been sent.
        sending: connections on which the file is being sent.
    """

    daemon_threads = True

    def __init__(self, file: Path, name: str, port: int) -> None:
        self.file = file
        self.fetched = threading.Event()
        self.sending: set[int] = set()
        # Other users of this machine can reach the port, too: only who has the link knows the path.
        plain = re.sub(r"[^A-Za-z0-9._-]", "_", name)
        self.file_path = f"/{secrets.token_urlsafe(16)}/{plain}"
        super().__init__((ADDRESS, port), _Handler)

    @property
    def host(self) -> str:
        """``127.0.0.1:9001``."""
        return f"{ADDRESS}:{self.server_port}"

    @property
    def link(self) -> str:
        """The link that opens Perfetto with this file."""
        return f"{ORIGIN}/#!/?url=http://{self.host}{self.file_path}"

    def wait(self, timeout: float) -> bool:
        """Wait until the file has been fetched.

        Args:
            timeout: seconds; a fetch that has begun may take longer, because the page reads while it loads.

        Returns:
            False when nobody has fetched it.
        """
        while not self.fetched.wait(timeout):
            if not self.sending:
                return False
        return True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing about a broken connection: the page may ask again."""


class _Handler(BaseHTTPRequestHandler):
    server: FileServer
    timeout = STALLED_S

    def do_GET(self) -> None:
        """Send the file; afterwards the server may end."""
        if not self._allowed():
            return
        self.server.sending.add(id(self))
        try:
            with self.server.file.open("rb") as file:
                self._head(HTTPStatus.OK, length=self.server.file.stat().st_size)
                shutil.copyfileobj(file, self.wfile)
            self.server.fetched.set()
        finally:
            self.server.sending.discard(id(self))

    def do_OPTIONS(self) -> None:
        """Browsers ask before they let a public page fetch from the user's own machine."""
        if self._allowed():
            self._head(HTTPStatus.NO_CONTENT, length=0)

    def _allowed(self) -> bool:
        """Whether Perfetto's page asks for the file; answers with an error if not."""
        # Another name in `Host` means that somebody's name server points here.
        if self.headers.get("Origin") != ORIGIN or self.headers.get("Host") != self.server.host:
            self.send_error(HTTPStatus.FORBIDDEN, f"only {ORIGIN} may fetch this")
            return False
        if self.path != self.server.file_path:
            self.send_error(HTTPStatus.NOT_FOUND)
            return False
        return True

    def _head(self, status: HTTPStatus, *, length: int) -> None:
        self.send_response(status)
        self.send_header("Access-Control-Allow-Origin", ORIGIN)
        self.send_header("Access-Control-Allow-Methods", "GET")
        self.send_header("Access-Control-Allow-Private-Network", "true")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: the command says what matters."""


@contextlib.contextmanager
def serving(file: Path, name: str, port: int | None = None) -> Iterator[FileServer]:
    """Serve a file to Perfetto's page until the block ends.

    Args:
        file: the trace.
        name: what Perfetto calls it.
        port: where, instead of ``PORT``.

    Raises:
        UnavailableError: the port is taken.
    """
    port = PORT if port is None else port
    try:
        server = FileServer(file, name, port)
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        raise UnavailableError(
            f"port {port} of this machine is taken",
            why="another `profrun open` or trace_processor uses it, and Perfetto's page may use no other",
            fix=f"see who by `ss -ltnp 'sport = :{port}'`, or drop {file} on {ORIGIN}",
        ) from error
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
