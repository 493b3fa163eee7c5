"""All points that two sides have in common, compared, as text for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profrun.contract.profilers import under_text
from profrun.reports.compare_sentence import Called, go_on, verdict_line
from profrun.reports.compare_text import answer_parts, comparison_text, detail_parts
from profrun.reports.terminal_layout import PLAIN, Part, Prose, Style, lay_out

if TYPE_CHECKING:
    from profrun.analysis.compare.point_pairs import PointPair, PointPairs


def point_pairs_text(
    found: PointPairs, style: Style = PLAIN, *, top: int = 20, called: Called | None = None
) -> str:
    """The whole answer for a terminal: each pair in a line, then what changed in the one that tells most.

    Args:
        found: the compared points.
        style: width and colours.
        top: rows of the view; 0 for all.
        called: what the user called; a refusal shows it with what makes it go on.
    """
    left_out = [Prose(str(one), "left out") for one in found.left_out]
    if len(found.pairs) == 1:
        text = comparison_text(found.pairs[0].comparison, style, top=top, called=called)
        return "\n".join(filter(None, [text, lay_out(left_out, style)]))
    parts: list[Part] = []
    several = len(found.variants) > 1
    for variants in found.variants:
        for pair in found.of(variants):
            parts += _one(pair, steps=pair is found.deciding(variants), named=several)
    parts += left_out
    if not several:
        pair = found.telling(found.variants[0])
        parts += ["", Prose(label=f"what changed {how_recorded(pair)}")]
        parts += detail_parts(pair.comparison, top)
    commands = dict.fromkeys(one for pair in found.pairs for one in go_on(pair.comparison, called))
    return lay_out([*parts, *([""] if commands else []), *commands], style)


def _one(pair: PointPair, *, steps: bool, named: bool) -> list[Part]:
    """The verdict of a pair; what can be done is said once per variant."""
    label = f"{variants_name(pair.variants)}, {how_recorded(pair)}" if named else how_recorded(pair)
    parts = answer_parts(pair.comparison) if steps else [verdict_line(pair.comparison)]
    return [Prose(str(parts[0]), label), *parts[1:]]


def how_recorded(pair: PointPair) -> str:
    """``without a profiler``, ``under torch, blocking``."""
    one = pair.recorder
    how = under_text(one.collector if one.profiled else None)
    return f"{how}, blocking" if one.blocking else how


def variants_name(variants: tuple[str | None, str | None]) -> str:
    """The variant of both sides, or both where their names differ."""
    return " -> ".join(dict.fromkeys(name or "unnamed" for name in variants))
