"""The states of a trial, and a state with its reason as one value.

These are the words of ``exit.json``, of the run's log and of every backend.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TrialState = Literal[
    "planned",
    "queued",
    "running",
    "finalising",
    "finished",
    "failed",
    "timeout",
    "cancelled",
    "lost",
    "skipped",
]
"""``lost``: nothing says how the trial ended. An unknown end never counts as success. ``skipped``: the trial
was not started, because a sequential job was decided without it."""

TERMINAL: frozenset[TrialState] = frozenset({"finished", "failed", "timeout", "cancelled", "lost", "skipped"})
"""States that no other state follows."""

WAITS_TURN = "waits-turn"
"""``code`` of a queued trial that waits for other trials of its own run, as it was planned."""


@dataclass(frozen=True)
class Status:
    """The state of one trial.

    Attributes:
        state: where the trial is.
        reason: why, one sentence for people; None when there is nothing to say.
        exit_code: exit code of the user's command; None when it has none yet, or was killed by a signal.
        code: stable short name of the reason where a program decides by it, else None.
    """

    state: TrialState
    reason: str | None = None
    exit_code: int | None = None
    code: str | None = None
