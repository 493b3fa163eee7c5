"""Several wrappers, one per rank, that share a trial folder: who writes what, and who writes exit.json."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from ..contract.codec import DocumentError, from_json, to_json
from ..contract.exit import Exit
from ..contract.finding import Finding
from .files import read_json, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from ..contract.exit import EndState
    from ..contract.paths import TrialPaths
    from ..contract.recording import Rank

_MILDEST_FIRST: tuple[EndState, ...] = ("finished", "cancelled", "timeout", "failed")
_WAIT_S = 60.0


class Ranks:
    """This wrapper among those of the other ranks.

    A launcher inside the command (torchrun) makes ranks that this wrapper is the only one for: then it is
    rank 0 of one. Under srun or mpirun each rank has a wrapper.
    """

    def __init__(self, paths: TrialPaths, own: Rank) -> None:
        self.paths = paths
        self.own = own
        self.raw = paths.rank(own.rank)
        self.suffix = f".rank{own.rank}" if own.rank else ""

    def prepare(self) -> None:
        """Make this rank's folder; a leftover answer of an earlier attempt goes."""
        self.raw.mkdir(parents=True, exist_ok=True)
        self._answer(self.own.rank).unlink(missing_ok=True)

    def answered_for(self) -> list[int]:
        """The ranks this wrapper answers for: its own, and for the first also those that a launcher made."""
        made = {int(path.name[4:]) for path in self.paths.raw.glob("rank*") if path.name[4:].isdigit()}
        return sorted({self.own.rank, *filter(self.covers, made)})

    def covers(self, rank: int) -> bool:
        """Whether this wrapper answers for a rank that there is: no other wrapper does."""
        return rank == self.own.rank or (self.own.rank == 0 and rank >= self.own.world_size)

    def conclude(self, document: Exit, grace: float) -> None:
        """Rank 0 waits for the others' answers (at most ``grace``, 60 s) and writes exit.json.

        Raises:
            OSError: it cannot be written.
        """
        if self.own.rank:
            write_json(self._answer(self.own.rank), to_json(document))
            return
        if self.own.world_size > 1:
            document = self._gather(document, min(grace, _WAIT_S))
        write_json(self.paths.exit, to_json(document))

    def _answer(self, rank: int) -> Path:
        return self.paths.hook / f"exit.rank{rank}.json"

    def _gather(self, document: Exit, patience: float) -> Exit:
        deadline = time.monotonic() + patience
        waiting = set(range(1, self.own.world_size))
        while waiting:
            for rank in sorted(waiting):
                answer = self._read(rank)
                if answer is not None:
                    waiting.discard(rank)
                    document = merge(document, answer)
            if not waiting or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        return silent(document, sorted(waiting)) if waiting else document

    def _read(self, rank: int) -> Exit | None:
        try:
            return from_json(Exit, read_json(self._answer(rank)))
        except DocumentError:  # not there yet
            return None


def silent(document: Exit, ranks: list[int]) -> Exit:
    """The document when these ranks never said how they ended: that is no success."""
    listed = ", ".join(map(str, ranks))
    why = "it was killed, or its node is gone"
    warnings = (*document.warnings, Finding("rank-silent", "warning", f"no word from rank {listed}", why))
    if document.state != "finished":
        return replace(document, warnings=warnings)
    reason = f"rank {listed} never said how it ended"
    return replace(document, warnings=warnings, state="failed", code="rank-silent", reason=reason)


def merge(document: Exit, other: Exit) -> Exit:
    """The document with another rank's answer: the worse state wins, artefacts and warnings add up."""
    new = [warning for warning in other.warnings if warning not in document.warnings]
    merged = replace(
        document,
        artefacts=document.artefacts + other.artefacts,
        ranges_emitted=document.ranges_emitted + other.ranges_emitted,
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
