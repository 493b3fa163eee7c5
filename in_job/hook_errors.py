"""Where the hook's orders are, and what it leaves beside them: that it was loaded, and its own errors.

Errors are kept where the wrapper finds them, and are never shown to the user's program.
"""

from __future__ import annotations

import os

ENV = "PROFRUN_HOOK"
"""The variable that names the hook's orders, a JSON file in the trial's ``hook/`` folder."""

LOADED = ".loaded"
"""Suffix of the file, beside the orders, that says that a Python process loaded the hook."""


def loaded_mark(orders: str) -> str:
    """The file that the first Python process with these orders writes.

    Args:
        orders: path of the orders.
    """
    return os.path.splitext(orders)[0] + LOADED


def report(error: BaseException) -> None:
    """Add an error to ``hook/error.rank<k>.<pid>.txt``, k of the wrapper. Never raises."""
    import traceback

    try:
        folder, orders = os.path.split(os.environ[ENV])
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        name = f"error.{orders.split('.')[1]}.{os.getpid()}.txt"
        with open(os.path.join(folder, name), "a", encoding="utf-8") as file:
            file.write(text)
    except (OSError, KeyError, IndexError):
        pass
