"""The three standard streams of the process, also where whoever started it has closed some of them.

cron, daemons and ``>&-`` close them. Then the next file that is opened gets the number of stdout, what is
printed goes into that file, and Python's own ``sys.stdout`` is None.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TextIO


def open_closed() -> None:
    """Open /dev/null for each standard stream that is closed. Call it before any file is opened."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            nothing = os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
            if nothing != number:
                os.dup2(nothing, number)
                os.close(nothing)
            os.set_inheritable(number, True)
    sys.stdin = sys.stdin or _stream(0)
    sys.stdout = sys.stdout or _stream(1)
    sys.stderr = sys.stderr or _stream(2)


def print_any_letter() -> None:
    """Have letters that a stream cannot hold printed as escapes: names of others may have halves of letters,
    and with LC_ALL=C there is ASCII alone."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _stream(number: int) -> TextIO:
    return open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False)
