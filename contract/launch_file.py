"""``launches/<iii>/launch.json``: what the ranks of one start of a foreign launcher have agreed on.

The ranks that ``profrun wrap`` is started in know nothing of each other. The first one that comes writes this
document; the others find it and join. ``in_job.wrap_join`` says how.
"""

from __future__ import annotations

from dataclasses import dataclass

from .command import Command

FORMAT = 1

NAME = "launch.json"


@dataclass(frozen=True)
class LaunchFile:
    """One launch, which is one trial.

    Attributes:
        command: the trial, as the first rank that came was told it. ``argv`` and ``cwd`` are its own; those
            of other ranks may differ.
        world_size: how many wrappers the launcher starts.
        launch: what tells this launch from others, by the launcher's environment or by ``--launch``; None:
            nothing does.
        launcher: who started it, in words.
        started_ns: when the first rank came, unix time, ns.
    """

    command: Command
    world_size: int
    launch: str | None = None
    launcher: str | None = None
    started_ns: int = 0
    format: int = FORMAT
