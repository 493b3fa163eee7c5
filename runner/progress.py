"""Tells how many of many traces have been read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from profrun.collectors.reading import Progress


def no_progress(done: int, total: int | None) -> None:
    """Does nothing: the caller shows no progress."""


def counted(progress: Progress, total: int) -> Callable[[], None]:
    """A function to call before each of ``total`` traces is read.

    Args:
        progress: is called with the number of traces that were begun, and ``total``.
    """
    done = 0

    def another() -> None:
        nonlocal done
        done += 1
        progress(min(done, total), total)

    return another
