"""Sentences and tables as lines that keep to a width, where there is one."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from profrun.reports.terminal_sheet import cut

NARROWEST = 12
"""A name is not cut to fewer characters, whatever the width."""


@dataclass(frozen=True)
class Table:
    """Columns two spaces apart; ``right`` are the indices of those aligned to the right."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[int]

    def lines(self, width: int | None) -> list[str]:
        """The header and each row; the widest column of text gives way to the width."""
        rows = [list(self.header), *(list(row) for row in self.rows)]
        widths = [max(len(row[place]) for row in rows) for place in range(len(self.header))]
        over = 0 if width is None else sum(widths) + 2 * len(widths) - width
        if over > 0:
            names = [place for place in range(len(widths)) if place not in self.right]
            widest = max(names, key=lambda place: widths[place])
            widths[widest] = max(widths[widest] - over, NARROWEST)
            for row in rows:
                row[widest] = cut(row[widest], widths[widest])
        return ["  " + "  ".join(self._cells(row, widths)).rstrip() for row in rows]

    def _cells(self, row: Sequence[str], widths: Sequence[int]) -> list[str]:
        return [
            cell.rjust(width) if place in self.right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]


def fit(parts: Iterable[str | Table], width: int | None) -> str:
    """All parts as text; sentences are broken at the width, None for not at all."""
    lines: list[str] = []
    for part in parts:
        if isinstance(part, Table):
            lines += part.lines(width)
        elif width is None or len(part) <= width:
            lines.append(part)
        else:
            indent = part[: len(part) - len(part.lstrip())]
            lines += textwrap.wrap(part, width, subsequent_indent=indent + "  ", break_on_hyphens=False)
    return "\n".join(lines)
