"""The layout of everything that a command prints: sentences and tables, at a width where there is one.

Names in them come from others: what a terminal would obey is shown as an escape (``controls``).
``lay_out`` is given parts (sentences and tables, in order) and a style, and returns one text. It does not use
rich: importing rich's tables took 66 ms of CPU time and 3 MB, a quarter of the time of `profrun runs`.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from profrun.contract.units import BYTE_UNITS, TIME_UNITS
from profrun.reports.controls import visible

NARROWEST = 12
"""A name is not cut to fewer characters, whatever the width."""
Tone = Literal["strong", "good", "care", "bad", "faint"]
"""What a piece of text means: a heading, better or done, doubtful, worse or failed, less important."""
CODES: Mapping[Tone, str] = {"strong": "1", "good": "32", "care": "33", "bad": "31", "faint": "2"}
"""ANSI codes: 1 is bold, 2 faint, 31 red, 32 green, 33 yellow."""
LABELS: Mapping[str, str] = {"critical": "1;31", "profrun": "1;31", "care": "1;33", "warning": "1;33"}
"""ANSI codes of labels ("profrun" stands before errors); every other label is bold."""
_UNITS = "|".join(
    [unit for _, unit in (*TIME_UNITS, *BYTE_UNITS)] + ["min", "h", "%", "x", "MHz", "GB/s", "TFLOP/s"]
)
_INSIDE_NUMBER = re.compile(rf"(?<=\d) (?=(?:{_UNITS}|\d{{3}})(?![\w/]))")
"""A space between a number and its unit, or between groups of three digits: no line ends there."""
_NO_BREAK = "\N{NO-BREAK SPACE}"


class Toned(str):
    """A text with a tone, which a terminal shows as a colour; for everything else it is a plain string."""

    tone: Tone

    def __new__(cls, text: str, tone: Tone) -> Toned:
        """A text that has a tone."""
        made = super().__new__(cls, text)
        made.tone = tone
        return made


@dataclass(frozen=True)
class Style:
    """How text is laid out.

    Attributes:
        width: columns that tables keep to, and sentences with ``wrap``; None for tables as wide as they are.
        wrap: break sentences at the width. Without it a sentence stays on one line, so that `grep` finds it.
        colour: use ANSI colours.
    """

    width: int | None = None
    wrap: bool = True
    colour: bool = False


PLAIN = Style()
"""Nothing is broken, cut or coloured."""


@dataclass(frozen=True)
class Prose:
    """A sentence, with a label such as "warning" before it where there is one.

    Attributes:
        text: the sentence; spaces at its start indent it, and its further lines by ``hang`` more.
        label: printed in bold or in its colour, with a colon where a text follows.
        indent: spaces before the label.
        toned: parts of the text that have a tone; of each, its first place in the text is coloured.
        whole: never broken, because it is copied: a command.
    """

    text: str = ""
    label: str = ""
    indent: str = ""
    toned: Sequence[Toned] = ()
    whole: bool = False
    hang: int = 2

    def lines(self, style: Style) -> list[str]:
        """The sentence as lines."""
        whole = self.indent + visible(": ".join(part for part in (self.label, self.text) if part))
        lines = [whole]
        if style.wrap and not self.whole and style.width is not None and len(whole) > style.width:
            indent = whole[: len(whole) - len(whole.lstrip())] + " " * self.hang
            lines = _wrapped(whole, style.width, indent)
        if not style.colour:
            return lines
        head = ""
        if self.label:
            label, code = visible(self.label), LABELS.get(self.label, CODES["strong"])
            head, lines[0] = self.indent + _coloured(label, code), lines[0][len(self.indent) + len(label) :]
        text = "\n".join(lines)
        for part in self.toned:
            text = _tone_first(text, Toned(visible(part), part.tone))
        return (head + text).split("\n")


@dataclass(frozen=True)
class Command:
    """A command to be copied: it stays on one line, whatever the width.

    Attributes:
        text: the command.
        why: what it is for, on the line above.
        indent: spaces before both lines.
    """

    text: str
    why: str
    indent: str = ""

    def lines(self, style: Style) -> list[str]:
        """What it is for, and the command."""
        return [
            *Prose(f"{self.why}:", indent=self.indent).lines(style),
            f"{self.indent}  {visible(self.text)}",
        ]

    def __str__(self) -> str:
        return f"{self.why}: {self.text}"


@dataclass(frozen=True)
class Table:
    """Columns as wide as their widest cell, two spaces apart.

    Attributes:
        header: titles of the columns.
        rows: cells; None is shown as "-".
        right: indices of the columns that are aligned to the right (numbers).
        indent: spaces before each line.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[object]]
    right: Sequence[int] = ()
    indent: str = "  "

    def lines(self, style: Style) -> list[str]:
        """The header and each row; where they do not fit, names are cut, in the widest column first."""
        rows = [
            ["-" if cell is None else visible(str(cell)) for cell in row] for row in (self.header, *self.rows)
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        whole = len(self.indent) + sum(widths) + 2 * (len(widths) - 1)
        over = 0 if style.width is None else whole - style.width
        texts = [place for place in range(len(widths)) if place not in self.right]
        for widest in sorted(texts, key=lambda place: widths[place], reverse=True):
            if over <= 0 or widths[widest] <= NARROWEST:
                break
            over -= widths[widest] - (narrow := max(widths[widest] - over, NARROWEST))
            widths[widest] = narrow
            for row, name in zip(rows, cut_apart([row[widest] for row in rows], narrow), strict=True):
                row[widest] = name
        lines = [self._line(row, widths) for row in rows]
        if not style.colour:
            return lines
        tones = [self._line(row, widths, given) for row, given in zip(rows[1:], self.rows, strict=True)]
        return [_coloured(lines[0], CODES["strong"]), *tones]

    def _line(self, row: Sequence[str], widths: Sequence[int], given: Sequence[object] = ()) -> str:
        """One line; cells whose given value has a tone are coloured."""
        cells = []
        for place, (cell, width) in enumerate(zip(row, widths, strict=True)):
            pad = " " * (width - len(cell))
            value = given[place] if given else None
            shown = _coloured(cell, CODES[value.tone]) if isinstance(value, Toned) else cell
            cells.append(pad + shown if place in self.right else shown + pad)
        return (self.indent + "  ".join(cells)).rstrip()


@dataclass(frozen=True)
class Laid:
    """A line that ``lines`` of another part made: it has its colours and no controls of names."""

    text: str

    def lines(self, style: Style) -> list[str]:
        """The line as it is."""
        return [self.text]


Part = str | Prose | Command | Table | Laid


def lay_out(parts: Iterable[Part], style: Style) -> str:
    """All parts as one text, without spaces at the ends of lines; a string is a sentence without a label."""
    lines: list[str] = []
    for part in parts:
        lines += (Prose(part) if isinstance(part, str) else part).lines(style)
    return "\n".join(line.rstrip() for line in lines)


def titled(title: str, table: Table, *, note: str = "", omitted: int = 0) -> list[Part]:
    """A table below an empty line and its title; nothing where it has no rows.

    Args:
        title: the title.
        table: the table.
        note: a sentence between the title and the table.
        omitted: rows that were left out of the table before; a last line says so.
    """
    if not table.rows:
        return []
    more = [f"  ... and {omitted} more (--top 0 shows all)"] if omitted else []
    return ["", Prose(label=title), *([f"  {note}"] if note else []), table, *more]


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


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    """The lines of a sentence; a number stays with its unit."""
    tied = _INSIDE_NUMBER.sub(_NO_BREAK, text)
    lines = textwrap.wrap(tied, width, subsequent_indent=indent, break_on_hyphens=False)
    return [line.replace(_NO_BREAK, " ") for line in lines]


def _tone_first(text: str, part: Toned) -> str:
    """Colour the first place of a part, also where the end of a line is inside it."""
    pattern = r"(\s+)".join(map(re.escape, part.split()))
    found = re.search(pattern, text)
    if found is None:
        return text
    shown = "\n".join(
        line[: len(line) - len(line.lstrip())] + _coloured(line.lstrip(), CODES[part.tone])
        for line in found.group().split("\n")
    )
    return text[: found.start()] + shown + text[found.end() :]


def _coloured(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"
