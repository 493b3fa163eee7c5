"""Errors of the hook itself: kept where the wrapper finds them, never shown to the user's program."""

from __future__ import annotations

import os

ENV = "PROFRUN_HOOK"
"""The variable that names the hook's orders, a JSON file in the trial's ``hook/`` folder."""


def report(error: BaseException) -> None:
    """Add an error to ``hook/error.<pid>.txt``. Never raises."""
    import traceback

    try:
        folder = os.path.dirname(os.environ[ENV])
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        with open(os.path.join(folder, f"error.{os.getpid()}.txt"), "a", encoding="utf-8") as file:
            file.write(text)
    except (OSError, KeyError):
        pass
