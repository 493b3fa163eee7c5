"""Why a program or a trial ended early, in words: people never read the name of a signal.

Programs decide by ``exit.json``: ``signal``, ``stopped_by`` and ``code``.
"""

from __future__ import annotations

import errno
from typing import Literal

DISK_FULL_ERRORS = frozenset({errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)})  # Windows has no EDQUOT
"""Numbers of the errors that say that a disk is full, or a user's part of it."""
DISK_FULL = "disk-full"
"""``code`` of a trial that did not finish because the disk of its folder is full."""

MemoryKill = Literal["group", "machine", "none", "unknown"]
"""Whether the kernel killed a process for want of memory while something ran: one of its own control group
(container, job), one of the machine, none, or not known."""

_KILLED: dict[MemoryKill, str] = {
    "group": "was killed: it ran out of memory (the kernel killed a process of its container or job for "
    "that)",
    "machine": "was killed: it most likely ran out of memory (the kernel killed a process of this machine "
    "for that meanwhile; see dmesg)",
    "none": "was killed by a person, another program or a batch system (`kill -9`); the kernel counted no "
    "kill for want of memory",
    "unknown": "was killed: by `kill -9`, by a batch system, or by the kernel for want of memory (see "
    "dmesg, or the container's limit)",
}
_SIGKILL = 9
_DEATHS: dict[int, str] = {
    11: "crashed with a segmentation fault: native code (C++, CUDA) used invalid memory",
    6: "aborted itself: a check in native code failed (often in C++ or NCCL)",
    7: "crashed with a bus error: shared memory (/dev/shm) or the disk may be full",
    8: "crashed with an arithmetic error in native code",
    4: "crashed: it has instructions that this CPU does not support (built for another CPU?)",
    15: "was ended by another program (a batch system, a service manager or `kill`)",
    2: "was ended by Ctrl-C or by another program",
    1: "ended because its terminal was closed",
    13: "ended because nobody read its output any more",
}
"""Signal that a program died of -> what happened, as the end of a sentence about the program.

The numbers are Linux's, where every trial ran: the system that reads them now may have others or none.
"""


def died_text(number: int, memory: MemoryKill = "unknown") -> str:
    """What happened to a program that died of a signal, as the end of a sentence: "was killed: ...".

    Args:
        number: of the signal.
        memory: what the kernel says of kills for want of memory meanwhile.
    """
    if number == _SIGKILL:
        return _KILLED[memory]
    return _DEATHS.get(number, f"was ended by signal {number}")


def asked_text(by: str) -> str:
    """Who asked a run to end, as a sentence without a full stop.

    Args:
        by: name of the signal that its driver got, or "profrun cancel".
    """
    return {
        "SIGINT": "You cancelled it",
        "profrun cancel": "You cancelled it",
        "SIGHUP": "The terminal was closed",
        "SIGTERM": "Another program ended it (a batch system, a service manager or `kill`)",
    }.get(by, "It was cancelled")


def stopped_text(by: str, batch_system: str | None) -> str:
    """Who ended a trial from outside, as a sentence without a full stop.

    Args:
        by: name of the signal that the wrapper got. Only a batch script of ours sends SIGURG without a wish
            to cancel: the time limit is near.
        batch_system: the batch system in which the trial ran, if any.
    """
    if by == "SIGURG":
        return f"{batch_system or 'the batch system'} announced the end of the job's time"
    if batch_system is not None:
        return f"{batch_system} ended the job (its time was over, or it was preempted or cancelled)"
    return "another program ended the trial (a service manager or `kill`)"
