"""Locks: a run has one driver, and a local trial that runs holds its own.

``flock`` on a file of the folder: the kernel drops it when its holders die, however they die, so a lock is
never stale. It also holds between machines on NFS (Linux turns it into a byte-range lock there). The file's
text names the holder for people; whether the lock is held is asked of the kernel.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from profrun.contract import json_text
from profrun.contract.safe_files import open_file
from profrun.errors import UnavailableError, UsageError
from profrun.store.files import explained

with contextlib.suppress(ImportError):  # Windows has none
    import fcntl

_HELD = frozenset({errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES})


def try_lock(path: Path) -> int | None:
    """A descriptor that holds the lock, or None when somebody else does. Close it to release.

    The descriptor is not inherited by children unless it is passed to them on purpose; a child that has it
    keeps the lock alive.

    Raises:
        UnavailableError: the file cannot be made, or the filesystem or the system has no locks.
        InputError: a link or something else is in its place.
    """
    if sys.platform == "win32":
        raise UnavailableError(
            f"{path} cannot be locked",
            why="profrun starts, ends and removes runs on Linux only; on Windows it reads them",
            fix="do it on the machine where the run is",
        )
    with explained(path):
        fd = open_file(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(fd)
        if error.errno in _HELD:
            return None
        raise UnavailableError(
            f"{path} cannot be locked",
            why=f"{os.strerror(error.errno or 0)}: this filesystem may have no file locks",
            fix="put the runs on another filesystem with --runs DIR",
        ) from error
    return fd


def patient_lock(path: Path, tries: int = 5, pause_s: float = 0.02) -> int | None:
    """``try_lock``, a few times, because ``is_held`` of another process takes the lock for a moment."""
    for attempt in range(tries):
        if attempt:
            time.sleep(pause_s)
        fd = try_lock(path)
        if fd is not None:
            return fd
    return None


def is_held(path: Path) -> bool:
    """Whether a process holds this lock now; False when the file is not there, and on Windows."""
    if sys.platform == "win32":
        return False  # nobody drives a run there
    try:
        fd = open_file(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in _HELD
    finally:
        os.close(fd)
    return False


def holder(path: Path) -> dict[str, Any]:
    """What the last holder wrote into the lock: {host, pid}; empty when there was none."""
    try:
        value = json_text.read(path, most=4096)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def sign(fd: int, **more: Any) -> None:
    """Write who holds the lock, for people."""
    text = json.dumps({"host": socket.gethostname(), "pid": os.getpid(), **more}) + "\n"
    os.ftruncate(fd, 0)
    os.lseek(fd, 0, os.SEEK_SET)
    os.write(fd, text.encode())


@contextlib.contextmanager
def driving(path: Path, name: str) -> Iterator[None]:
    """Hold the run's lock, so that no other process drives the run meanwhile.

    Raises:
        UsageError: another process drives this run; says which.
    """
    fd = patient_lock(path)
    if fd is None:
        who = holder(path)
        where = f"process {who.get('pid', '?')} on {who.get('host', 'an unknown host')}"
        raise UsageError(
            f"{name} is being driven already",
            why=f"{where} holds its lock",
            fix=f"watch it with `profrun status {name}` or end it with `profrun cancel {name}`",
        )
    try:
        with explained(path):
            sign(fd)
        yield
    finally:
        os.close(fd)
