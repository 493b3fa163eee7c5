"""Ends the recording of a run without steps when it has lasted too long or has grown too large."""

from __future__ import annotations

import ctypes
import threading
import time
from typing import TYPE_CHECKING, Callable

if TYPE_CHECKING:
    from ..contract.schedule import Limit, Schedule

_EVERY_S = 0.05
_Pending = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class LimitWatch:
    """A thread that watches the limits, and asks the main thread to end the recording at the first one.

    Profilers inside the program must be stopped by the thread that started them. The interpreter calls
    ``end`` there, between two bytecodes; while the main thread waits in native code, it is called when that
    returns.

    Args:
        schedule: has the limits.
        factor: how many times the memory of what is recorded the profiler needs in the end.
        end: ends the recording; returns False when that is not possible at this moment: it is asked again.
    """

    def __init__(self, schedule: Schedule, factor: float, end: Callable[[Limit], bool]) -> None:
        self._schedule = schedule
        self._room = schedule.max_size / factor
        self._end = end
        self._over = threading.Event()
        self._limit: Limit | None = None
        self._asked = False
        self._callback = _Pending(self._call)

    def start(self) -> None:
        """Recording has begun. Only in the main thread can it be ended from outside."""
        if threading.current_thread() is threading.main_thread():
            threading.Thread(target=self._watch, name="profrun limits", daemon=True).start()

    def stop(self) -> None:
        """Recording has ended."""
        self._over.set()

    def _watch(self) -> None:
        began = time.monotonic()
        memory = Memory(self._room)
        while not self._over.wait(_EVERY_S):
            if self._limit is None and time.monotonic() - began >= self._schedule.max_seconds:
                self._limit = "max_seconds"
            elif self._limit is None and memory.is_full():
                self._limit = "max_size"
            if self._limit is not None and not self._asked:
                self._asked = True
                self._asked = ctypes.pythonapi.Py_AddPendingCall(self._callback, None) == 0

    def _call(self, _argument: object) -> int:
        if self._limit is not None and not self._over.is_set() and self._end(self._limit):
            self._over.set()
        self._asked = False
        return 0


class Memory:
    """How much memory a recording has taken since this object was made.

    Small allocations count, where profilers keep what they record. Blocks of more than 32 MiB, which the GNU
    C library maps one by one, do not: they are tensors and weights of the program. With another C library,
    or one before 2.33, all memory counts that no file backs.

    Args:
        room: bytes that it may take.
    """

    def __init__(self, room: float) -> None:
        self._room = room
        self._anonymous = _anonymous()
        self._small = _small()
        self._look_at = room  # growth of the anonymous memory from which on it is worth to look closer

    def is_full(self) -> bool:
        """Whether the room is taken.

        The small allocations are counted only when all memory has grown by enough: counting them takes 5 to
        50 ms (measured with 0.2 to 2 GiB of them), and meanwhile the program may have to wait.
        """
        grown = _anonymous() - self._anonymous
        if grown < self._look_at:
            return False
        taken = _small() - self._small
        self._look_at = grown + max(self._room - taken, self._room / 16)
        return taken >= self._room


class _Allocated(ctypes.Structure):
    """``struct mallinfo2`` of the GNU C library: ten sizes, of which the eighth is ``uordblks``."""

    _fields_ = (
        ("before", ctypes.c_size_t * 7),
        ("uordblks", ctypes.c_size_t),
        ("after", ctypes.c_size_t * 2),
    )


def _anonymous() -> int:
    """Bytes of the process's memory that no file backs."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        return next((int(line.split()[1]) << 10 for line in file if line.startswith("RssAnon")), 0)


def _small() -> int:
    """Bytes in small allocations, else ``_anonymous``."""
    if _mallinfo2 is None:
        return _anonymous()
    return int(_mallinfo2().uordblks)


_mallinfo2 = getattr(ctypes.CDLL(None), "mallinfo2", None)
if _mallinfo2 is not None:
    _mallinfo2.restype = _Allocated
