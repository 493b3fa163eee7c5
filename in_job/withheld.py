"""Secrets of the caller's environment that a profiler would keep in its files.

nsys and rocprof write the environment of the program into their files. What the job asks for (``env``,
``secrets``, ``env_file``) stays, and is said; other variables whose name or value says secret are withheld
from the program, which is said too.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..contract.finding import Finding
from ..contract.redact import HIDDEN, Redactor
from ..contract.secret_names import secret_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..contract.command import Command
    from ..contract.profilers import Profiler

WITHHELD = "environment-withheld"
KEPT = "secrets-in-files"


def withheld_names(environ: Mapping[str, str], asked: Iterable[str]) -> list[str]:
    """Names of the variables that a profiler which keeps the environment is not shown, sorted.

    Args:
        environ: of the program.
        asked: names that the job asks for.
    """
    wanted, plain = set(asked), Redactor()
    return sorted(
        name
        for name, value in environ.items()
        if name not in wanted and value and (plain.named(name, value) == HIDDEN or plain.text(value) != value)
    )


def shown_environment(
    profiler: Profiler, command: Command, environ: Mapping[str, str]
) -> tuple[dict[str, str], list[Finding]]:
    """The environment of a program whose profiler keeps it, and what the user should know of it."""
    asked = {*command.env, *command.secrets}
    gone = withheld_names(environ, asked)
    shown = {name: value for name, value in environ.items() if name not in gone}
    kept = sorted(name for name in asked & shown.keys() if name in command.secrets or secret_name(name))
    told = []
    if gone:
        told.append(Finding(WITHHELD, "info", withheld_text(profiler.name, gone), fix=withheld_fix(gone)))
    if kept:
        what = f"the files of {profiler.name} in raw/ hold the environment, {', '.join(kept)} included"
        fix = "hand on what `profrun bundle` makes, which has no raw files"
        told.append(Finding(KEPT, "warning", what, fix=fix))
    return shown, told


def withheld_text(profiler: str, names: Iterable[str]) -> str:
    """What is withheld, in one sentence."""
    return f"{profiler} keeps the environment in its files: the program runs without {', '.join(names)}"


def withheld_fix(names: Iterable[str]) -> str:
    """How to ask for what is withheld."""
    return f"if the program needs them, write secrets: [{', '.join(names)}] in the job"


def close_files(folder: Path) -> None:
    """Let only the owner read the files of a profiler that keeps the environment (0700 and 0600)."""
    for path in [folder, *folder.rglob("*")]:
        try:
            if not path.is_symlink():
                path.chmod(0o700 if path.is_dir() else 0o600)
        except OSError:
            pass  # a file that has just gone, or a file system without modes
