"""What is read of /proc and /sys in more than one place: ``read_again``, ``command_line``. See proc(5)."""

from __future__ import annotations

import os
from pathlib import Path


def read_again(number: int) -> bytes:
    """Up to 4096 bytes of an open file from its begin, which gives new content each time.

    Args:
        number: file descriptor of a file of /proc or /sys.

    Returns:
        The content; empty where it cannot be read, e.g. when its process is gone.
    """
    try:
        return os.pread(number, 4096, 0)
    except OSError:
        return b""


def command_line(pid: int, proc: str = "/proc") -> tuple[str, ...]:
    """The command line of a process, one text per argument; empty when it is gone."""
    try:
        content = Path(f"{proc}/{pid}/cmdline").read_bytes()
    except OSError:
        return ()
    return tuple(os.fsdecode(part) for part in content.split(b"\0")[:-1])
