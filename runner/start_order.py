"""Which trials of a run may start now: ``StartOrder``. Pure.

Trials that would disturb each other share a lane (``profrun.backends.base.Lane``). Each waits until one that
was started before it has ended, in the order of the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from profrun.backends.base import Lane
from profrun.plans.model import Trial


class StartOrder:
    """Trials that are to be started, each in its turn.

    Args:
        trials: those to start, in the order of the plan.
        lanes: trial id -> its lane, None: it waits for nothing. Also of trials that are not to be started,
            because those that still run from before hold their places.
    """

    def __init__(self, trials: Sequence[Trial], lanes: Mapping[str, Lane | None]) -> None:
        self._waiting = list(trials)
        self._lanes = lanes

    @property
    def left(self) -> int:
        """How many trials wait for their turn."""
        return len(self._waiting)

    @property
    def waiting(self) -> Sequence[Trial]:
        """The trials that wait for their turn, in the order of the plan."""
        return tuple(self._waiting)

    def drop(self, trials: Collection[Trial]) -> None:
        """These trials are not started."""
        gone = {trial.id for trial in trials}
        self._waiting = [trial for trial in self._waiting if trial.id not in gone]

    def take(
        self, active: Collection[str], may: Callable[[Trial], bool] = lambda _trial: True
    ) -> list[list[Trial]]:
        """The trials whose turn it is; each inner list is for one ``submit``. They do not wait any more.

        Args:
            active: ids of the trials that are on their way.
            may: whether a trial may be started now; others go on waiting.
        """
        taken: dict[str, int] = {}
        for name in active:
            lane = self._lanes.get(name)
            if lane is not None:
                taken[lane.name] = taken.get(lane.name, 0) + 1
        before = dict(taken)
        free: list[Trial] = []
        together: dict[str, list[Trial]] = {}
        alone: list[list[Trial]] = []
        for trial in filter(may, self._waiting):
            lane = self._lanes.get(trial.id)
            if lane is None:
                free.append(trial)
            elif lane.together:
                if not before.get(lane.name):
                    together.setdefault(lane.name, []).append(trial)
            elif taken.get(lane.name, 0) < lane.width:
                taken[lane.name] = taken.get(lane.name, 0) + 1
                alone.append([trial])
        ready = [*([free] if free else []), *together.values(), *alone]
        started = {trial.id for trials in ready for trial in trials}
        self._waiting = [trial for trial in self._waiting if trial.id not in started]
        return ready
