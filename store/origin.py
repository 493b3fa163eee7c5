"""Whether a run's folder was made here by this user, and whether it is built as profrun builds one.

A folder may come from a colleague, out of an archive or from a stranger. To look at it is safe. What runs its
commands, ends its trials or writes into it asks here first.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from profrun.contract.safe_files import odd_kind
from profrun.store.events import Event, read_events
from profrun.store.files import odd_file
from profrun.store.runs import Run, created
from profrun.store.seal import Place, is_here

_FOLDERS = frozenset({"raw", "hook", "trace", "attempts"})
"""Folders of a trial."""
_FILES = frozenset(
    {
        *("job.yaml", "resolved.yaml", "plan.json", "events.jsonl", "lock", "cancel", "driver.log"),
        *("comparison.json", "report.html", "command.json", "exit.json", "provenance.json", "phase", "live"),
        *("stdout.log", "stderr.log", "wrapper.log"),
    }
)
"""Names of files of a run and of a trial: a folder of such a name is refused as well."""


@dataclass(frozen=True)
class Foreign:
    """A run that this user did not make at this place.

    Attributes:
        why: what tells it, one sentence without a full stop.
    """

    run: Run
    why: str


def foreign(run: Run) -> Foreign | None:
    """Why a run counts as somebody else's; None where this user made it here, or has accepted it.

    Raises:
        InputError: the folder is no run.
    """
    first = created(run)
    events = [first, *(event for event in read_events(run.events).items if event["event"] == "accepted")]
    own = [place for place in map(_place, events) if is_here(place, run.path)]
    strange = _strange_owner(run, {place.owner for place in own})
    if strange is not None:
        return Foreign(run, strange)
    return None if own else Foreign(run, _why(_place(first), run))


def _place(mark: Event) -> Place:
    uid, owner = (value if isinstance(value, int) else None for value in (mark.get("uid"), mark.get("owner")))
    return Place(str(mark.get("path", "")), str(mark.get("host", "")), uid, owner, mark.get("seal"))


def _why(made: Place, run: Run) -> str:
    here = os.path.realpath(run.path)
    if not made.path:
        return "its events.jsonl does not say where it was made: another version of profrun made it"
    if made.path != here:
        return f"it was made as {made.path!r} on the machine {made.host!r}, and lies in {here} now"
    return f"another user or another machine ({made.host!r}) made it"


def _strange_owner(run: Run, known: Collection[int | None]) -> str | None:
    """One sentence where the folder, or a file that says what is run, belongs to another user.

    Args:
        known: users to whom the folder belonged when this user made or accepted it.
    """
    if not hasattr(os, "getuid"):
        return None
    for path in (run.path, run.events, run.plan, run.resolved):
        try:
            owner = path.stat().st_uid
        except OSError:
            continue
        if owner != os.getuid() and owner not in known:
            return f"{path} belongs to the user with the number {owner}"
    return None


def need_plain(run: Run) -> None:
    """Refuse a folder in which something that profrun writes to is no plain file or folder.

    Raises:
        InputError: there is a link, a pipe or a device, or a file in place of a folder.
    """
    for path, folder in _written(run):
        odd = odd_kind(path, folder=folder)
        if odd is not None:
            raise odd_file(path, odd)


def _written(run: Run) -> Iterator[tuple[Path, bool]]:
    """What profrun writes to in a run's folder, and whether it is a folder."""
    folders = (run.bundle, run.trials)
    yield from ((path, path in folders or _may_be_folder(path)) for path in _entries(run.path))
    for folder in _entries(run.path):  # of backends that keep files of their own
        if folder not in folders:
            yield from ((path, _is_real_folder(path)) for path in _entries(folder))
    for trial in _entries(run.trials):
        yield trial, True
        for path in _entries(trial):
            yield path, path.name in _FOLDERS or _may_be_folder(path)
        for path in (*_entries(trial / "attempts"), *_entries(trial / "raw")):
            yield path, _is_real_folder(path)


def _may_be_folder(path: Path) -> bool:
    """Whether it is a folder, and need not be a file by its name."""
    return path.name not in _FILES and _is_real_folder(path)


def _is_real_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _entries(folder: Path) -> list[Path]:
    """What is in a folder; nothing where it is a link, or is not there."""
    return sorted(folder.iterdir()) if _is_real_folder(folder) else []
