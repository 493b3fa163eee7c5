"""What ``rm`` and ``prune`` share: options, the question, and what they print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from profrun.cli.output import columns, emit, note, say
from profrun.cli.question import confirm
from profrun.contract.units import bytes_text, counted
from profrun.errors import UsageError

if TYPE_CHECKING:
    from profrun.runner.removal import Kept, Removal

RawOption = Annotated[
    bool,
    typer.Option(
        "--raw", help="Remove only the profilers' own files, of trials that have a trace; all else stays."
    ),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what would go; remove nothing.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def remove(going: Sequence[Removal], kept: Sequence[Kept], dry_run: bool, yes: bool, json_: bool) -> None:
    """Show what goes, ask, and remove it.

    Args:
        going: what goes.
        kept: runs that stay although they were asked for, with the reason.
        dry_run: remove nothing.
        yes: do not ask.
        json_: print one JSON document instead of text.

    Raises:
        UsageError: there is nobody to ask, and ``yes`` was not given.
    """
    from profrun.runner.removal import carry_out

    going = [item for item in going if item.files is None or item.files]
    freed = sum(item.freed for item in going)
    for stays in kept:
        note(f"kept: {stays.reason}")
    if not json_ and going:
        rows = [(item.run.name, _files(item), bytes_text(item.freed)) for item in going]
        say(columns(("run", "removed", "frees"), rows, right=(2,)))
    if going and not dry_run and not yes:
        confirm(
            f"Remove {_of(going)} and free {bytes_text(freed)}?",
            declined="Nothing was removed.",
            nobody=UsageError(
                "profrun cannot ask you: stdin and stderr are not both a terminal",
                fix="add --yes, or --dry-run to see what goes",
            ),
        )
    if not dry_run:
        for item in going:
            carry_out(item)
    if json_:
        runs = [
            {
                "run": item.run.name,
                "path": str(item.run.path),
                "bytes": item.freed,
                "files": None if item.files is None else [str(file) for file in item.files],
            }
            for item in going
        ]
        reasons = [{"run": item.run.name, "reason": str(item.reason)} for item in kept]
        emit({"removed": not dry_run, "bytes": freed, "runs": runs, "kept": reasons})
    elif not going:
        say("There is nothing to remove.")
    elif dry_run:
        say(f"Dry run: nothing was removed. Removing {_of(going)} would free {bytes_text(freed)}.")
    else:
        say(f"Removed {_of(going)} and freed {bytes_text(freed)}.")


def _files(item: Removal) -> str:
    return "everything" if item.files is None else counted(len(item.files), "profiler file")


def _of(going: Sequence[Removal]) -> str:
    """What goes, in short: ``3 runs``, or ``the profilers' files of 3 runs``."""
    runs = counted(len(going), "run")
    return runs if going[0].files is None else f"the profilers' files of {runs}"
