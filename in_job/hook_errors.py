"""Where the hook's orders are, and what it leaves beside them: that it was loaded, and its own errors.

Errors are kept where the wrapper finds them, and are never shown to the user's program.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

ENV = "PROFRUN_HOOK"
"""The variable that names the hook's orders, a JSON file in the trial's ``hook/`` folder."""

LOADED = ".loaded"
"""Suffix of the file, beside the orders, that says that a Python process loaded the hook."""

CODE = "hook-failed"
"""Code of the finding that an error of the hook becomes."""

_FILE = ".txt"


def loaded_mark(orders: str) -> str:
    """The file that the first Python process with these orders writes.

    Args:
        orders: path of the orders.
    """
    return os.path.splitext(orders)[0] + LOADED


def report(error: BaseException) -> None:
    """Add an error to ``hook/error.rank<k>.<pid>.txt``, k of the wrapper. Never raises.

    Secrets of the trial are hidden in it. Where no file can be opened (the program may have no descriptor
    left), a folder is made instead, whose name says which error it was.
    """
    try:
        folder, orders = os.path.split(os.environ[ENV])
        path = os.path.join(folder, f"error.{orders.split('.')[1]}.{os.getpid()}")
    except (KeyError, IndexError):
        return
    try:
        import traceback

        text = _without_secrets(
            "".join(traceback.format_exception(type(error), error, error.__traceback__)), folder
        )
        with open(path + _FILE, "a", encoding="utf-8") as file:
            file.write(text)
    except (OSError, ImportError):
        try:
            said = getattr(error, "strerror", None) or ""  # without a path: it has slashes
            os.mkdir(f"{path}.{type(error).__name__} {said}".rstrip())
        except OSError:
            pass


def _without_secrets(text: str, folder: str) -> str:
    """A text without the secrets of the trial: the words of an error may hold arguments of the program."""
    from pathlib import Path

    from .private_values import private_of, redactor

    return redactor(private_of(Path(folder).parent), os.environ).text(text)


def read(folder: Path, rank: int) -> list[tuple[str, str]]:
    """The last line of each error in what the wrapper of a rank started, and in which file it is.

    Args:
        folder: the trial's ``hook`` folder.
    """
    found = []
    for path in sorted(folder.glob(f"error.rank{rank}.*")):
        if path.is_dir():
            said = path.name.split(".", 3)[-1]
        else:
            lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            said = lines[-1] if lines else "no words"
        found.append((said, path.name))
    return found
