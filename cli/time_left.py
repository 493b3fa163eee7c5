"""How long the rest of a run will take, by its trials that have ended: ``TimeLeft``."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from profrun.plans.model import Trial


class TimeLeft:
    """Estimates the time left of trials that run one after another.

    A trial is expected to take as long as the median of the finished trials with its variant, collector and
    launch blocking; where there is none, of those with its collector and launch blocking. A collector none of
    whose trials has finished is not estimated: then the time left is a lower bound, "over 2:10 left".

    Args:
        trials: all trials of the run.
    """

    def __init__(self, trials: Sequence[Trial]) -> None:
        self._trials = {trial.id: trial for trial in trials}
        self._began: dict[str, float] = {}
        self._took: dict[str, float] = {}  # of finished trials, seconds with making the trace
        self._over: set[str] = set()

    def begin(self, trial_id: str) -> None:
        """A trial begins now, if it has not begun before."""
        self._began.setdefault(trial_id, time.monotonic())

    def end(self, trial_id: str, *, counts: bool) -> None:
        """A trial has ended now, or its trace is made.

        Args:
            trial_id: the trial.
            counts: it finished, so its time says how long others take.
        """
        self._over.add(trial_id)
        if counts and trial_id in self._began:
            self._took[trial_id] = time.monotonic() - self._began[trial_id]

    def took(self, trial_id: str, seconds: float) -> None:
        """A trial finished before this process began, and took this long."""
        self._over.add(trial_id)
        self._took[trial_id] = seconds

    def text(self, running: str) -> str | None:
        """The time left: "2:10 left", "over 2:10 left"; None while nothing is known.

        Args:
            running: the trial that runs now.
        """
        seconds, certain = 0.0, True
        for trial in self._trials.values():
            if trial.id in self._over and trial.id != running:
                continue
            expected = self._expected(trial)
            if expected is None:
                certain = False
            elif trial.id == running:
                now = time.monotonic()
                seconds += max(expected - (now - self._began.get(running, now)), 0.0)
            else:
                seconds += expected
        if not certain and seconds < 1:
            return None
        return f"{'' if certain else 'over '}{clock_text(seconds)} left"

    def _expected(self, trial: Trial) -> float | None:
        """Seconds that a trial takes; None while nothing tells."""
        alike = {
            other: seconds
            for other, seconds in self._took.items()
            if (self._trials[other].collector, self._trials[other].blocking)
            == (trial.collector, trial.blocking)
        }
        same = [seconds for other, seconds in alike.items() if self._trials[other].variant == trial.variant]
        found = same or list(alike.values())
        return statistics.median(found) if found else None


def clock_text(seconds: float) -> str:
    """Seconds as a clock shows them: "0:08", "2:10", "1:02:10"."""
    whole = int(seconds)
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d}"
    return f"{whole // 3600}:{whole % 3600 // 60:02d}:{whole % 60:02d}"
