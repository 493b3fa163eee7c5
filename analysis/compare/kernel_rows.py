"""What changed by kernel: ``kernel_rows`` is given two sides and returns a row per match of their kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from profrun.analysis.compare.align import align
from profrun.analysis.compare.matching import Match, Piece
from profrun.analysis.compare.model import Row, RowStatus
from profrun.analysis.compare.row_changes import Facts, changes, label
from profrun.analysis.compare.rows import (
    MATTERS,
    UNDECIDED,
    Limits,
    estimate_of,
    judged,
    largest_first,
    new_row,
)
from profrun.analysis.compare.sides import Sides

SAME_CALLS = 0.005
"""Relative difference of calls per step up to which a kernel is called as often."""


def kernel_rows(sides: Sides, threshold: float) -> tuple[Row, ...]:
    """One row per match, largest change first; ``threshold`` as in ``Limits``."""
    a, b = sides
    facts = a.facts, b.facts
    samples, per = (a.samples, b.samples), (a.per, b.per)
    matches = align(a.kernel_groups, b.kernel_groups, samples=samples, facts=facts, per=per)
    rows = [_row(match, facts) for match in matches if match.a or match.b]
    limits = Limits(threshold, MATTERS * sum(row.a_ns for row in rows))
    return largest_first(judged(rows, lambda row: estimate_of(row, sides), limits))


def _row(match: Match, facts: tuple[Facts, Facts]) -> Row:
    """The row of a match, with the status that its kernels and calls tell."""
    (a_ns, a_calls), (b_ns, b_calls) = _sum(match.a), _sum(match.b)
    a_names, b_names = match.names
    labels = label(match.a, facts[0]), label(match.b, facts[1])
    replaced = match.by not in (None, "name") and bool(match.a and match.b)
    row = new_row(" + ".join(a_names or b_names), (a_ns, b_ns), (a_calls, b_calls))
    return replace(
        row,
        status=_status(row, replaced=replaced),
        category=max(match.a or match.b, key=lambda piece: piece.ns).group.category,
        by=match.by,
        changes=changes(match, facts),
        a_names=a_names,
        b_names=b_names,
        replaced_by=" + ".join(b_names) if replaced else None,
        label=f"{labels[0]} -> {labels[1]}" if replaced else labels[0] or labels[1],
    )


def _sum(pieces: Sequence[Piece]) -> tuple[float, float]:
    return sum(piece.ns for piece in pieces), sum(piece.calls for piece in pieces)


def _status(row: Row, *, replaced: bool) -> RowStatus:
    """What names and calls tell of the row; 'unclear' where both sides have the kernel, as often."""
    if replaced:
        return "replaced"
    if not row.a_calls or not row.b_calls:
        return "added" if not row.a_calls else "removed"
    if abs(row.a_calls - row.b_calls) > SAME_CALLS * max(row.a_calls, row.b_calls):
        return "more" if row.b_calls > row.a_calls else "fewer"
    return UNDECIDED
