"""How a long reading of many traces says how far it is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Called with how many traces have been begun, and how many there are."""


def no_progress(done: int, total: int) -> None:
    """For who does not want to know."""


def counted(progress: Progress, total: int) -> Callable[[], None]:
    """A function to call for each of ``total`` traces."""
    done = 0

    def another() -> None:
        nonlocal done
        done += 1
        progress(min(done, total), total)

    return another
