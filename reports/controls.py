"""Text for a terminal without anything that a terminal obeys: ``visible``.

Names of kernels, ranges, jobs, hosts and files come from others. ESC sequences among them could move the
cursor, clear the screen or rename the window; a line break could add a line that profrun never said; letters
that turn the direction of text could make a name look like another one.
"""

from __future__ import annotations

import re

_OBEYED = (
    "\x00-\x1f\x7f-\x9f"  # C0 and C1 controls, with ESC and line breaks
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction of text
    "\u2028\u2029"  # line and paragraph separators
    "\ud800-\udfff"  # halves of letters: bytes of file names that are no text, which UTF-8 cannot hold
)
_CONTROL = re.compile(f"[{_OBEYED}]")
_COLOUR = r"\x1b\[[0-9;]*m"
_IN_LINES = re.compile(f"({_COLOUR})|(?![\n\t])[{_OBEYED}]")


def _escaped(letter: str) -> str:
    """``\\x1b``, ``\\n``, ``\\u202e``: as Python writes it."""
    return ascii(letter)[1:-1]


def visible(text: str) -> str:
    """A text of one line, with everything that a terminal obeys as an escape (``\\x1b``)."""
    if text.isascii() and text.isprintable():
        return text
    return _CONTROL.sub(lambda found: _escaped(found.group()), text)


def visible_lines(text: str) -> str:
    """Lines that a program printed: line breaks, tabs and colours stay, all other controls are escapes."""
    if text.isascii() and text.isprintable():
        return text
    return _IN_LINES.sub(lambda found: found.group(1) or _escaped(found.group()), text)
