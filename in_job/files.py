"""Files that are whole or not there: written to a temporary name, then renamed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TextIO

from ..contract import json_text
from ..contract.ends import DISK_FULL_ERRORS
from ..contract.safe_files import open_file

RESERVE_BYTES = 256 * 1024


def write_json(path: Path, value: object) -> None:
    """Write a JSON document and rename it into place.

    Raises:
        OSError: the folder is not writable or the disk is full; the old file, if any, is untouched.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with _new(temporary) as file:
            json.dump(value, file, indent=1, default=str)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def _new(path: Path) -> TextIO:
    """A new file under a name that only this process uses; what an earlier one of its number left goes."""
    path.unlink(missing_ok=True)
    return os.fdopen(open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "w", encoding="utf-8")


def read_json(path: Path) -> dict[str, object] | None:
    """The object in a file, or None when there is none or it is not a whole JSON object."""
    try:
        value = json_text.read(path)
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def is_full(folder: Path) -> bool:
    """Whether the disk of a folder, or the user's part of it, has no room for a small file."""
    probe = folder / f".room.{os.getpid()}"
    try:
        with os.fdopen(open_file(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            file.write(b"\0" * RESERVE_BYTES)
            file.flush()
            os.fsync(file.fileno())  # some network filesystems say only then that there is no room
    except OSError as error:
        return error.errno in DISK_FULL_ERRORS
    finally:
        probe.unlink(missing_ok=True)
    return False


class Reserve:
    """Some room on the disk, held from the start so that exit.json can be written when the disk is full.

    Args:
        rank: of the wrapper, of which each has its own: in two containers they have the same pid.
    """

    def __init__(self, folder: Path, size: int = RESERVE_BYTES, *, rank: int = 0) -> None:
        self.path = folder / f".reserve.rank{rank}"
        try:
            with os.fdopen(open_file(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
                file.write(b"\0" * size)
        except OSError:
            self.path.unlink(missing_ok=True)

    def release(self) -> None:
        """Give the room back."""
        self.path.unlink(missing_ok=True)


def set_phase(folder: Path, phase: str, since_ns: int, **more: object) -> None:
    """Say what the wrapper does now (``status`` shows it): preflight, app, finalise, export. Never raises.

    Args:
        since_ns: since when, unix time, ns.
        more: further fields of the file.
    """
    try:
        path = folder / "phase"
        temporary = folder / f".phase.{os.getpid()}.tmp"
        with _new(temporary) as file:
            file.write(json.dumps({"phase": phase, "since_ns": since_ns, **more}) + "\n")
        temporary.replace(path)
    except OSError:
        pass
