"""``command.json`` without the secrets of the command, and the part of it that only ``private.json`` holds.

Standard library, Python 3.9: ``profrun wrap`` writes both inside the job.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from .codec import from_json, to_json
from .command import Command
from .private import Private

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .redact import Redactor

OF_COMMAND = ("argv", "env", "values", "options", "cwd")
"""Fields of a ``Command`` that can hold secrets."""


def public_command(command: Command, redactor: Redactor) -> Command:
    """The command with its secrets hidden."""
    return replace(
        command,
        argv=redactor.arguments(command.argv),
        env={name: str(redactor.named(name, value)) for name, value in command.env.items()},
        values=cast("dict[str, object]", redactor.value(to_json(command.values))),
        options=cast("dict[str, object]", redactor.value(to_json(command.options))),
        cwd=redactor.text(command.cwd),
    )


def private_command(command: Command, redactor: Redactor) -> Private | None:
    """``private.json`` of a trial: the fields of its command that hold secrets; None where none does."""
    whole, shown = to_json(command), to_json(public_command(command, redactor))
    fields = {name: whole[name] for name in OF_COMMAND if whole[name] != shown[name]}
    return Private(values=redactor.values, command=fields) if fields else None


def whole_command(document: Mapping[str, object] | None, private: Private | None) -> Command:
    """The command as it is to be run.

    Args:
        document: ``command.json``; private: ``private.json`` beside it.

    Raises:
        DocumentError: it is no command.
    """
    hidden = private.command if private is not None else {}
    return from_json(Command, document if document is None else {**document, **hidden}, "command.json")
