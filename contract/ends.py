"""Why a program or a trial ended early, in words: people never read the name of a signal.

Programs decide by ``exit.json``: ``signal``, ``stopped_by`` and ``code``.
"""

from __future__ import annotations

import errno
import signal as signals

DISK_FULL_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Numbers of the errors that say that a disk is full, or a user's part of it."""
DISK_FULL = "disk-full"
"""``code`` of a trial that did not finish because the disk of its folder is full."""

_DEATHS: dict[int, str] = {
    signals.SIGKILL: "was killed: it most likely ran out of memory (see dmesg, or the container's limit)",
    signals.SIGSEGV: "crashed with a segmentation fault: native code (C++, CUDA) used invalid memory",
    signals.SIGABRT: "aborted itself: a check in native code failed (often in C++ or NCCL)",
    signals.SIGBUS: "crashed with a bus error: shared memory (/dev/shm) or the disk may be full",
    signals.SIGFPE: "crashed with an arithmetic error in native code",
    signals.SIGILL: "crashed: it has instructions that this CPU does not support (built for another CPU?)",
    signals.SIGTERM: "was ended by another program (a batch system, a service manager or `kill`)",
    signals.SIGINT: "was ended by Ctrl-C or by another program",
    signals.SIGHUP: "ended because its terminal was closed",
    signals.SIGPIPE: "ended because nobody read its output any more",
}
"""Signal that a program died of -> what happened, as the end of a sentence about the program."""


def died_text(number: int) -> str:
    """What happened to a program that died of a signal, as the end of a sentence: "was killed: ...".

    Args:
        number: of the signal.
    """
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
