"""Several wrappers, one per rank, that share a trial folder: who writes what, and who writes exit.json."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from ..contract.codec import to_json
from .files import write_json
from .rank_answers import Stop, gathered, rank_list, read_answers

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..contract.exit import Exit
    from ..contract.paths import TrialPaths
    from ..contract.recording import Rank
    from .rank_signs import RankSigns

    Hear = Callable[[float], "str | None"]
    """Waits so many seconds; returns the name of a signal to end that came meanwhile, else None."""

_OFTEN_S, _SELDOM_S = 0.1, 2.0
"""Bounds of the time between two looks for answers; it grows while nothing is found."""
_SPARE_S = 10.0
"""Seconds beyond the grace in which the other ranks write how they ended, once all are asked to end."""
_LAST_S = 2.0
"""The same after the second signal."""


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
        self.paths.answer(self.own.rank).unlink(missing_ok=True)

    def answered_for(self) -> list[int]:
        """The ranks this wrapper answers for: its own, and for the first also those that a launcher made."""
        made = {int(path.name[4:]) for path in self.paths.raw.glob("rank*") if path.name[4:].isdigit()}
        return sorted({self.own.rank, *filter(self.covers, made)})

    def covers(self, rank: int) -> bool:
        """Whether this wrapper answers for a rank that there is: no other wrapper does."""
        return rank == self.own.rank or (self.own.rank == 0 and rank >= self.own.world_size)

    def conclude(
        self, document: Exit, signs: RankSigns, hear: Hear, grace: float, tell: Callable[[str], None]
    ) -> None:
        """Rank 0 waits for the answers of the others and writes exit.json; the others write their answer.

        It waits as long as their wrappers live, and ``grace`` seconds after a signal to end.

        Args:
            tell: told which ranks it waits for, when that has changed.

        Raises:
            OSError: it cannot be written.
        """
        if self.own.world_size > 1:
            write_json(self.paths.answer(self.own.rank), to_json(document))
            if document.state == "failed":
                signs.say_failed()
        if self.own.rank:
            return
        if self.own.world_size > 1:
            document = self._gather(document, signs, hear, grace, tell)
        write_json(self.paths.exit, to_json(document))

    def _gather(
        self, own: Exit, signs: RankSigns, hear: Hear, grace: float, tell: Callable[[str], None]
    ) -> Exit:
        began, told = time.monotonic(), ""
        by = own.stopped_by if str(own.stopped_by).startswith("SIG") else None
        until = began + grace + _SPARE_S if by else None
        answers = {0: own}
        while True:
            try:
                signs.look()
            except OSError:  # the folder does not answer now
                pass
            answers.update(read_answers(self.paths, own.attempt, signs.answered - answers.keys()))
            waiting = set(range(self.own.world_size)) - answers.keys()
            now = time.monotonic()
            over = until is not None and now >= until
            if over or waiting <= signs.dead(waiting, began):
                break
            if rank_list(waiting) != told:
                tell(told := rank_list(waiting))
            asked = hear(min(_SELDOM_S, max(_OFTEN_S, (now - began) / 10)))
            if asked is not None and (by is None or asked != "SIGURG"):
                left = grace + _SPARE_S if by is None else _LAST_S
                until = min(until or float("inf"), time.monotonic() + left)
                by = by or asked
        stop = Stop(by, self.paths.cancel.exists(), batch_system()) if by else None
        return gathered(answers, self.own.world_size, stop)


def batch_system() -> str | None:
    """The batch system that runs this wrapper; None when there is none."""
    return "Slurm" if "SLURM_JOB_ID" in os.environ else None
