"""``profrun completion bash|zsh|fish``."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from profrun.cli.output import say

EXAMPLES = (
    ("profrun completion bash >> ~/.bashrc", "bash"),
    ("profrun completion zsh >> ~/.zshrc", "zsh"),
    ("profrun completion fish > ~/.config/fish/completions/profrun.fish", "fish"),
)


class Shell(str, Enum):
    """Shells whose completion is tested."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def command(
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """Print the script that lets a shell complete commands, options, runs and trials.

    Append it to the shell's start file, then open a new shell.
    """
    from typer._completion_shared import get_completion_script

    if shell is Shell.zsh:  # `compdef` is there only after this
        say("autoload -Uz compinit && (( $+functions[compdef] )) || compinit")
    say(get_completion_script(prog_name="profrun", complete_var="_PROFRUN_COMPLETE", shell=shell.value))
