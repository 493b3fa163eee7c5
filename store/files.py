"""Writing and reading small files of a run: whole or not at all, and one clear line when it cannot be.

Every byte that the run store writes passes through ``write_all``. A run may come from somebody else, so a
link, a pipe or a folder in place of a file is refused (``contract.safe_files``).
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from profrun.contract import json_text
from profrun.contract.ends import DISK_FULL_ERRORS
from profrun.contract.json_text import JsonError
from profrun.contract.safe_files import OddFileError, open_file, read_file
from profrun.errors import DiskFullError, InputError, ProfrunError, UnavailableError

_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


ELSEWHERE = "choose another folder with --runs DIR or $PROFRUN_RUNS"


def os_error(error: OSError, path: Path, fix: str = ELSEWHERE) -> ProfrunError:
    """What a failed file operation means to a person.

    Args:
        fix: what to do where the place may not be written to.
    """
    if isinstance(error, OddFileError):
        return odd_file(path, error.what)
    if error.errno in DISK_FULL_ERRORS:
        return DiskFullError(
            f"the disk is full: {path} could not be written",
            why=os.strerror(error.errno or 0),
            fix="free some space, then `profrun resume` the run; what was collected so far is kept",
        )
    if error.errno in _FORBIDDEN:
        return UnavailableError(f"{path} cannot be written", why=os.strerror(error.errno or 0), fix=fix)
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return UnavailableError(f"{path} cannot be made", why=os.strerror(error.errno or 0), fix=fix)
    if error.errno in (errno.ENOENT, errno.ESTALE) and not path.parent.exists():
        return UnavailableError(
            f"{path.parent} is not there any more",
            why="somebody removed or moved the folder while profrun worked with it",
            fix="name it where it is now; if it was removed, submit the job again",
        )
    return UnavailableError(f"{path}: {error.strerror or error}", fix="look at the disk, then try again")


def odd_file(path: Path, why: str) -> InputError:
    """What it means that there is something else in place of a file or folder of a run.

    Args:
        why: what there is, one sentence.
    """
    return InputError(
        f"{path} cannot be used",
        why=f"{why}, and profrun makes none such in a run's folder",
        fix="remove it if you trust the folder; where somebody sent it to you, ask them why it is there",
    )


@contextlib.contextmanager
def explained(path: Path, fix: str = ELSEWHERE) -> Iterator[None]:
    """Turns every OSError inside into one clear line about ``path``; ``fix`` as for ``os_error``."""
    try:
        yield
    except OSError as error:
        raise os_error(
            error, Path(error.filename) if isinstance(error.filename, str) else path, fix
        ) from error


def write_all(fd: int, data: bytes, *, durable: bool = True) -> None:
    """Write every byte and, with ``durable``, sync them to the disk. All writing of the store ends here."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    if durable:
        os.fsync(fd)


@contextlib.contextmanager
def appending(path: Path) -> Iterator[IO[bytes]]:
    """A log of a run, open for appending.

    Raises:
        OSError: it cannot be opened, or something else is in its place.
    """
    with os.fdopen(open_file(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab") as file:
        yield file


def make_dir(path: Path, *, fix: str = ELSEWHERE) -> None:
    """Create a folder and its parents.

    Args:
        fix: what to do where the place may not be written to.

    Raises:
        UnavailableError: it cannot be made (permissions, a full disk, a file in the way).
    """
    with explained(path, fix):
        path.mkdir(parents=True, exist_ok=True)


def write_text(
    path: Path, text: str, *, durable: bool = True, private: bool = False, fix: str = ELSEWHERE
) -> None:
    """Replace ``path`` by ``text`` (UTF-8) in one step: readers see the old or the new content, never half.

    Args:
        durable: survive a loss of power. Off for what can be made again: it costs milliseconds a file.
        private: only its owner may read and write it (mode 0600), from the first byte on.
        fix: what to do where the place may not be written to.

    Raises:
        UnavailableError: the disk is full or the folder cannot be written; the old content is still there.
    """
    try:
        # Names in recordings of others may hold halves of characters, which no file can.
        _replace(path, text.encode("utf-8", "replace"), durable=durable, private=private)
    except OSError as error:  # its own path is the temporary file's, which means nothing to anybody
        raise os_error(error, path, fix) from error
    if durable:
        _sync_dir(path.parent)


def _replace(path: Path, data: bytes, *, durable: bool, private: bool) -> None:
    fd, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        try:
            write_all(fd, data, durable=durable)
            if not private and sys.platform != "win32":  # there a file has the rights of its folder
                os.fchmod(fd, 0o666 & ~_umask())
        finally:
            os.close(fd)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def read_text(path: Path, most: int) -> str:
    """The text of a file, whatever bytes are in it.

    Args:
        most: bytes that it may have.

    Raises:
        InputError: there is something else in its place, or it is larger.
        FileNotFoundError: it is not there.
    """
    try:
        return read_file(path, most).decode("utf-8", "replace")
    except OddFileError as error:
        raise odd_file(path, error.what) from error
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InputError(f"{path} cannot be read", why=error.strerror) from error


def write_json(path: Path, value: Any, *, durable: bool = True, private: bool = False) -> None:
    """``write_text`` of a JSON document, indented, keys in the order given."""
    write_text(path, json.dumps(value, indent=1) + "\n", durable=durable, private=private)


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in ``path``; None when the file is not there.

    Raises:
        InputError: it is there but is not a JSON object.
    """
    try:
        value = json_text.read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OddFileError as error:
        raise odd_file(path, error.what) from error
    except OSError as error:
        raise InputError(f"{path} cannot be read", why=error.strerror) from error
    except JsonError as error:
        raise InputError(f"{path} cannot be read", why=str(error)) from error
    if not isinstance(value, dict):
        raise InputError(f"{path} is not a JSON object", why=f"it holds a {type(value).__name__}")
    return value


def _sync_dir(folder: Path) -> None:
    """Make a rename durable. Some network filesystems refuse to sync a folder; the file itself is synced."""
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _umask() -> int:
    """The process's umask (mkstemp makes 0600 files; runs are shared like any other file)."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def last_line(path: Path, most: int = 300, but: str | None = None) -> str | None:
    """The last line of a log that is not blank, cut to ``most`` characters; None where there is none.

    Args:
        but: regular expression; a line that begins so is passed over.
    """
    try:
        with os.fdopen(open_file(path, os.O_RDONLY), "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 8192))
            lines = [line.strip() for line in file.read().decode(errors="replace").splitlines()]
    except OSError:
        return None
    kept = (line[:most] for line in reversed(lines) if line and not (but and re.match(but, line)))
    return next(kept, None)
