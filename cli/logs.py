"""``profrun logs RUN [TRIAL]``."""

from __future__ import annotations

from typing import Annotated

import typer

from profrun.cli import completers
from profrun.cli.options import RunArgument, RunsOption, runs_root
from profrun.cli.output import note, say

EXAMPLES = (
    ("profrun logs last --follow", "what the running trial prints"),
    ("profrun logs last 3", "what trial 3 printed"),
)


def command(
    run: RunArgument = "last",
    trial: Annotated[
        str | None,
        typer.Argument(
            help="A trial's id or number [default: the running trial, else the last one].",
            show_default=False,
            autocompletion=completers.trials_of_run,
        ),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Continue until the trial ends.")] = False,
    runs: RunsOption = None,
) -> None:
    """Show what a trial printed."""
    import sys

    from profrun.runner.watch import log_lines, pick_trial
    from profrun.store.runs import find

    found = find(runs_root(runs), run)
    record = pick_trial(found, trial, wait=follow)
    note(f"{record.id} ({record.state})")
    for line in log_lines(found, record, follow=follow):
        say(line)
        if follow:
            sys.stdout.flush()
