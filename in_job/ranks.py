"""Several wrappers, one a rank, that share a trial folder: who writes what, and who writes exit.json."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from .files import read_json, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from ..contract.recording import Rank

_SEVERITY = ("finished", "cancelled", "timeout", "failed")
_WAIT_S = 60.0


class Ranks:
    """This wrapper among its siblings.

    A launcher inside the command (torchrun) makes ranks that this wrapper is the only one for: then it is
    rank 0 of one. Under srun or mpirun each rank has a wrapper.
    """

    def __init__(self, folder: Path, place: Rank) -> None:
        self.folder = folder
        self.place = place
        self.raw = folder / "raw" / f"rank{place.rank}"
        self.suffix = f".rank{place.rank}" if place.rank else ""

    def prepare(self) -> None:
        """Make this rank's folder; a leftover answer of an earlier attempt goes."""
        self.raw.mkdir(parents=True, exist_ok=True)
        self._answer(self.place.rank).unlink(missing_ok=True)

    def own(self) -> list[int]:
        """The ranks this wrapper answers for: its own, and for the first also those that a launcher made."""
        if self.place.rank:
            return [self.place.rank]
        others = set(range(1, self.place.world_size))
        made = {int(path.name[4:]) for path in (self.folder / "raw").glob("rank*") if path.name[4:].isdigit()}
        return sorted({0} | (made - others))

    def conclude(self, document: dict[str, Any], grace: float) -> None:
        """Rank 0 waits for the others' answers (at most ``grace``, 60 s) and writes exit.json.

        Raises:
            OSError: it cannot be written.
        """
        if self.place.rank:
            write_json(self._answer(self.place.rank), document)
            return
        if self.place.world_size > 1:
            self._gather(document, min(grace, _WAIT_S))
        write_json(self.folder / "exit.json", document)

    def _answer(self, rank: int) -> Path:
        return self.folder / "hook" / f"exit.rank{rank}.json"

    def _gather(self, document: dict[str, Any], patience: float) -> None:
        deadline = time.monotonic() + patience
        waiting = set(range(1, self.place.world_size))
        while waiting:
            for rank in sorted(waiting):
                answer = read_json(self._answer(rank))
                if answer is not None:
                    waiting.discard(rank)
                    merge(document, answer)
            if not waiting or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        if waiting:
            listed = ", ".join(map(str, sorted(waiting)))
            document["warnings"].append(f"no word from rank {listed}: it was killed, or its node is gone")
            if document["state"] == "finished":
                document["state"] = "failed"
                document["reason"] = f"rank {listed} never said how it ended"


def merge(document: dict[str, Any], other: dict[str, Any]) -> None:
    """Add another rank's answer: the worse state wins, artefacts and warnings add up."""
    if _SEVERITY.index(other["state"]) > _SEVERITY.index(document["state"]):
        for key in ("state", "exit_code", "signal", "stopped_by"):
            document[key] = other[key]
        document["reason"] = f"rank {other['rank']}: {other['reason']}"
    document["artefacts"] += other["artefacts"]
    document["ranges_emitted"] += other["ranges_emitted"]
    for warning in other["warnings"]:
        if warning not in document["warnings"]:
            document["warnings"].append(f"rank {other['rank']}: {warning}")
