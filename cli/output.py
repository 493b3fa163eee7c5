"""Printing for all commands: a JSON document, sentences or tables on stdout, remarks on stderr."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from profrun.reports.terminal_layout import Style

PIPED_WIDTH = 120
"""Columns that tables keep to where stdout is no terminal."""


def emit(document: object) -> None:
    """Print one JSON document. NaN and infinity are not JSON and raise ValueError."""
    sys.stdout.write(json.dumps(document, indent=1, allow_nan=False, default=str) + "\n")


def say(text: str = "") -> None:
    """Print a line on stdout."""
    sys.stdout.write(text + "\n")


def note(text: str) -> None:
    """Print a remark on stderr."""
    sys.stderr.write(text + "\n")


def terminal_style() -> Style:
    """The style for this stdout: as wide as the terminal or $COLUMNS; colours obey $NO_COLOR.

    Sentences stay on one line where no terminal shows them, so that `grep` finds them.
    """
    from profrun.reports.terminal_layout import Style  # imported only by commands that print for people

    terminal = sys.stdout.isatty()
    shown = terminal or "COLUMNS" in os.environ
    colour = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    width = shutil.get_terminal_size().columns if shown else PIPED_WIDTH
    return Style(width, wrap=shown, colour=colour)


def tell(text: str) -> None:
    """Print a sentence on stdout, broken at the width of the terminal where there is one."""
    from profrun.reports.terminal_layout import lay_out

    say(lay_out([text], terminal_style()))


def columns(header: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[int] = ()) -> str:
    """A table whose cells are never cut, for names and answers that are used further; None shows as "-".

    Args:
        header: titles of the columns.
        rows: cells.
        right: indices of columns that are aligned to the right (numbers).
    """
    from profrun.reports.terminal_layout import Style, Table, lay_out

    return lay_out([Table(header, list(rows), right, indent="")], Style())
