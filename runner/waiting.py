"""What to tell a person while trials wait in a queue: ``Waiting``.

A queue may never start a job: its partition is down, its nodes are drained, a limit is reached. The reason is
told once, and again when it has changed in between.
"""

from __future__ import annotations

from collections.abc import Mapping

from profrun.contract.states import WAITS_TURN, Status
from profrun.contract.units import counted


class Waiting:
    """Remembers which reasons for waiting were told last."""

    def __init__(self) -> None:
        self._told: frozenset[str] = frozenset()

    def news(self, states: Mapping[str, Status]) -> list[str]:
        """One line for each reason that was not told the last time that something had to wait.

        Args:
            states: of all trials that are on their way. One that waits for another trial of the run
                (``WAITS_TURN``) waits as planned, and nothing is told of it.
        """
        waiting: dict[str, int] = {}
        for status in states.values():
            if status.state == "queued" and status.reason and status.code != WAITS_TURN:
                waiting[status.reason] = waiting.get(status.reason, 0) + 1
        new = [reason for reason in waiting if reason not in self._told]
        if waiting:
            self._told = frozenset(waiting)
        return [f"{counted(waiting[reason], 'trial')} cannot start yet: {reason}" for reason in new]
