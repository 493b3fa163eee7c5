"""A full disk ends a run once: after the first sign of it no other trial is started into the same failure."""

from __future__ import annotations

import contextlib
import shutil

from profrun.contract.ends import DISK_FULL
from profrun.contract.states import Status
from profrun.errors import DiskFullError
from profrun.in_job.preflight import DISK_NEEDED
from profrun.runner.trial_files import Normalised
from profrun.store.runs import Run
from profrun.store.state import read_state


class DiskWatch:
    """What a driver knows of the disk of its run.

    Attributes:
        why: how it was seen that the disk is full; None: it was not.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.why: str | None = None

    def ended(self, trial_id: str, status: Status) -> None:
        """A trial has ended like this."""
        if status.code == DISK_FULL:
            self.why = f"{trial_id}: {status.reason}"

    def normalised(self, trial_id: str, done: Normalised) -> None:
        """This became of a trial's files."""
        if done.full:
            self.why = f"{trial_id}: {done.error}"

    def has_room(self) -> bool:
        """Whether another trial may be started."""
        if self.why is None:
            with contextlib.suppress(OSError):
                free = shutil.disk_usage(self.run.path).free
                if free < DISK_NEEDED:
                    self.why = f"only {free >> 20} MiB are free, and a trial needs {DISK_NEEDED >> 20} MiB"
        return self.why is None

    def error(self) -> DiskFullError:
        """What ends the run, with what to do."""
        state = read_state(self.run)
        kept = f"{state.count('finished')} of {len(state.trials)} trials finished and are kept"
        return DiskFullError(
            f"the disk of {self.run.path} is full, and no other trial was started",
            why=self.why,
            fix=f"free some space, then `profrun resume {self.run.name}`: {kept}",
        )
