"""Copies what a command prints to a log file and to our own stream: ``Tee``."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from ..contract.ends import DISK_FULL_ERRORS
from ..contract.safe_files import open_file

if TYPE_CHECKING:
    from pathlib import Path

_TAIL = 1 << 18  # bytes of the end that are kept in memory
_CUT = b"\n[profrun] the output is longer than resources.output: from here on only its end is kept\n"


class Tee(threading.Thread):
    """Copies a pipe to a log file and to our own stream; a full disk or a closed stream loses only itself.

    The pipe is always read to its end: a program must not wait, or die, because of its output.

    Args:
        source: the pipe, which is closed at its end.
        log: is appended to.
        stream: our own stream; None: nothing is copied to it.
        most: about how many bytes the log may have. Of a longer output its beginning and its end are in it,
            and between them how much is missing.

    Attributes:
        tail: the end of the output.
        lost: bytes that could not be written to the log.
        missing: bytes that are not in the log because it would be too long.
        full: whether the disk of the log was full.
    """

    def __init__(self, source: int, log: Path, stream: int | None, most: int = 1 << 30) -> None:
        super().__init__(daemon=True)
        self.source = source
        self.stream = stream
        self.tail = bytearray()
        self.lost = 0
        self.missing = 0
        self.full = False
        self._log = open_file(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._kept_end = min(most // 4, _TAIL)
        self._room = most - self._kept_end - os.fstat(self._log).st_size
        self._cut = 0
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
            self._keep(data)
            if self.stream is not None and _write(self.stream, data)[0] < len(data):
                self.stream = None
        self._keep_end()
        os.close(self.source)
        os.close(self._log)

    def _keep(self, data: bytes) -> None:
        """Put data into the log, as long as there is room for it."""
        if self._room > 0:
            self._put(data[: self._room])
        over = len(data) - max(0, self._room)
        self._room -= len(data)
        if over > 0:
            if self._cut <= self._kept_end < self._cut + over:
                self._put(_CUT)
            self._cut += over

    def _keep_end(self) -> None:
        """Put the end of an output that was too long into the log."""
        if self._cut:
            end = bytes(self.tail[-min(self._cut, self._kept_end) :]) if self._kept_end else b""
            self.missing = self._cut - len(end)
            said = f"[profrun] {self.missing} bytes are missing here\n".encode() if self.missing else b""
            self._put(said + end)

    def _put(self, data: bytes) -> None:
        done, number = _write(self._log, data)
        self.lost += len(data) - done
        self.full = self.full or number in DISK_FULL_ERRORS


def _write(descriptor: int, data: bytes) -> tuple[int, int | None]:
    """Write all of it; returns the bytes that went through, and the number of the error that stopped it."""
    done = 0
    try:
        while done < len(data):
            done += os.write(descriptor, data[done:])
    except OSError as error:
        return done, error.errno
    return done, None
