"""Names of the ranges round lines of the program: the hook makes them, the analysis takes them apart."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import NamedTuple

LINE = "profrun.line "
"""Beginning of the name of such a range."""

PATTERN = re.compile(rf"^{re.escape(LINE)}(?P<file>.+):(?P<line>\d+) (?P<function>\S+)$")
"""The whole name."""


class Line(NamedTuple):
    """A line of a program.

    Attributes:
        file: its path, as Python has it.
        line: its number, from 1.
        function: the function that it lies in, ``<module>`` for none.
    """

    file: str
    line: int
    function: str


def line_name(line: Line) -> str:
    """The name of the range round a line."""
    return f"{LINE}{line.file}:{line.line} {line.function}"


def parse_line(name: str) -> Line | None:
    """The line of a range; None for a range that is round no line."""
    found = PATTERN.match(name) if name.startswith(LINE) else None
    return Line(found["file"], int(found["line"]), found["function"]) if found else None


def common_folder(files: Iterable[str]) -> str:
    """The folder that all these files have in common; empty for none."""
    folders = {os.path.dirname(file) for file in files}  # noqa: PTH120 - paths of another machine
    if not folders:
        return ""
    try:
        found = os.path.commonpath(folders)
    except ValueError:  # absolute and relative paths
        return ""
    return "" if found == os.sep else found


def below(file: str, folder: str) -> str:
    """The path of a file below a folder; as it is where it lies elsewhere."""
    inside = folder and file.startswith(f"{folder}{os.sep}")
    return file[len(folder) + 1 :] if inside else file
