"""Calls ``finish`` once in every way in which a Python process can end: exit, exception, SIGTERM, os._exit.

Exit codes stay what they were. SIGKILL and a crash in native code cannot be caught: then there is only what
was written during the run.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Callable

if TYPE_CHECKING:
    from types import FrameType, TracebackType


class Exits:
    """Calls ``finish()`` before the process ends.

    Args:
        finish: called once at most by each way out; must not raise.
        failed: told the type of an exception that ends the program.
        busy: whether the hook is in the middle of something a signal must not cut.
        unwind: leave through ``SystemExit`` on the first SIGTERM instead of dying of it at once: profilers
            round the program write what they have buffered when it exits, and lose it when it is killed.
            A later SIGTERM is ignored as long as the program is leaving; a program that has caught the
            ``SystemExit`` and goes on dies of it.
    """

    def __init__(
        self,
        finish: Callable[[], None],
        failed: Callable[[type[BaseException], BaseException], None],
        busy: Callable[[], bool],
        *,
        unwind: bool = False,
    ) -> None:
        self._finish = finish
        self._failed = failed
        self._busy = busy
        self._unwind = unwind
        self._raised: SystemExit | None = None
        self._at_exit = False
        self._waiting = False
        self._real_exit = os._exit
        atexit.register(self._last)
        os._exit = self._exit  # type: ignore[assignment]
        self._excepthook = sys.excepthook
        sys.excepthook = self._on_exception
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        ):
            signal.signal(signal.SIGTERM, self._on_term)

    def resume_signal(self) -> None:
        """The hook is no longer busy: die of the SIGTERM that came meanwhile."""
        if self._waiting:
            self._die()

    def _exit(self, status: int) -> None:
        self._finish()
        self._real_exit(status)

    def _on_exception(
        self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        self._failed(kind, error)
        self._excepthook(kind, error, traceback)

    def _on_term(self, _number: int, _frame: FrameType | None) -> None:
        if self._busy():
            self._waiting = True
            return
        self._die()

    def _die(self) -> None:
        self._finish()
        self._waiting = False
        if self._unwind and self._raised is None:
            atexit.register(self._note_exit)  # the last that is registered is called first
            self._raised = SystemExit(128 + signal.SIGTERM)
            raise self._raised
        if self._leaves():
            return
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)

    def _last(self) -> None:
        """Python calls this function after all others of atexit, because it was registered first.

        After it, Python gives SIGTERM its default action again, unless the signal is ignored
        (https://github.com/python/cpython/blob/3.11/Modules/signalmodule.c, ``_PySignal_Fini``). A program
        with large libraries can still need seconds then, and profilers write at the very end.
        """
        self._finish()
        if self._raised is not None:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def _note_exit(self) -> None:
        self._at_exit = True

    def _leaves(self) -> bool:
        """Whether the program is on its way out: at its exit, or while it handles our ``SystemExit``."""
        handled = sys.exc_info()[1]
        while handled is not None and handled is not self._raised:
            handled = handled.__context__
        return self._at_exit or handled is not None
