"""What the processes of a rank say of the job's changes, put together: ``told``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..contract.change_findings import APPLIED, NOT_APPLIED, change_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..contract.finding import Finding
    from .process_note import ProcessNote


def told(notes: Sequence[ProcessNote]) -> list[Finding]:
    """The findings of all processes, without what is true of one process and misleading for the program.

    A change that changed nothing is told only where no other process applied it, and not by a process
    without steps where another one made steps: a script that prepares data before the training makes no
    optimizer.
    """
    has_steps = any(note.process.steps for note in notes)
    changed = {change_of(one) for note in notes for one in note.warnings if one.code == APPLIED}
    return [one for note in notes for one in _of(note, changed, must_have_steps=has_steps)]


def _of(note: ProcessNote, changed: set[str | None], *, must_have_steps: bool) -> Iterator[Finding]:
    for finding in note.warnings:
        if finding.code == NOT_APPLIED and (
            change_of(finding) in changed or (must_have_steps and not note.process.steps)
        ):
            continue
        yield finding
