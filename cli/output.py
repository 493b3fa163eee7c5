"""Printing for all commands: a JSON document, sentences or tables on stdout, notes and errors on stderr.

This module alone decides whether colours are used and whether notes are printed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from profrun.cli.asked import asked

if TYPE_CHECKING:
    from profrun.reports.terminal_layout import Part, Style

PIPED_WIDTH = 120
"""Columns that tables keep to where stdout is no terminal."""


def emit(document: object) -> None:
    """Print one JSON document. NaN and infinity are not JSON and raise ValueError."""
    sys.stdout.write(json.dumps(document, indent=1, allow_nan=False, default=str) + "\n")


def say(text: str = "") -> None:
    """Print lines on stdout; on a terminal, what it would obey is shown as an escape, but for colours."""
    if sys.stdout.isatty():
        from profrun.reports.controls import visible_lines

        text = visible_lines(text)
    sys.stdout.write(text + "\n")


def note(text: str) -> None:
    """Print a note on stderr; nothing with ``--quiet``."""
    if not asked().quiet:
        _on_stderr("", text)


def complain(text: str) -> None:
    """Print an error on stderr, with or without ``--quiet``."""
    _on_stderr("profrun", text)


def _on_stderr(label: str, text: str) -> None:
    """Print lines below what was printed on stdout, broken between words where stderr is a terminal."""
    from profrun.reports.terminal_layout import Prose, Style, lay_out  # imported only where it is used

    with contextlib.suppress(OSError):  # a closed pipe or a full disk: ``main`` finds that out at the end
        sys.stdout.flush()  # else a file that takes both streams has the note first
    terminal = sys.stderr.isatty()
    width = os.get_terminal_size(sys.stderr.fileno()).columns if terminal else None
    first, *others = text.split("\n")
    parts = [Prose(first, label=label), *map(Prose, others)]
    sys.stderr.write(lay_out(parts, Style(width, colour=colours_on(sys.stderr))) + "\n")


def colours_on(stream: TextIO) -> bool:
    """Whether to use colours on a stream.

    ``--color`` decides. Without it $NO_COLOR says no (https://no-color.org) and $FORCE_COLOR says yes
    (https://force-color.org), whatever their value, if they are not empty. Without them a terminal that is
    not "dumb" gets colours.
    """
    if asked().colour in ("always", "never"):
        return asked().colour == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def terminal_style() -> Style:
    """The style for this stdout: as wide as the terminal or $COLUMNS, in colour where ``colours_on``.

    Sentences stay on one line where no terminal shows them, so that `grep` finds them.
    """
    from profrun.reports.terminal_layout import Style  # imported only by commands that print for people

    shown = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = shutil.get_terminal_size().columns if shown else PIPED_WIDTH
    return Style(width, wrap=shown, colour=colours_on(sys.stdout))


def shown_path(path: Path | str) -> str:
    """A path as short as it can be used here: relative to the current folder where it lies in it."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def tell(*parts: Part) -> None:
    """Print sentences and tables on stdout, broken at the width of the terminal where there is one."""
    from profrun.reports.terminal_layout import lay_out

    say(lay_out(parts, terminal_style()))


def columns(header: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[int] = ()) -> str:
    """A table whose cells are never cut, for names and answers that are used further; None shows as "-".

    Args:
        header: titles of the columns.
        rows: cells.
        right: indices of columns that are aligned to the right (numbers).
    """
    from profrun.reports.terminal_layout import Style, Table, lay_out

    return lay_out([Table(header, list(rows), right, indent="")], Style(colour=colours_on(sys.stdout)))
