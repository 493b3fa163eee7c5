"""Source text in a page, where somebody asked for it: ``source_html``; links to it: ``SourceIds``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from profrun.contract.line_names import Line, below
from profrun.contract.units import percent_text
from profrun.reports.content import SOURCE_SHARE
from profrun.reports.html import Html, el
from profrun.reports.place_text import folder_of

if TYPE_CHECKING:
    from profrun.analysis.trace.line_table import PlaceTable
    from profrun.reports.content import Source, SourceBlock


class SourceIds:
    """Which lines have their source in the page, and where.

    Args:
        source: None where the page has none.
        key: prefix of ids, unique in the page.
    """

    def __init__(self, source: Source | None, key: str) -> None:
        self._key = key
        self._numbers: dict[tuple[str, int], str] = {}
        for number, block in enumerate(source.blocks if source else ()):
            for at in range(len(block.lines)):
                self._numbers[block.file, block.first + at] = f"{key}-source-{number}-{block.first + at}"

    def of(self, line: Line) -> str | None:
        """The id of a line in the page; None for one that is not in it."""
        return self._numbers.get((line.file, line.line))


def source_html(source: Source, places: PlaceTable, ids: SourceIds) -> Html:
    """The source, one closed box for each stretch of a file; a link to a line opens its box."""
    share: dict[tuple[str, int], float] = defaultdict(float)
    for row in places.rows:
        if isinstance(row.place, Line):
            share[row.place.file, row.place.line] += row.share
    folder = folder_of(places)
    note = (
        f"Source round the lines with {percent_text(SOURCE_SHARE)} of the GPU time or more, as it was on the "
        "machine that made this page. Secrets that profrun knows by name, form or value are hidden."
    )
    return el(
        "div",
        el("h4", "Source"),
        el("p", note, class_="note"),
        el("ul", (el("li", text) for text in source.notes), class_="plain") if source.notes else None,
        (_block(block, share, ids, folder) for block in source.blocks),
        class_="sources",
    )


def _block(block: SourceBlock, share: Mapping[tuple[str, int], float], ids: SourceIds, folder: str) -> Html:
    last = block.first + len(block.lines) - 1
    title = f"{below(block.file, folder)}, lines {block.first} to {last}"
    whole = sum(share.get((block.file, number), 0.0) for number in range(block.first, last + 1))
    listing = el("pre", _lines(block, share, ids))
    return el(
        "details",
        el("summary", el("code", title), f": {percent_text(whole)} of the GPU time"),
        el("div", listing, class_="scroll listing", tabindex="0", role="region", aria_label=title),
        class_="finding",
    )


def _lines(block: SourceBlock, share: Mapping[tuple[str, int], float], ids: SourceIds) -> Sequence[Html]:
    found = []
    for number, text in enumerate(block.lines, block.first):
        part = share.get((block.file, number))
        shown = percent_text(part) if part else ""
        head = (el("span", f"{number:5d} ", class_="no"), el("span", f"{shown:>8} ", class_="part"))
        id_ = ids.of(Line(block.file, number, ""))
        found.append(el("span", *head, f"{text}\n", class_="src hot" if part else "src", id=id_))
    return found
