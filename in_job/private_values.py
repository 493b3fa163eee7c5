"""What a process of the job must not write down: the values of ``private.json``, and those of variables whose
names say secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..contract import json_text
from ..contract.codec import DocumentError, from_json
from ..contract.private import NAME, Private
from ..contract.redact import HIDDEN, Redactor, secrets_of_arguments
from ..contract.secret_names import secret_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ..contract.command import Command


def private_of(folder: Path) -> Private:
    """``private.json`` in a trial's folder; an empty one where there is none."""
    try:
        return from_json(Private, json_text.read(folder / NAME))
    except (OSError, ValueError, DocumentError):
        return Private()


def redactor(private: Private, environ: Mapping[str, str], command: Command | None = None) -> Redactor:
    """What hides the secrets of a trial.

    Args:
        environ: of the program or of this process.
        command: names further variables whose values are secrets, and may hold some in its ``argv``.
    """
    listed = command.secrets if command is not None else ()
    named = [value for name, value in environ.items() if name in listed or secret_name(name)]
    given = secrets_of_arguments(command.argv) if command is not None else ()
    found = dict.fromkeys((*private.values, *named, *given))
    return Redactor(tuple(value for value in found if value and value != HIDDEN))
