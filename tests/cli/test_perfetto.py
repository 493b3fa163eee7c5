"""The server behind ``profrun open TRACE``: one file, one path, one page, and it ends after one fetch."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from profrun.cli.perfetto import ORIGIN, FileServer, serving
from profrun.errors import UnavailableError

CONTENT = bytes(range(256)) * 4096  # 1 MiB


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "t.pftrace").write_bytes(CONTENT)
    (tmp_path / "secret").write_text("not for anybody")
    return tmp_path / "t.pftrace"


@pytest.fixture
def server(file: Path) -> Iterator[FileServer]:
    with serving(file, "a b/ü.pftrace", port=0) as server:
        yield server


def ask(
    server: FileServer,
    path: str | None = None,
    *,
    origin: str | None = ORIGIN,
    method: str = "GET",
    **headers: str,
) -> tuple[http.client.HTTPResponse, bytes]:
    """One request, as a browser makes it."""
    client = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    client.request(
        method, path or server.file_path, headers={**({"Origin": origin} if origin else {}), **headers}
    )
    answer = client.getresponse()
    return answer, answer.read()


def test_perfettos_page_gets_the_file_and_the_wait_ends(server: FileServer) -> None:
    assert (
        server.link
        == f"https://ui.perfetto.dev/#!/?url=http://127.0.0.1:{server.server_port}{server.file_path}"
    )
    assert server.file_path.endswith("/a_b__.pftrace")
    assert not server.wait(0)
    answer, body = ask(server)
    assert (answer.status, body == CONTENT) == (200, True)
    assert answer.headers["Access-Control-Allow-Origin"] == "https://ui.perfetto.dev"
    assert answer.headers["Content-Length"] == str(len(CONTENT))
    assert server.wait(60)


@pytest.mark.parametrize(
    "origin", [None, "null", "https://evil.example", "http://ui.perfetto.dev", ORIGIN + ".evil.example"]
)
def test_another_page_gets_nothing(server: FileServer, origin: str | None) -> None:
    for method in ("GET", "OPTIONS"):
        answer, body = ask(server, origin=origin, method=method)
        assert answer.status == 403
        assert "Access-Control-Allow-Origin" not in answer.headers
        assert CONTENT[:64] not in body
    assert not server.wait(0)


def test_another_host_name_gets_nothing(server: FileServer) -> None:
    """A page whose own name was made to point to this machine."""
    answer, _ = ask(server, Host=f"evil.example:{server.server_port}")
    assert answer.status == 403


@pytest.mark.parametrize(
    "path", ["/", "/secret", "/../secret", "/t.pftrace", "{0}/../secret", "{0}?x", "/x{0}"]
)
def test_another_path_is_not_there(server: FileServer, path: str) -> None:
    answer, body = ask(server, path.format(server.file_path))
    assert answer.status == 404
    assert b"anybody" not in body
    assert not server.wait(0)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD"])
def test_only_get_is_answered(server: FileServer, method: str) -> None:
    assert ask(server, method=method)[0].status == 501
    assert not server.wait(0)


def test_a_browser_may_ask_first_and_this_does_not_end_the_wait(server: FileServer) -> None:
    """Chromium asks before a public page may fetch from the user's own machine."""
    answer, _ = ask(server, method="OPTIONS", **{"Access-Control-Request-Private-Network": "true"})
    assert answer.status == 204
    assert answer.headers["Access-Control-Allow-Origin"] == ORIGIN
    assert answer.headers["Access-Control-Allow-Private-Network"] == "true"
    assert not server.wait(0)


def begin_fetch(server: FileServer) -> socket.socket:
    """A fetch of which only the first bytes have been read."""
    client = socket.create_connection(("127.0.0.1", server.server_port))
    request = f"GET {server.file_path} HTTP/1.0\r\nHost: {server.host}\r\nOrigin: {ORIGIN}\r\n\r\n"
    client.sendall(request.encode())
    assert client.recv(12) == b"HTTP/1.0 200"
    return client


def test_a_fetch_that_breaks_may_be_repeated(file: Path) -> None:
    file.write_bytes(CONTENT * 32)  # more than sockets buffer
    with serving(file, "t", port=0) as server:
        begin_fetch(server).close()
        assert not server.fetched.is_set()
        _, body = ask(server)
        assert len(body) == 32 * len(CONTENT)
        assert server.wait(60)


def test_a_slow_fetch_is_waited_for(file: Path) -> None:
    file.write_bytes(CONTENT * 32)
    with serving(file, "t", port=0) as server:
        client = begin_fetch(server)
        reader = threading.Timer(0.5, lambda: [None for _ in iter(lambda: client.recv(1 << 20), b"")])
        reader.start()
        assert server.wait(0.05)
        reader.join()
        client.close()


def test_the_port_is_free_afterwards_and_taken_meanwhile(file: Path) -> None:
    with serving(file, "t", port=0) as server:
        port = server.server_port
        with (
            pytest.raises(UnavailableError, match=f"port {port} of this machine is taken") as caught,
            serving(file, "t", port=port),
        ):
            pass
        assert f"ss -ltnp 'sport = :{port}'" in str(caught.value)
        assert str(file) in str(caught.value)
    with serving(file, "t", port=port) as again:
        assert again.server_port == port


def test_ctrl_c_ends_it_and_frees_the_port(file: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from profrun.cli.perfetto import serving\n"
        "with serving(Path(sys.argv[1]), 't', port=0) as server:\n"
        "    print(server.server_port, flush=True)\n"
        "    server.wait(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        port = int(child.stdout.readline())
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=120)
    assert "KeyboardInterrupt" in err
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
