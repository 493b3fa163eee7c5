"""``profrun prune``."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from profrun.cli.options import JsonOption, RunsOption, runs_root
from profrun.cli.removal import DryRunOption, RawOption, YesOption, remove
from profrun.errors import UsageError

EXAMPLES = (
    ("profrun prune --keep 5 --dry-run", "what would go, if 5 runs of each job stay"),
    ("profrun prune --older-than 30d", "runs of more than 30 days"),
    ("profrun prune --keep 10 --raw --yes", "older runs stay, without the profilers' own files"),
)


def command(
    keep: Annotated[
        int | None,
        typer.Option(metavar="N", help="Keep the newest N runs of each job.", min=0, show_default=False),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(metavar="AGE", help="Keep runs younger than this, e.g. 30d or 12h.", show_default=False),
    ] = None,
    raw: RawOption = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    runs: RunsOption = None,
    json_: JsonOption = False,
) -> None:
    """Remove old runs from the disk.

    With --keep and --older-than, a run stays if one of them keeps it. Runs that still run always stay.
    """
    from profrun.runner.removal import plan_pruning

    if keep is None and older_than is None and not raw:
        raise UsageError("nothing says which runs go", fix="add --keep N, --older-than 30d, or --raw")
    before = None if older_than is None else time.time_ns() - _age_ns(older_than)
    going, kept = plan_pruning(runs_root(runs), keep=keep, created_before_ns=before, raw=raw)
    remove(going, kept, dry_run, yes, json_)


def _age_ns(text: str) -> int:
    """``30d`` in ns.

    Raises:
        UsageError: it is no time.
    """
    from profrun.contract.quantities import parse_time

    try:
        return round(parse_time(text) * 1e9)
    except ValueError as error:
        raise UsageError(
            f"--older-than {text!r} is not a time", fix="write a time like 30d or 12h"
        ) from error
