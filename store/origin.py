"""Whether a run's folder was made here by this user, and whether it is built as profrun builds one.

A folder may come from a colleague, out of an archive or from a stranger. To look at it is safe. What runs its
commands, ends its trials or writes into it asks here first.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from profrun.contract.paths import BUNDLE, TRIALS
from profrun.contract.safe_files import odd_kind
from profrun.store.events import Event, read_events
from profrun.store.files import explained, odd_file
from profrun.store.runs import Run, created
from profrun.store.seal import Place, is_here

_OF_FOLDERS = frozenset({"raw", "attempts"})
"""Folders of a trial that have folders in them."""
_FOLDERS = frozenset({*_OF_FOLDERS, "hook", "trace", BUNDLE, TRIALS})
"""Names of folders of a run and of a trial: a file of such a name is refused."""
_FILES = frozenset(
    {
        *("job.yaml", "resolved.yaml", "plan.json", "events.jsonl", "lock", "cancel", "driver.log"),
        *("user-job.yaml", "improvement.json", "improved.yaml"),
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
    if sys.platform == "win32":
        return None
    for path in (run.path, run.events, run.plan, run.resolved, run.user_job):
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
        InputError: there is a link, a pipe or a device, or one of file and folder in place of the other.
    """
    for entry in _written(run):
        if entry.is_file(follow_symlinks=False):  # no call of the system, on most file systems
            odd = "it is a file" if entry.name in _FOLDERS else None
        elif entry.is_dir(follow_symlinks=False):
            odd = "it is a folder" if entry.name in _FILES else None
        else:
            odd = odd_kind(Path(entry.path))
        if odd is not None:
            raise odd_file(Path(entry.path), odd)


def _written(run: Run) -> Iterator[os.DirEntry[str]]:
    """What lies where profrun writes. Each is looked at before the next is asked for, so that no folder is
    entered through a link."""
    top = _entries(run.path)
    yield from top
    for folder in top:  # of the trials, and of backends that keep files of their own
        if folder.name != BUNDLE and folder.is_dir(follow_symlinks=False):
            yield from _entries(folder)
    for trial in _entries(run.trials):
        inner = _entries(trial)
        yield from inner
        for folder in inner:
            if folder.name in _OF_FOLDERS and folder.is_dir(follow_symlinks=False):
                yield from _entries(folder)


def _entries(folder: os.DirEntry[str] | Path) -> list[os.DirEntry[str]]:
    """What is in a folder, by name; nothing where it is not there or is a file.

    Raises:
        UnavailableError: this user may not look into it.
    """
    with explained(Path(folder)):
        try:
            with os.scandir(folder) as found:
                return sorted(found, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return []
