"""Copies what a command prints to a log file and to our own stream: ``Tee``."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_TAIL = 1 << 18  # bytes of the end that are kept


class Tee(threading.Thread):
    """Copies a pipe to a log file and to our own stream; a full disk or a closed stream loses only itself."""

    def __init__(self, source: int, log: Path, stream: int | None) -> None:
        super().__init__(daemon=True)
        self.source = source
        self.stream = stream
        self.tail = bytearray()
        self.lost = 0
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.start()

    def run(self) -> None:
        """Until the last writer has closed the pipe."""
        while True:
            try:
                data = os.read(self.source, 65536)
            except OSError:
                break
            if not data:
                break
            self.tail += data
            if len(self.tail) > 2 * _TAIL:
                del self.tail[:-_TAIL]
            self.lost += len(data) - _write(self._log, data)
            if self.stream is not None and _write(self.stream, data) < len(data):
                self.stream = None
        os.close(self.source)
        os.close(self._log)


def _write(descriptor: int, data: bytes) -> int:
    """Write all of it; returns the bytes that went through."""
    done = 0
    try:
        while done < len(data):
            done += os.write(descriptor, data[done:])
    except OSError:
        pass
    return done
