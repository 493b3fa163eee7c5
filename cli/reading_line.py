"""A line on the terminal that says how much of files or traces has been read."""

from __future__ import annotations

import sys
import time

from profrun.cli.asked import asked
from profrun.contract.units import bytes_text

_EVERY_S = 0.25


class ReadingLine:
    """Shows done and total on stderr while reading; nothing where stderr is no terminal."""

    def __init__(self) -> None:
        self._shown = False
        self._last = time.monotonic()  # small files are done before the first line

    def __enter__(self) -> ReadingLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def update(self, done: int, total: int | None) -> None:
        """Called by readers with what is done and, if known, the total: bytes, or traces."""
        now = time.monotonic()
        if now - self._last < _EVERY_S or asked().quiet or not sys.stderr.isatty():
            return
        self._last, self._shown = now, True
        share = f"{100 * done / total:.0f} %" if total else bytes_text(done)
        sys.stderr.write(f"\r\x1b[Kreading: {share}")
        sys.stderr.flush()
