"""Notices a profiler that failed before it started the program: ``ToolStart``, ``loads_hook``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

HANG_S = 5.0
"""Seconds after its message of failure in which a profiler may still end by itself.

nsys 2024.2.3 ends within 0.2 s in most cases. In 4 of 1280 starts, six to eight at a time on two cores, it
printed the message and then waited until it was killed.
"""

LOOK_S = 0.5
"""Seconds between two looks at what the profiler has printed."""

_WITHOUT_HOOK = frozenset("EIS")
"""Options with which Python reads no PYTHONPATH or no sitecustomize: https://docs.python.org/3/using/cmdline.html."""
_WITH_VALUE = ("-W", "-X")


def loads_hook(program: str, argv: Sequence[str]) -> bool:
    """Whether a process is a Python that loads profrun's hook before the program.

    If such a process has not made the hook's mark, it has not run any line of the program.

    Args:
        program: path of its executable; empty when it is not known.
        argv: its command line.
    """
    if not os.path.basename(program).startswith("python"):
        return False
    words = iter(argv[1:])
    for word in words:
        if not word.startswith("-") or word in ("-c", "-m"):
            break
        if word in _WITH_VALUE:
            next(words, None)
        elif not word.startswith(("--", *_WITH_VALUE)) and _WITHOUT_HOOK & set(word):
            return False
    return True


class ToolStart:
    """Whether a profiler has failed before it started the program.

    A program must not run twice unasked. So the profiler itself must have printed it, and the program must
    not have loaded profrun's hook.

    Args:
        explain: the profiler's ``not_started`` (contract/wrapping.py): what its log says of a failed start.
        mark: the file that the hook makes when a program loads it.
    """

    def __init__(self, explain: Callable[[str], str | None], mark: Path) -> None:
        self._explain = explain
        self._mark = mark
        self._failed_at: float | None = None
        self._next_look = 0.0

    @property
    def failed(self) -> bool:
        """Whether ``hangs`` has seen that the start failed: from then on it judges the profiler alone."""
        return self._failed_at is not None

    def failure(self, log: str) -> str | None:
        """What the profiler printed of a start that failed; None: nothing, or the program was started.

        Args:
            log: what it has printed.
        """
        return None if self._mark.exists() else self._explain(log)

    def hangs(self, log: Callable[[], str], now: float) -> bool:
        """Whether it has printed that its start failed, and has not ended for ``HANG_S`` since.

        Call it again and again as long as no process of the program was seen.

        Args:
            log: gives what it has printed up to now.
            now: seconds of a monotonic clock.
        """
        if now < self._next_look:
            return False
        self._next_look = now + LOOK_S
        if self.failure(log()) is None:
            return False
        if self._failed_at is None:
            self._failed_at = now
        return now - self._failed_at >= HANG_S
