"""Printing: one JSON document or plain columns on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any


def emit(document: Any) -> None:
    """Print one JSON document. NaN and infinity are not JSON: they are a bug here, not a value."""
    sys.stdout.write(json.dumps(document, indent=1, allow_nan=False, default=str) + "\n")


def say(text: str = "") -> None:
    """A line for the person, on stdout."""
    sys.stdout.write(text + "\n")


def note(text: str) -> None:
    """A line beside the answer, on stderr."""
    sys.stderr.write(text + "\n")


def terminal_width(otherwise: int = 100) -> int:
    """Columns of the terminal ($COLUMNS goes first); ``otherwise`` where stdout is no terminal."""
    if not sys.stdout.isatty() and "COLUMNS" not in os.environ:
        return otherwise
    return shutil.get_terminal_size().columns


def terminal_style() -> tuple[int, bool, bool]:
    """(columns, whether to wrap prose, whether to use colours) of what is printed.

    Prose stays on one line where no terminal shows it, so that ``grep`` finds it; colours obey $NO_COLOR.
    """
    terminal = sys.stdout.isatty()
    colour = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return terminal_width(), terminal or "COLUMNS" in os.environ, colour


def prose_width() -> int | None:
    """Columns that sentences and tables keep to; None where no terminal shows them."""
    width, wrap, _ = terminal_style()
    return width if wrap else None


def tell(text: str) -> None:
    """A sentence on stdout, broken at the width of the terminal where there is one."""
    from profrun.reports.terminal_layout import fit  # not for every command's start

    say(fit([text], prose_width()))


def columns(
    header: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[int] = (), indent: str = ""
) -> str:
    """A plain table: columns as wide as their widest cell, two spaces apart; None shows as '-'.

    Args:
        right: indices of columns that are aligned to the right (numbers).
    """
    cells = [list(header)] + [["-" if cell is None else str(cell) for cell in row] for row in rows]
    widths = [max(len(row[index]) for row in cells) for index in range(len(header))]
    lines = []
    for row in cells:
        parts = [
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((indent + "  ".join(parts)).rstrip())
    return "\n".join(lines)
