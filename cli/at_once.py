"""For a command that runs an engine in this process: Ctrl-C ends it at once, and its memory has a bound.

While an engine works in C, Python's own handler of Ctrl-C waits for it, for minutes where the work has no
parts. A thread that hears of the signal sooner interrupts the engine, and ends the process if that is
not enough.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

PATIENCE_S = 1.0
"""How long an engine that was interrupted has to stop."""
INTERRUPTED = 1
"""Exit code of a command that did not come to its end, as ``cli.run`` has it."""
BOUND = 4_000_000_000
"""Bytes of memory that the command may take in addition to what it has."""


@contextlib.contextmanager
def ends_at_once(interrupt: Callable[[], None], clean: Callable[[], None]) -> Iterator[None]:
    """Inside ``with``, Ctrl-C ends the work in about a second, whatever the engine does.

    Args:
        interrupt: asks the engine to stop; called in another thread.
        clean: removes what must not be left; called in another thread if the process is ended.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed and the engine stopped.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are none of this thread's business
        return
    heard, told = socket.socketpair()
    told.setblocking(False)
    before = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
    handler = signal.getsignal(signal.SIGINT)
    pressed, over = threading.Event(), threading.Event()

    def press(number: int, frame: FrameType | None) -> None:
        pressed.set()
        if callable(handler):
            handler(number, frame)

    def listen() -> None:
        while numbers := heard.recv(16):
            if signal.SIGINT in numbers:
                break
        else:
            return
        pressed.set()
        interrupt()
        if not over.wait(PATIENCE_S):
            clean()
            os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, b"profrun: interrupted\n")
            os._exit(INTERRUPTED)

    listener = threading.Thread(target=listen, name="ctrl-c", daemon=True)
    listener.start()
    if callable(handler):  # else Ctrl-C is ignored, as in a job of a shell in the background
        # An engine that looks for signals itself may raise its own error before the thread has heard of one.
        signal.signal(signal.SIGINT, press)
    try:
        yield
    except Exception as error:
        if pressed.is_set():  # the engine says in its own words that it was interrupted
            raise KeyboardInterrupt from error
        raise
    finally:
        over.set()
        if callable(handler):
            signal.signal(signal.SIGINT, handler)
        signal.set_wakeup_fd(before)
        told.close()
        listener.join()
        heard.close()


@contextlib.contextmanager
def bounded_memory(extra: int = BOUND) -> Iterator[None]:
    """Inside ``with``, this process cannot take more than ``extra`` bytes in addition to what it has (Linux).

    A value of gigabytes is not counted by the engine's own limit.
    """
    held = _data_bytes()
    if sys.platform != "linux" or held is None:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = held + extra
    for limit in (soft, hard):
        if limit != resource.RLIM_INFINITY:
            wanted = min(wanted, limit)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _data_bytes() -> int | None:
    """What counts for the limit: private memory that can be written, bytes; None where nothing tells."""
    if sys.platform != "linux":
        return None
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
