"""Errors that nobody expected: ``report_bug`` prints one line about one and keeps its traceback in a file."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from profrun.cli.output import complain

BUG = 70
"""Exit code of a bug of profrun."""


def report_bug(error: Exception) -> int:
    """One line about an error that nobody expected; returns the exit code."""
    where = _keep_crash(error)
    text = f"{type(error).__name__}: {error}".splitlines()[0]
    complain(f"bug in profrun ({text}); the traceback is in {where}; please report it with that file")
    return BUG


def _keep_crash(error: Exception) -> str:
    """Write the traceback of an error to a file and return its path."""
    import tempfile
    import traceback

    from profrun.store.seal import state_folder

    text = "".join(traceback.format_exception(error))
    state = state_folder()
    for folder in (*([state] if state else []), Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"crash-{os.getpid()}.log"
            path.write_text(f"{sys.argv}\n{text}", encoding="utf-8")
        except OSError:
            continue
        return str(path)
    sys.stderr.write(text)
    return "the lines above"
