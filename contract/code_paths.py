"""Whose code a file is, as far as its path tells: inside a job and where a recording is read.

The program's own code is neither Python's nor an installed package's nor profrun's. Code that torch.compile
has generated counts as the program's own: what it launches is told apart by its lines.
"""

from __future__ import annotations

import re

_PACKAGES = ("site-packages", "dist-packages")
_PYTHON = re.compile(r"(?:^|/)lib/python3\.\d+/")
_OURS = "_profrun"
"""Name of profrun's package in a job."""
_GENERATED = "torchinductor_"
"""Beginning of the name of the folder in which torch.compile keeps its code, where nobody has moved it."""


def package_of(file: str) -> str | None:
    """The installed package, or single module, that a file belongs to; None for none."""
    parts = file.split("/")
    for place, part in enumerate(parts[:-1]):
        if part in _PACKAGES:
            return parts[place + 1].partition(".")[0]
    return None


def is_generated(file: str) -> bool:
    """Whether torch.compile has made this file, in the folder that it uses by itself."""
    return any(part.startswith(_GENERATED) for part in file.split("/"))


def is_own(file: str) -> bool:
    """Whether a file is the program's own."""
    if file.startswith("<"):  # made of a text, or frozen
        return False
    if is_generated(file):
        return True
    return package_of(file) is None and _OURS not in file.split("/") and not _PYTHON.search(file)
