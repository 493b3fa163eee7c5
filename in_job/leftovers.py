"""Processes that a trial has left behind: they carry its mark in their environment. ``find`` and ``end_all``.

The wrapper ends what its program leaves by itself (``supervise``). These functions are for the case that the
wrapper was killed: then only the mark says to which trial a process belongs.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from . import proctree

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path
    from typing import Callable

MARK = "PROFRUN_TRIAL"
"""The variable that all processes of a trial have: ``<rank of the wrapper>:<path of the trial's folder>``."""

CODE = "leftovers-ended"
"""Code of the finding that says that processes of an earlier attempt were ended."""

_SHOWN = 3
"""How many command lines are named."""


def mark(folder: Path, rank: int) -> dict[str, str]:
    """The variable for the processes that a wrapper starts.

    Args:
        folder: of the trial, as the wrapper sees it.
        rank: of the wrapper.
    """
    return {MARK: f"{rank}:{folder}"}


def find(wanted: Callable[[str, int], bool], sessions: Collection[int] = ()) -> list[proctree.Process]:
    """The live processes of some trials on this machine, with all that they have started.

    This process and those above it are never among them. A process whose environment may not be read (of
    another user) is found only below one that can be read. Where there is no /proc nothing is found.

    Args:
        wanted: whether a folder of a trial and a rank of a wrapper in it are meant.
        sessions: ids of sessions that belong to them: their processes count without a mark, too.
    """
    roots = [
        process
        for process in proctree.everyone()
        if process.session in sessions or _is_marked(process.pid, wanted)
    ]
    if not roots:
        return []
    below = proctree.descendants(*(process.pid for process in roots))
    above = {process.pid for process in proctree.upwards(os.getpid())}
    return [process for process in dict.fromkeys([*roots, *below]) if process.pid not in above]


def of_rank(folder: Path, rank: int) -> Callable[[str, int], bool]:
    """What ``find`` is to look for: the processes of one wrapper of a trial."""
    own = (str(folder), rank)
    return lambda of, by: (of, by) == own


def end_all(wanted: Callable[[str, int], bool], grace: float, sessions: Collection[int] = ()) -> list[str]:
    """End them: SIGTERM, and SIGKILL after ``grace`` seconds. Returns their command lines.

    Args:
        wanted, sessions: as of ``find``.
    """
    lines: dict[proctree.Process, str] = {}

    def left() -> list[proctree.Process]:
        found = find(wanted, sessions)
        for process in found:
            if process not in lines:
                lines[process] = " ".join(process.argv)[:120] or str(process.pid)
        return found

    proctree.end(left, grace)
    return list(lines.values())


def ended_text(commands: list[str]) -> str:
    """``2 processes were left and had to be ended (python a.py; python b.py)``, for one command at least."""
    count = "1 process was" if len(commands) == 1 else f"{len(commands)} processes were"
    shown = "; ".join(commands[:_SHOWN]) + ("; ..." if len(commands) > _SHOWN else "")
    return f"{count} left running and had to be ended ({shown})"


def _is_marked(pid: int, wanted: Callable[[str, int], bool]) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            content = file.read()
    except OSError:
        return False
    start = f"{MARK}=".encode()
    for row in content.split(b"\0"):
        if row.startswith(start):
            rank, _, folder = os.fsdecode(row[len(start) :]).partition(":")
            return rank.isdigit() and wanted(folder, int(rank))
    return False
