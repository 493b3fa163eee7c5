"""What the user asked of every command: how much it prints and whether in colour.

``profrun -q submit JOB`` and ``profrun submit -q JOB`` mean the same: each command has these options, and all
of them write into one value, ``asked()``, which ``reset`` makes new for each command line.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, get_args

import typer
import typer.main

ColourChoice = Literal["auto", "always", "never"]


@dataclass
class Asked:
    """The options that every command has.

    Attributes:
        quiet: print results and errors only: no progress and no notes.
        verbose: print more detail.
        colour: when to use colours; None where the command line does not say.
    """

    quiet: bool = False
    verbose: bool = False
    colour: ColourChoice | None = None


_asked = Asked()


def asked() -> Asked:
    """What this command line asked for."""
    return _asked


def reset() -> None:
    """Forget what the command line before this one asked for (several may run in one process)."""
    global _asked
    _asked = Asked()


def _quiet(given: bool) -> bool:
    _asked.quiet |= given
    return _asked.quiet


def _verbose(given: bool) -> bool:
    _asked.verbose |= given
    return _asked.verbose


def _colour(given: ColourChoice | None) -> None:
    _asked.colour = given or _asked.colour


def _no_colour(given: bool) -> None:
    if given:
        _asked.colour = "never"


def _common(
    quiet: Annotated[
        bool,
        typer.Option("-q", "--quiet", help="Print results and errors only.", callback=_quiet),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Print more detail.", callback=_verbose)
    ] = False,
    color: Annotated[
        ColourChoice | None,
        typer.Option(
            help=f"Colours: {', '.join(get_args(ColourChoice)[:-1])} or never [default: auto, on terminals].",
            metavar="WHEN",
            show_default=False,
            callback=_colour,
        ),
    ] = None,
    no_color: Annotated[
        bool, typer.Option("--no-color", help="The same as --color never.", callback=_no_colour, hidden=True)
    ] = False,
) -> None:
    """The options of every command, as a command of their own so that typer reads them."""


def add_to(command: Any) -> Any:
    """Give a command, and all commands below it, the options that they do not have yet; returns it.

    A command that prints more with ``--verbose`` has this option itself, with its own help, and is told
    whether it stands anywhere on the line.
    """
    _add(command, _parameters())
    return command


@cache
def _parameters() -> list[Any]:
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(_common)
    parameters: list[Any] = typer.main.get_command(app).params
    for parameter in parameters:
        parameter.expose_value = False
    return parameters


def _add(command: Any, common: list[Any]) -> None:
    for parameter in command.params:
        if "--verbose" in parameter.opts and parameter.callback is None:
            parameter.callback = lambda ctx, option, given: _verbose(given)
    known = {name for parameter in command.params for name in parameter.opts}
    command.params += [parameter for parameter in common if not known & set(parameter.opts)]
    for below in getattr(command, "commands", {}).values():
        _add(below, common)
