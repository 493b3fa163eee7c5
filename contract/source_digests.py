"""``*.sources.json``: digests of the lines of the program's files, as they were when it was mapped.

They tell which line of an edited file is which line of another run, and whether a file on disk is still the
one that ran. They hold no text of the program.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

FORMAT = 1
ENDING = ".sources.json"
_DIGITS = 12


@dataclass(frozen=True)
class SourceFile:
    """A file of the program.

    Attributes:
        path: as Python has it.
        digests: of each line, from line 1; see ``digest``.
    """

    path: str
    digests: tuple[str, ...]


@dataclass(frozen=True)
class SourceDigests:
    """The files of a process that was mapped."""

    files: tuple[SourceFile, ...] = ()
    format: int = FORMAT


def digest(line: str) -> str:
    """The first 12 hexadecimal digits of the SHA-256 of a line without spaces at its ends; "" of a blank."""
    text = line.strip()
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_DIGITS] if text else ""


def digests_of(text: str) -> tuple[str, ...]:
    """The digest of each line of a file."""
    return tuple(digest(line) for line in text.splitlines())
