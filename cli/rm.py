"""``profrun rm RUN...``."""

from __future__ import annotations

from typing import Annotated

import typer

from profrun.cli import completers
from profrun.cli.options import JsonOption, RunsOption, runs_root
from profrun.cli.removal import DryRunOption, RawOption, YesOption, remove

EXAMPLES = (
    ("profrun rm mlp-20261122T0148", "one run, by the beginning of its name"),
    ("profrun rm last --dry-run", "say what would go, and how much it frees"),
    ("profrun rm last --raw", "keep the run, without the profilers' own files"),
)


def command(
    run: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="Runs: a name, the beginning of a name, a path, or `last`.",
            autocompletion=completers.runs,
        ),
    ],
    raw: RawOption = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    runs: RunsOption = None,
    json_: JsonOption = False,
) -> None:
    """Remove runs from the disk.

    A run that still runs is refused. Baselines keep their numbers: they do not need the run.
    """
    from profrun.runner.removal import plan_removal
    from profrun.store.runs import find

    root = runs_root(runs)
    named = {found.path: found for found in (find(root, word) for word in run)}
    remove([plan_removal(found, root, raw=raw) for found in named.values()], (), dry_run, yes, json_)
