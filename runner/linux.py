"""Programs are run on Linux only; what they recorded is read on every system."""

from __future__ import annotations

import sys

from profrun.errors import UnavailableError

_SYSTEMS = {"win32": "Windows", "darwin": "macOS"}


def need_linux(doing: str) -> None:
    """Refuse what works on Linux only.

    Args:
        doing: what was asked for, as the beginning of a sentence: "running a job".

    Raises:
        UnavailableError: this is another system.
    """
    if sys.platform != "linux":
        raise UnavailableError(
            f"{doing} needs Linux",
            why=f"this is {_SYSTEMS.get(sys.platform, sys.platform)}, where profrun only reads recordings",
            fix="do it on a Linux machine or in a Linux container, then copy the run's folder or the "
            "recording here: normalize, summary, diagnose, compare, report, query and export work",
        )
