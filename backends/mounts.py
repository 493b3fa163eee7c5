"""The job's ``mounts`` as values, for every backend. Only ``need_sources`` looks at the disk."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from profrun.errors import UnavailableError
from profrun.jobs.model import Job


@dataclass(frozen=True)
class Mount:
    """A folder or file of the host, at a path inside."""

    source: str
    target: str
    read_only: bool


def parse_mount(text: str, cwd: Path) -> Mount:
    """``source:/target[:ro|rw]``; a relative source counts from ``cwd``, ``~`` is the caller's home.

    Without a mode it is writable, as the engine's own ``-v`` has it.
    """
    source, _, rest = text.partition(":")
    target, _, mode = rest.partition(":")
    # not Path.expanduser: that raises for the home of a user who does not exist
    place = os.path.normpath(cwd / os.path.expanduser(source))  # noqa: PTH111
    return Mount(place, target.rstrip("/") or "/", mode == "ro")


def workdir_outside(job: Job, cwd: Path) -> str | None:
    """The job's ``workdir``, where it lies outside of the folder that the job's relative paths count from.

    Returns:
        An absolute path; None for a ``workdir`` inside of ``cwd``, and without one.
    """
    place = os.path.normpath(cwd / job.workdir) if job.workdir else None
    return None if place is None or Path(place).is_relative_to(cwd) else place


def need_sources(mounts: Iterable[Mount]) -> None:
    """Refuse mounts whose source is not there. Engines differ in what they do with such a mount.

    Raises:
        UnavailableError: a source does not exist on this machine.
    """
    for mount in mounts:
        if not Path(mount.source).exists():
            raise UnavailableError(
                f"{mount.source} is to be mounted at {mount.target}, and it does not exist",
                fix="make it, or correct `mounts` in the job",
            )
