"""Opening files of a folder that somebody else may have made. Standard library, Python 3.9.

Such a folder may hold a symbolic link to a file of the user where a file is expected, or a named pipe that
nobody writes to. Only a regular file is opened here, and a link in its place is not followed.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path

_LINK = frozenset({errno.ELOOP, getattr(errno, "EMLINK", errno.ELOOP), getattr(errno, "EFTYPE", errno.ELOOP)})
"""What systems say when O_NOFOLLOW meets a link: Linux and macOS, FreeBSD, NetBSD."""
_WRITES = os.O_WRONLY | os.O_RDWR


class OddFileError(OSError):
    """In place of a file there is something else: a link, a folder, a pipe, a device."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(errno.EINVAL, what, path)
        self.what = what


def open_file(path: str | os.PathLike[str], flags: int, mode: int = 0o666, *, follow: bool = False) -> int:
    """A descriptor of a regular file, which is not inherited by other programs.

    Args:
        flags: as ``os.open`` takes them.
        mode: of a file that is made.
        follow: a link to a regular file will do. Only for reading what is nowhere written to.

    Raises:
        OddFileError: there is a link, a folder, a pipe or a device; a file that is to be written has another
            name somewhere (a hard link).
        OSError: as of ``os.open``.
    """
    name = os.fspath(path)
    if not follow and not hasattr(os, "O_NOFOLLOW") and Path(name).is_symlink():
        raise OddFileError(name, "it is a symbolic link")
    # Without O_NONBLOCK the opening of a pipe waits for its other end.
    more = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(name, flags | more | (0 if follow else getattr(os, "O_NOFOLLOW", 0)), mode)
    except OSError as error:
        odd = _oddity(name) if error.errno in _LINK | {errno.ENXIO, errno.EISDIR, errno.EACCES} else None
        if odd is None:
            raise
        raise OddFileError(name, odd) from error
    about = os.fstat(descriptor)
    odd = None if stat.S_ISREG(about.st_mode) else _kind(about.st_mode)
    if odd is None and flags & _WRITES and about.st_nlink > 1:
        odd = "it is a hard link: the same file has another name"
    if odd is not None:
        os.close(descriptor)
        raise OddFileError(name, odd)
    if sys.platform != "win32":
        os.set_blocking(descriptor, True)
    return descriptor


def _oddity(name: str) -> str | None:
    """What there is in place of a file; None: a file, or nothing that can be looked at."""
    try:
        mode = os.lstat(name).st_mode
    except OSError:
        return None
    return None if stat.S_ISREG(mode) else _kind(mode)


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "it is a symbolic link"
    if stat.S_ISDIR(mode):
        return "it is a folder"
    return "it is a pipe, a socket or a device"


def odd_kind(path: Path) -> str | None:
    """What is wrong with what lies there: None for a regular file or nothing."""
    return _oddity(os.fspath(path))


def read_file(path: str | os.PathLike[str], most: int, *, follow: bool = False) -> bytes:
    """The content of a regular file.

    Args:
        most: bytes that it may have.
        follow: as of ``open_file``.

    Raises:
        OddFileError: as of ``open_file``, or it is larger than that.
        OSError: it cannot be read.
    """
    descriptor = open_file(path, os.O_RDONLY, follow=follow)
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(most + 1) if os.fstat(descriptor).st_size <= most else None
    if data is None or len(data) > most:
        raise OddFileError(os.fspath(path), f"it has more than {most >> 20} MiB")
    return data
