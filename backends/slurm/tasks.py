"""How the trials of a run are spread over Slurm's jobs: ``Group``, ``groups``; and where one of them is:
``Task``. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profrun.backends.cluster import by_site
from profrun.contract.codec import to_json
from profrun.plans.model import Plan, Trial
from profrun.store.events import Handle

if TYPE_CHECKING:
    from profrun.jobs.cluster import ClusterSettings

MAX_ARRAY = 1000
"""Tasks per array. Slurm's MaxArraySize is 1001 unless the site raised it."""


@dataclass(frozen=True)
class Task:
    """Where a trial is in Slurm: a task of an array job, or a turn in an allocation that it shares.

    Attributes:
        job: Slurm's number.
        index: of the task in its array, or of the turn.
        allocation: name of its files in the run's ``slurm/``; None for a task of an array.
        inside: the allocation was there before the run, and is not ended with it.
    """

    job: str
    index: int
    allocation: str | None = None
    inside: bool = False

    @property
    def id(self) -> str:
        """As Slurm's commands name it."""
        return self.job if self.allocation else f"{self.job}_{self.index}"

    @property
    def handle(self) -> Handle:
        """As the log keeps it."""
        return Handle("slurm", to_json(self))

    def log(self, trial: str) -> str:
        """Name of the file in ``slurm/`` where its srun writes."""
        return f"{self.allocation}.{trial}.log" if self.allocation else f"{self.id}.log"


@dataclass(frozen=True)
class Group:
    """Trials of one site that are queued together.

    Attributes:
        shared: they run one after another in one allocation; else each is a task of an array.
    """

    trials: tuple[Trial, ...]
    shared: bool

    @property
    def kind(self) -> str:
        """The first part of the name of its files."""
        return "allocation" if self.shared else "array"


def groups(plan: Plan, trials: Sequence[Trial]) -> list[Group]:
    """The trials in plan order, by site; an array has at most ``MAX_ARRAY`` of them."""
    found = []
    for site, members in by_site(trials).items():
        if shares(plan.job.cluster.of_site(site)):
            found.append(Group(tuple(members), True))
            continue
        for start in range(0, len(members), MAX_ARRAY):
            found.append(Group(tuple(members[start : start + MAX_ARRAY]), False))
    return found


def shares(settings: ClusterSettings) -> bool:
    """Whether the trials of a site share one allocation."""
    return settings.allocation == "one"
