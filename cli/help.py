"""Help pages: how a command is called, its arguments and options, and the examples of its module.

A command's module has ``EXAMPLES``: pairs of a command line and what it does. A test gives every one of them
to the real command line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer.core

Examples = Sequence[tuple[str, str]]
"""(command line, what it does), the most common one first."""
WIDEST = 44
"""A command line that is longer has its meaning on the next line."""


def write_examples(examples: Examples, formatter: Any) -> None:
    """The section of a page with examples; nothing without any."""
    if examples:
        with formatter.section("Examples"):
            formatter.write_dl(list(examples), col_max=WIDEST)


def _title(command: Any) -> str:
    return (command.help or "").strip().partition("\n")[0]


class Command(typer.core.TyperCommand):
    """A command whose page names values in capitals, and ends with examples."""

    examples: Examples = ()

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        for parameter in self.params:
            flag = getattr(parameter, "is_flag", False) or getattr(parameter, "count", False)
            if parameter.metavar is None and not flag:
                parameter.metavar = (parameter.name or "").rstrip("_").upper()

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """``[OPTIONS] TRACE [RUN]``: what may be left out is in brackets."""
        names = [
            str(parameter.metavar) if parameter.required else f"[{parameter.metavar}]"
            for parameter in self.get_params(ctx)
            if parameter.param_type_name == "argument"
        ]
        return ["[OPTIONS]", *names]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, then options; an argument without the name of its Python type."""
        arguments: list[tuple[str, str]] = []
        options: list[tuple[str, str]] = []
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            if parameter.param_type_name == "option":
                options.append(record)
            else:
                arguments.append((str(parameter.metavar), record[1].replace("  [required]", "")))
        for title, rows in (("Arguments", arguments), ("Options", options)):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The examples."""
        write_examples(self.examples, formatter)


class Group(typer.core.TyperGroup):
    """A command of several commands, whose page ends with their examples."""

    examples: Examples = ()

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Each command with the whole first line of its help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _title(self.commands[name])) for name in self.list_commands(ctx)])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The examples of all its commands."""
        write_examples(self.examples, formatter)


def with_examples(command: Any, examples: Examples, path: str) -> Any:
    """Give a command, and each command in it, the examples that begin with its words.

    Args:
        command: a ``Command``, or a ``Group`` of them.
        examples: of the whole module.
        path: the words that call it, for example ``profrun baseline``.
    """
    words = path.split()
    command.examples = [pair for pair in examples if pair[0].split()[: len(words)] == words]
    for name, inner in getattr(command, "commands", {}).items():
        with_examples(inner, examples, f"{path} {name}")
    return command
