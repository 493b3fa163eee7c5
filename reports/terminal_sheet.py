"""Lines and tables of text that keep to a width."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from io import StringIO

COLOURS = {
    "wrong": "bold red",
    "critical": "bold red",
    "care": "bold yellow",
    "warning": "bold yellow",
    "note": "bold",
    "info": "bold",
}


class Sheet:
    """Lines of text, wrapped where asked, with colours where asked.

    Args:
        width: columns that tables keep to.
        wrap: break prose at the width too; without it a message stays on one line, for ``grep``.
        colour: use ANSI colours.
    """

    def __init__(self, width: int, *, wrap: bool, colour: bool) -> None:
        from rich.console import Console

        self.width, self.wrap = width, wrap
        self._out = StringIO()
        self._console = Console(
            file=self._out, width=width, force_terminal=colour, color_system="standard" if colour else None,
            no_color=not colour, highlight=False, markup=False, emoji=False, legacy_windows=False,
        )  # fmt: skip

    def prose(self, text: str, *, word: str = "", indent: str = "") -> None:
        """A paragraph; ``word`` in front of it is coloured by what it says."""
        from rich.text import Text

        whole = f"{indent}{word}{': ' if word else ''}{text}"
        lines = [whole]
        if self.wrap and whole:
            lines = textwrap.wrap(
                whole,
                self.width,
                subsequent_indent=indent + "  ",
                break_on_hyphens=False,
            )
        for number, line in enumerate(lines):
            shown = Text(line)
            if word and not number:
                shown.stylize(COLOURS.get(word, "bold"), len(indent), len(indent) + len(word))
            self._console.print(shown, soft_wrap=True)

    def table(
        self, title: str, header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int,
        omitted: int = 0, note: str = "",
    ) -> None:  # fmt: skip
        """Columns with two spaces in front; the first takes what the others leave and is cut with '...'.

        Args:
            left: how many columns, from the first, are text; the others are numbers, to the right.
            omitted: rows that were cut off before. note: a sentence under the title.
        """
        from rich.table import Table

        if not rows:
            return
        self.prose("")
        self._console.print(title, style="bold")
        if note:
            self.prose(note, indent="  ")
        rest = sum(max(len(row[at]) for row in [header, *rows]) + 2 for at in range(1, len(header)))
        room = max(self.width - 2 - rest, 12)
        found = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_edge=False, header_style="bold")
        for number, name in enumerate(header):
            found.add_column(
                name, justify="left" if number < left else "right", no_wrap=True, overflow="crop"
            )
        for name, row in zip(cut_apart([row[0] for row in rows], room), rows, strict=True):
            found.add_row(name, *row[1:])
        from rich.padding import Padding

        self._console.print(Padding(found, (0, 0, 0, 2)))
        if omitted:
            self.prose(f"... and {omitted} more (--top 0 shows all)", indent="  ")

    def text(self) -> str:
        """Everything so far, without spaces at the ends of lines."""
        return "\n".join(line.rstrip() for line in self._out.getvalue().splitlines())


def cut_apart(names: Sequence[str], room: int) -> list[str]:
    """Names in at most ``room`` characters each; those that a cut makes alike show where they differ."""
    shown = {name: cut(name, room) for name in names}
    for text in set(shown.values()):
        shown |= _apart([name for name in shown if shown[name] == text], room)
    return [shown[name] for name in names]


def _apart(names: Sequence[str], room: int) -> dict[str, str]:
    """What to show for names that look alike; nothing when they cannot be told apart in that room."""
    if len(names) < 2 or room < 20:
        return {}
    first, last = min(names), max(names)  # what these two share all of them share
    at = next((n for n, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))
    found = {name: _about(name, at, room) for name in names}
    groups = [[name for name in names if found[name] == text] for text in set(found.values())]
    if len(groups) == 1:
        return {}
    for group in groups:
        found |= _apart(group, room)
    return found


def _about(name: str, at: int, room: int) -> str:
    """The beginning of a name and what stands round a place in it."""
    head, size = 5, room - 5 - 6
    start = max(head, min(at - size // 3, len(name) - size))
    end = "..." if start + size < len(name) else ""
    return f"{name[:head]}...{name[start : start + size]}{end}"


def cut(name: str, room: int) -> str:
    """A name in at most ``room`` characters; the middle goes, because kernels often differ at their ends."""
    head = (room - 2) // 2
    return name if len(name) <= room else f"{name[:head]}...{name[len(name) - (room - 3 - head) :]}"
