"""Keeping what the engine says about a container: its output while it runs, its exit code when it ends."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profrun.errors import UnavailableError
from profrun.images.engine import explain

if TYPE_CHECKING:
    import docker

_END_S = 5.0
"""How long a container that is gone may take to be reported so."""


class Watch:
    """Two daemon threads beside one container. Nothing depends on them but the reason of a lost trial.

    The end is waited for from before the container starts, so that one that ends at once is rarely missed.
    """

    def __init__(self, client: docker.DockerClient, container: str, log: Path) -> None:
        self.container = container
        self._client = client
        self._log = log
        self._code: int | None = None
        self._words = ""
        self._threads = [
            threading.Thread(target=target, name=f"{target.__name__} {container[:12]}", daemon=True)
            for target in (self._wait, self._copy)
        ]
        self._threads[0].start()

    def start(self) -> None:
        """Begin to copy its output; it runs now."""
        self._threads[1].start()

    def last_words(self) -> str:
        """Why a container that left no ``exit.json`` may have ended, in one sentence."""
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(_END_S)
        text = "its container ended without saying how"
        known = explain(RuntimeError(self._words), "it never began")
        if isinstance(
            known, UnavailableError
        ):  # what an engine's init says when it finds no program to start
            return str(known)
        if self._code is not None:
            text += f" (exit code {self._code}{_meaning(self._code)})"
        return text + (f"; its last words: {self._words}" if self._words else "")

    def _wait(self) -> None:
        with contextlib.suppress(Exception):  # the engine went away: then nothing is known, and said so
            answer = self._client.api.wait(self.container, timeout=None, condition="removed")
            self._code = int(answer["StatusCode"])

    def _copy(self) -> None:
        """The wrapper's own output; the workload's goes to stdout.log and stderr.log."""
        with contextlib.suppress(Exception):
            stream: Any = self._client.api.attach(self.container, stream=True, logs=True)
            with self._log.open("ab") as file:
                for chunk in stream:
                    file.write(chunk)
                    file.flush()
                    lines = chunk.decode(errors="replace").strip().splitlines()
                    self._words = lines[-1][:200] if lines else self._words


def _meaning(code: int) -> str:
    if code == 137:
        return ": killed, perhaps for memory"
    return f": signal {code - 128}" if code > 128 else ""
