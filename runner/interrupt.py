"""Ctrl-C, twice: the first asks for a good end, the second for an end now."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType, TracebackType

SIGNALS = [signal.SIGINT, signal.SIGTERM]
"""A terminal's Ctrl-C, a scheduler's or service manager's wish, and on Linux a terminal that was closed."""
if sys.platform != "win32":
    SIGNALS.append(signal.SIGHUP)


class Interrupts:
    """Counts wishes to end, while it is entered (main thread only; elsewhere it only counts ``press``).

    Attributes:
        count: 0 none, 1 end well, 2 or more end now.
        reason: the signal's name, or what ``press`` was told.
    """

    def __init__(self) -> None:
        self.count = 0
        self.reason = ""
        self._rung = threading.Event()
        self._abortable = False
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) != signal.SIG_IGN:  # nohup, and jobs that a shell put aside
                    self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal.signal gave
        self._before.clear()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.press(signal.Signals(number).name)
        if self.count >= 2 and self._abortable:
            raise KeyboardInterrupt

    def press(self, reason: str, *, now: bool = False) -> None:
        """Count a wish to end; ``now`` means do not wait for a good end."""
        self.count = max(self.count + 1, 2 if now else 1)
        self.reason = reason
        self._rung.set()

    def wait(self, seconds: float) -> None:
        """Sleep, but wake at a wish that came since the last call."""
        self._rung.wait(seconds)
        self._rung.clear()

    def abortable(self) -> _Abortable:
        """Inside ``with``, a second wish raises KeyboardInterrupt: for work that can be redone."""
        return _Abortable(self)


class _Abortable:
    def __init__(self, owner: Interrupts) -> None:
        self._owner = owner

    def __enter__(self) -> None:
        if self._owner.count >= 2:
            raise KeyboardInterrupt
        self._owner._abortable = True

    def __exit__(self, *_: object) -> None:
        self._owner._abortable = False
