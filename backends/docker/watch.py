"""``Watch`` keeps what the engine says of a container at its end: the end of its output and its exit code."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, Literal

from profrun.contract.ends import died_text
from profrun.images.engine import explain

if TYPE_CHECKING:
    import docker

_END_S = 5.0
"""How long the engine may take to report the end of a container, seconds."""
_KEEP = 4096
"""Bytes of the end of its output that are kept in memory; all of it is in stdout.log and stderr.log."""


class Watch:
    """Two daemon threads for one container. They only serve the reason that a lost trial gets.

    Made before the container starts, as `docker run` attaches: one that ends at once is not missed.

    Args:
        podman: the engine is Podman, which before 4.6 states 0 as the exit code to who waits for the removal.
    """

    def __init__(self, client: docker.DockerClient, container: str, *, podman: bool = False) -> None:
        self.container = container
        self._podman = podman
        self._client = client
        self._code: int | None = None
        self._end = b""
        self._gone = threading.Event()
        self._blind = False
        self._stream: Any = ()
        with contextlib.suppress(Exception):  # it is just ending: then its output is not kept
            self._stream = client.api.attach(container, stream=True)
        self._threads = [
            threading.Thread(target=target, name=f"{target.__name__} {container[:12]}", daemon=True)
            for target in (self._wait, self._read)
        ]
        for thread in self._threads:
            thread.start()

    def alive(self) -> bool | None:
        """Whether the container exists; None when the engine cannot tell."""
        return None if self._blind else not self._gone.is_set()

    def until_gone(self, seconds: float) -> None:
        """Return when the container is removed, or after ``seconds``."""
        self._gone.wait(seconds)

    def why_lost(self) -> str:
        """Why a container that left no ``exit.json`` may have ended, in one sentence."""
        for thread in self._threads:
            thread.join(_END_S)
        lines = self._end.decode(errors="replace").strip().splitlines()
        line = lines[-1][:200] if lines else ""
        if line.startswith(("[FATAL tini", "ERROR (catatonit")):  # the init found no program to start
            return str(explain(RuntimeError(line), "it never began"))
        text = "its container ended without saying how"
        if self._code is not None:
            text += f" (exit code {self._code}{_meaning(self._code)})"
        return text + (f"; the last line of its output: {line}" if line else "")

    def _wait(self) -> None:
        import docker.errors

        try:
            if self._podman:
                self._code = self._wait_for("next-exit")
                self._wait_for("removed")
            else:
                self._code = self._wait_for("removed")
        except docker.errors.NotFound:
            pass
        except Exception:  # the engine went away: then it is asked again, each time
            self._blind = True
            return
        self._gone.set()

    def _wait_for(self, condition: Literal["next-exit", "removed"]) -> int:
        """Exit code, once the container is in this state."""
        return int(self._client.api.wait(self.container, timeout=None, condition=condition)["StatusCode"])

    def _read(self) -> None:
        with contextlib.suppress(Exception):
            for chunk in self._stream:
                self._end = (self._end + chunk)[-_KEEP:]


def _meaning(code: int) -> str:
    return f": it {died_text(code - 128)}" if code > 128 else ""
