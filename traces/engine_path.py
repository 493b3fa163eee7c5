"""Paths as DuckDB takes them: text in UTF-8, whatever the locale is.

Python decodes file names by the locale (``LC_ALL=C``: ASCII, the rest as lone surrogates), and the engine
refuses a text with such letters by an error of C++ that names nothing.
"""

from __future__ import annotations

import os
from pathlib import Path

from profrun.errors import InputError


def engine_path(path: Path) -> str:
    """The path as UTF-8 text.

    Raises:
        InputError: its bytes are no UTF-8.
    """
    try:
        return os.fsencode(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"the path {os.fsencode(path)!r} cannot be used",
            why="it is no UTF-8 text, and the engine that reads and writes traces knows no other",
            fix="rename the file or folder, or name another",
        ) from error


def sql_path(path: Path) -> str:
    """The path as a literal of SQL.

    Raises:
        InputError: its bytes are no UTF-8.
    """
    return "'" + engine_path(path).replace("'", "''") + "'"
