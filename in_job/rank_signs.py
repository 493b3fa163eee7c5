"""Signs of life of the wrappers that share a trial, one per rank: files in the trial's ``hook`` folder.

``alive.rank<k>`` is touched while the wrapper of rank k lives: also while a profiler writes for minutes. Rank
0 reads them with one listing of the folder: a rank that is late is told from one that was killed.
``failed/rank<k>`` says that a rank has failed: a rank that waits for it in vain is then ended. Ages are those
that the reader itself has seen pass, so the clocks of the hosts need not agree.
"""

from __future__ import annotations

import os
import re
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ..contract.recording import Rank

_BEAT_S = 15.0
"""Seconds between two touches, and between two looks at the others' files."""
_now = time.monotonic
_NAME = re.compile(r"(alive|exit)\.rank(\d+)(\.json)?")


class RankSigns:
    """This rank's signs and those of the others. A rank without other wrappers gives and reads none.

    Args:
        hook: the trial's ``hook`` folder, which all ranks see.
        own: this wrapper among those of the other ranks.
        patience: seconds without a touch after which a rank counts as dead.

    Attributes:
        answered: ranks whose ``exit.rank<k>.json`` was there at the last look.
    """

    def __init__(self, hook: Path, own: Rank, patience: float) -> None:
        self.answered: set[int] = set()
        self._hook = hook
        self._own = own
        self._patience = patience
        self._beat_s = min(_BEAT_S, patience / 8)
        self._over = threading.Event()
        self._reading = threading.Lock()
        self._marks: dict[int, tuple[int, float]] = {}  # rank -> (time of its last touch, seen since)
        self._marked = 0.0  # monotonic time of the last look at these
        self._looked = 0.0  # monotonic time of the last listing
        self._told: set[int] = set()
        self._failed_since: float | None = None

    def begin(self) -> None:
        """Touch this rank's file from now on. To be called when the signals that end a trial are blocked.

        Raises:
            OSError: the folder cannot be written.
        """
        if self._own.world_size <= 1:
            return
        self._failed.mkdir(exist_ok=True)
        self._set_failed(self._own.rank, failed=False)
        self._alive.write_text("", "utf-8")
        threading.Thread(target=self._beat, name="profrun alive", daemon=True).start()

    def end(self) -> None:
        """Nothing is touched any more."""
        self._over.set()

    def say_failed(self) -> None:
        """Tell the other ranks that this one has failed. Never raises."""
        if self._own.world_size > 1:
            self._set_failed(self._own.rank, failed=True)

    def overdue(self) -> bool:
        """Whether another rank failed so long ago that nothing is to be waited for."""
        since = self._failed_since
        return since is not None and _now() - since >= self._patience

    def look(self) -> None:
        """Read the signs of the others: rank 0 those of all, the others those of rank 0.

        Rank 0 lists the folder once, which also makes NFS clients see new files, as asking for each by its
        name does not. When each was touched is asked only every ``_BEAT_S``.

        Raises:
            OSError: the folder cannot be read now.
        """
        with self._reading:
            now = _now()
            # What passed while the folder did not answer, or this host slept, makes nobody older.
            lost = now - self._looked - 2 * self._beat_s
            if self._looked and lost > 0:
                self._marks = {rank: (mark, seen + lost) for rank, (mark, seen) in self._marks.items()}
            self._looked = now
            if self._own.rank == 0:
                self._list(now)
            elif (self._hook / "exit.rank0.json").exists():
                self.answered.add(0)
            else:
                self._mark(0, (self._hook / "alive.rank0").stat().st_mtime_ns, now)
            self._tell_dead()

    def dead(self, ranks: Iterable[int], since: float) -> set[int]:
        """Those of the ranks that have given no sign for longer than the patience, at the last look.

        Args:
            since: monotonic time from which on a rank is waited for that has given none at all.
        """
        limit = self._looked - self._patience
        return {rank for rank in ranks if self._marks.get(rank, (0, since))[1] < limit}

    @property
    def _alive(self) -> Path:
        return self._hook / f"alive.rank{self._own.rank}"

    @property
    def _failed(self) -> Path:
        return self._hook / "failed"

    def _list(self, now: float) -> None:
        marks = now - self._marked >= self._beat_s
        if marks:
            self._marked = now
        with os.scandir(str(self._hook)) as entries:
            for entry in entries:
                found = _NAME.fullmatch(entry.name)
                if found is None:
                    continue
                rank = int(found[2])
                if found[1] == "exit":
                    self.answered.add(rank)
                elif rank not in self._marks or (marks and rank not in self.answered):
                    self._mark(rank, entry.stat().st_mtime_ns, now)

    def _mark(self, rank: int, touched: int, now: float) -> None:
        if self._marks.get(rank, (None, now))[0] != touched:
            self._marks[rank] = (touched, now)

    def _tell_dead(self) -> None:
        """Say of a dead rank that it has failed, and take it back when it touches its file again."""
        dead = self.dead(self._marks.keys() - self.answered - {self._own.rank}, self._looked)
        for rank in dead ^ self._told:
            if rank not in self.answered:
                self._set_failed(rank, failed=rank in dead)
        self._told = dead

    def _set_failed(self, rank: int, *, failed: bool) -> None:
        path = self._failed / f"rank{rank}"
        try:
            if failed:
                path.touch()
            else:
                path.unlink(missing_ok=True)
        except OSError:
            pass

    def _beat(self) -> None:
        while not self._over.wait(self._beat_s):
            for sign in (self._touch, self.look, self._look_for_failures):
                try:
                    sign()
                except OSError:  # the folder does not answer now, or rank 0 has not begun
                    continue

    def _touch(self) -> None:
        os.utime(str(self._alive))

    def _look_for_failures(self) -> None:
        with os.scandir(str(self._failed)) as entries:
            failed = any(entry.name != f"rank{self._own.rank}" for entry in entries)
        if not failed:
            self._failed_since = None
        elif self._failed_since is None:
            self._failed_since = _now()
