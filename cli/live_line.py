"""One line of a terminal that is drawn again and again: ``LiveLine``.

The cursor waits at the beginning of the line. When a terminal becomes narrower, it either cuts the line or
breaks it into several. In both cases all of it begins at the cursor, so clearing from there to the end of
the screen removes it. With a cursor at the end of the line, as ``rich.live`` has it, a part would stay.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from profrun.reports.controls import visible
from profrun.reports.terminal_layout import Tone
from profrun.reports.tones import TONES

_STYLES: dict[Tone, str] = {"good": "green", "care": "yellow", "bad": "red", "strong": "bold", "faint": "dim"}
_CLEAR = "\r\x1b[J"
"""To the beginning of the line, and clear from there to the end of the screen."""
_FIELDS: tuple[Tone | None, ...] = ("good", "strong", None, None, None, None, "faint")
"""Tone of each part of the line."""
_LESS = (0, 5, 2, 6)
"""Parts that are left out where the line is too long, in this order."""
_SHORTEST = 8
"""The label is not cut to fewer characters."""
_LABEL = 3
"""Place of the label among the parts."""


class LiveLine:
    """Draws on stderr.

    Args:
        colours: use colours.
    """

    def __init__(self, *, colours: bool) -> None:
        self._console = Console(
            stderr=True,
            highlight=False,
            force_terminal=True,
            color_system="standard" if colours else None,
            no_color=not colours,
            legacy_windows=False,
        )
        self._fields: list[str] = []
        self._console.show_cursor(False)

    def draw(self, fields: Sequence[str]) -> None:
        """Draw the line in place of the one before.

        Args:
            fields: its parts (see ``profrun.cli.progress.Progress.live_fields``).
        """
        self._fields = [visible(field) for field in fields]
        self._send(_CLEAR + self._line())

    def above(self, text: str, state: str | None = None) -> None:
        """Print a whole line above the live one.

        Args:
            text: the line.
            state: the state in it that has a tone, if any.
        """
        shown = Text(visible(text))
        if state is not None:
            shown.highlight_words([f": {state}"], _STYLES[TONES[state]])
        with self._console.capture() as printed:
            self._console.print(shown)
        self._send(_CLEAR + printed.get() + (self._line() if self._fields else ""))

    def close(self) -> None:
        """Remove the line."""
        self._send(_CLEAR)
        self._console.show_cursor(True)

    def _line(self) -> str:
        """The live line as it is sent; the cursor goes back to its beginning."""
        line = fitted(self._fields, self._console.width - 1)
        with self._console.capture() as printed:
            self._console.print(line, end="\r", no_wrap=True, overflow="crop", soft_wrap=False)
        return printed.get()

    def _send(self, text: str) -> None:
        """Send it in one piece: stderr sends up to each carriage return, and the line would flicker."""
        self._console.file.write(text)
        self._console.file.flush()


def fitted(fields: Sequence[str], width: int) -> Text:
    """The line in at most ``width`` cells: what tells least is left out, then the label is cut."""
    shown = list(fields)
    for place in _LESS:
        if _length(shown) > width:
            shown[place] = ""
    over = _length(shown) - width
    if over > 0:
        shown[_LABEL] = shown[_LABEL][: max(len(shown[_LABEL]) - over, _SHORTEST)]
    text = Text("  ").join(
        Text(part, style=_STYLES[tone] if tone is not None else "")
        for part, tone in zip(shown, _FIELDS, strict=True)
        if part
    )
    text.truncate(width, overflow="ellipsis")
    return text


def _length(fields: Sequence[str]) -> int:
    return cell_len("  ".join(part for part in fields if part))
