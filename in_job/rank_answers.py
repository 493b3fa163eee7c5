"""What the wrappers of a trial say about their ranks, put together to one ``Exit``. Pure but for reading.

Rank 0 does it when all have answered, and the driver again with answers that came later.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..contract.codec import DocumentError, from_json
from ..contract.ends import stopped_text
from ..contract.exit import Exit
from ..contract.finding import Finding
from .files import read_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..contract.exit import EndState
    from ..contract.paths import TrialPaths

RANK_SILENT = "rank-silent"
"""Code of a trial whose rank never said how it ended, and of the finding that names the rank."""
ENDED_WITH_RANK = "ended-with-rank"
"""Code of a rank that was ended because another one had failed."""

_MILDEST_FIRST: tuple[EndState, ...] = ("finished", "cancelled", "timeout", "failed")
_ANSWER = re.compile(r"exit\.rank(\d+)\.json")
_SHOWN = 4


@dataclass(frozen=True)
class Stop:
    """Why rank 0 did not wait for all ranks.

    Attributes:
        by: name of the signal that asked for the end.
        cancelled: somebody cancelled the trial.
        batch_system: the batch system that runs it, None when there is none.
    """

    by: str
    cancelled: bool = False
    batch_system: str | None = None


def answered(paths: TrialPaths) -> set[int]:
    """Ranks that have said how they ended, by one listing, which also shows new files on NFS."""
    try:
        names = os.listdir(str(paths.hook))
    except OSError:
        return set()
    return {int(found[1]) for found in map(_ANSWER.fullmatch, names) if found is not None}


def read_answers(paths: TrialPaths, attempt: int, ranks: Iterable[int]) -> dict[int, Exit]:
    """The answers of these ranks that are there, of this attempt, by rank."""
    found = {}
    for rank in ranks:
        try:
            answer = from_json(Exit, read_json(paths.answer(rank)))
        except DocumentError:  # not there yet
            continue
        if answer.attempt == attempt:
            found[rank] = answer
    return found


def gathered(answers: Mapping[int, Exit], wrappers: int, stop: Stop | None = None) -> Exit:
    """How the trial ended.

    Args:
        answers: by rank; rank 0 is among them.
        wrappers: how many there are.
        stop: why those that are missing were not waited for; None: they gave no sign of life.
    """
    document = answers[0]
    for rank in sorted(answers.keys() - {0}):
        document = merge(document, answers[rank])
    left = sorted(set(range(wrappers)) - answers.keys())
    document = replace(document, wrappers=wrappers, silent=tuple(left))
    return silent(document, left, stop) if left else document


def silent(document: Exit, ranks: list[int], stop: Stop | None = None) -> Exit:
    """The document when these ranks did not say how they ended: that is no success."""
    who = rank_list(ranks)
    it = "it" if len(ranks) == 1 else "they"
    why = f"{it} had not ended when the time for that was over"
    if stop is None:
        why = "it was killed, or its node is gone"
        why = why if len(ranks) == 1 else "they were killed, or their nodes are gone"
    warnings = (*document.warnings, Finding(RANK_SILENT, "warning", f"no word from {who}", why))
    document = replace(document, warnings=warnings)
    if document.state != "finished" and document.code != ENDED_WITH_RANK:
        return document
    if stop is None:
        reason = f"{who} never said how {it} ended: {why}"
        return replace(document, state="failed", code=RANK_SILENT, reason=reason)
    if stop.cancelled or stop.by == "SIGINT":
        reason = f"it was cancelled; {who} never said how {it} ended"
        return replace(document, state="cancelled", code="cancelled", reason=reason, stopped_by=stop.by)
    reason = f"{stopped_text(stop.by, stop.batch_system)}; {who} never said how {it} ended"
    return replace(document, state="timeout", code="ended-from-outside", reason=reason, stopped_by=stop.by)


def merge(document: Exit, other: Exit) -> Exit:
    """The document with another rank's answer: the worse state wins, artefacts and warnings add up."""
    new = [warning for warning in other.warnings if warning not in document.warnings]
    merged = replace(
        document,
        artefacts=document.artefacts + other.artefacts,
        ranges_emitted=document.ranges_emitted + other.ranges_emitted,
        nodes=tuple(sorted({*document.nodes, *other.nodes})),
        tool=document.tool or other.tool,
        tool_version=document.tool_version or other.tool_version,
        warnings=document.warnings
        + tuple(replace(warning, what=f"rank {other.rank}: {warning.what}") for warning in new),
    )
    if _MILDEST_FIRST.index(other.state) <= _MILDEST_FIRST.index(document.state):
        return merged
    return replace(
        merged,
        state=other.state,
        exit_code=other.exit_code,
        signal=other.signal,
        stopped_by=other.stopped_by,
        code=other.code,
        reason=f"rank {other.rank}: {other.reason}",
    )


def rank_list(ranks: Iterable[int]) -> str:
    """Ranks in few words: "rank 3", "ranks 3, 17-40", "ranks 1, 3, 5, 7 and 470 more"."""
    spans: list[list[int]] = []
    for rank in sorted(ranks):
        if spans and spans[-1][-1] == rank - 1:
            spans[-1].append(rank)
        else:
            spans.append([rank])
    words = [f"{span[0]}-{span[-1]}" if len(span) > 1 else str(span[0]) for span in spans[:_SHOWN]]
    more = sum(map(len, spans[_SHOWN:]))
    one = len(spans) == 1 and len(spans[0]) == 1
    return f"rank{'' if one else 's'} {', '.join(words)}" + (f" and {more} more" if more else "")
