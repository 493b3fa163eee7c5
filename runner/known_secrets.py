"""The values that a run and this environment keep secret: ``known_secrets``."""

from __future__ import annotations

from collections.abc import Mapping

from profrun.contract.secret_names import secret_name
from profrun.store.private import read_private
from profrun.store.runs import Run

_LONG = 8
"""Characters of the shortest value of this environment that is looked for."""


def known_secrets(run: Run | None, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The secrets of a run, and those of this environment by the names of its variables.

    Args:
        run: None for the environment's alone.

    Raises:
        InputError: a ``private.json`` of the run is a link or damaged.
    """
    folders = [run.path, *(path.parent for path in run.path.glob("trials/*/private.json"))] if run else []
    kept = [value for folder in folders if (found := read_private(folder)) for value in found.values]
    named = [value for name, value in environ.items() if secret_name(name) and len(value) >= _LONG]
    return tuple(dict.fromkeys((*kept, *named)))
