"""A yes-or-no question on the terminal, for what cannot be undone or should not happen unseen."""

from __future__ import annotations

import sys

import typer

from profrun.cli.output import note
from profrun.errors import UsageError


def confirm(question: str, *, declined: str, nobody: UsageError) -> None:
    """Ask; anything but yes ends the command with exit code 1.

    Args:
        question: ends with a question mark.
        declined: said when the answer is no.
        nobody: raised where there is no terminal, so that nobody can be asked.

    Raises:
        UsageError: there is no terminal.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise nobody
    if not typer.confirm(question, err=True):
        note(declined)
        raise typer.Exit(1)
