"""``private.json`` on disk: written for its owner alone, and read only where it is a file of its own."""

from __future__ import annotations

import contextlib
from pathlib import Path

from profrun.contract import json_text
from profrun.contract.codec import DocumentError, from_json, to_json
from profrun.contract.private import NAME, Private
from profrun.errors import InputError
from profrun.store.files import write_json


def write_private(folder: Path, value: Private) -> None:
    """Write ``private.json`` of a run or a trial: mode 0600 from the first byte on, whole or not at all.

    Raises:
        UnavailableError: the folder cannot be written or the disk is full.
    """
    write_json(folder / NAME, to_json(value), private=True)


def read_private(folder: Path) -> Private | None:
    """``private.json`` of a run or a trial; None where there is none.

    Raises:
        InputError: it is a link or damaged.
    """
    path = folder / NAME
    try:
        return from_json(Private, json_text.read(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, json_text.JsonError, DocumentError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)[:200]
        raise InputError(f"{path} cannot be read", why=why) from error


def forget_private(folder: Path) -> None:
    """Remove ``private.json`` of a trial that has ended."""
    with contextlib.suppress(OSError):
        (folder / NAME).unlink()
