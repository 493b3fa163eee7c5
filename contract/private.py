"""``private.json``: the one kind of file that holds the secrets of a job, mode 0600.

A run whose job holds secrets has one in its folder, from which ``profrun resume`` takes the job, and one in
the folder of each trial that has not ended, from which the wrapper takes the command. Every other file has
``<redacted>`` in their places. A job without secrets has none. It is never in a report or in what ``profrun
bundle`` makes. Standard library, Python 3.9.
"""

from __future__ import annotations

from dataclasses import dataclass, field

NAME = "private.json"
FORMAT = 1


@dataclass(frozen=True)
class Private:
    """What must not be handed on.

    Attributes:
        values: the secrets; they are hidden wherever else they would be written.
        job: text of the spec as it was given; resolved: of the one that repeats the run; None in a trial's.
        user_job: of the job of which ``profrun improve`` made this one; None elsewhere.
        command: fields of a trial's ``command.Command`` that hold secrets, whole; empty in a run's.
    """

    values: tuple[str, ...] = ()
    job: str | None = None
    resolved: str | None = None
    user_job: str | None = None
    command: dict[str, object] = field(default_factory=dict)
    format: int = FORMAT
