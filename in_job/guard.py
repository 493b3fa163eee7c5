"""``Guard``: a process beside the wrapper that ends the program when the wrapper is killed.

The kernel closes the guard's pipe when the wrapper is gone, however it ended: the out-of-memory killer and
`kill -9` leave it no time to end the program itself. The guard keeps the files open that the wrapper was
started with. So the lock that says that a trial lives (``live``) is held until nothing of the trial runs.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from typing import TYPE_CHECKING

from . import leftovers
from .words import complain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BYE = b"bye"
_PR_SET_NAME = 15
_NAME = b"profrun guard"  # 15 bytes at most, for `ps -o comm`


class Guard:
    """The guard of one wrapper. ``start`` makes it; it must be made before the wrapper has a second thread.

    Attributes:
        pid: of the guard.
    """

    def __init__(self, pid: int, pipe: int) -> None:
        self.pid = pid
        self._pipe = pipe

    @classmethod
    def start(cls, folder: Path, rank: int, grace: float) -> Guard | None:
        """Start it; None where this machine has no /proc, or no room for a process.

        Args:
            folder: of the trial.
            rank: of the wrapper.
            grace: seconds that the program gets to end.
        """
        if not os.path.exists("/proc/self/environ"):
            return None
        ours, its = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            pid = os.fork()
        except OSError:
            os.close(ours)
            os.close(its)
            return None
        if pid:
            os.close(ours)
            return cls(pid, its)
        try:
            os.close(its)
            _watch(ours, folder, rank, grace)
        finally:
            os._exit(0)

    def watch(self, session: int) -> None:
        """From now on the processes of this session belong to the program, also those without its mark."""
        self._say(str(session).encode())

    def end(self) -> None:
        """The wrapper is about to end, and has left nothing: the guard goes, too."""
        self._say(_BYE)
        os.close(self._pipe)
        try:
            os.waitpid(self.pid, 0)
        except ChildProcessError:  # whoever waits for all children has seen it
            pass

    def _say(self, word: bytes) -> None:
        try:
            os.write(self._pipe, word + b"\n")
        except OSError:  # it is gone
            pass


@contextlib.contextmanager
def guarded(folder: Path, rank: int, grace: float) -> Iterator[Guard | None]:
    """A guard as long as the ``with`` block runs; None where there is none.

    Args:
        folder, rank, grace: as of ``Guard.start``.
    """
    guard = Guard.start(folder, rank, grace)
    try:
        yield guard
    finally:
        if guard is not None:
            guard.end()


def _watch(pipe: int, folder: Path, rank: int, grace: float) -> None:
    """Wait for the wrapper's end; where it did not say good-bye, end what it left, and say so."""
    os.setsid()  # what is sent to the wrapper's group or terminal is not for the guard
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    try:
        ctypes.CDLL(None).prctl(_PR_SET_NAME, _NAME, 0, 0, 0)
    except (OSError, AttributeError):
        pass
    with os.fdopen(pipe, "rb") as words:
        told = words.read().split()
    if _BYE in told:
        return
    ended = leftovers.end_all(leftovers.of_rank(folder, rank), grace, {int(word) for word in told})
    if ended:
        who = f"the wrapper of rank {rank} was killed"
        complain(f"{who}: {leftovers.ended_text(ended)}")
