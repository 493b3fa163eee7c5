"""``profrun cancel RUN``."""

from __future__ import annotations

from typing import Annotated

import typer

from profrun.cli.options import JsonOption, RunArgument, RunsOption, runs_root
from profrun.cli.output import emit, say

EXAMPLES = (
    ("profrun cancel last", "stop it; what was recorded is kept"),
    ("profrun cancel last --now", "kill it at once"),
)


def command(
    run: RunArgument,
    now: Annotated[
        bool, typer.Option("--now", help="Kill at once; what the profilers have not written is lost.")
    ] = False,
    wait: Annotated[bool, typer.Option(help="Wait until everything has ended.")] = True,
    runs: RunsOption = None,
    json_: JsonOption = False,
) -> None:
    """Stop a run and keep what was recorded."""
    from profrun.cli.run_text import cancelled_text
    from profrun.contract.codec import to_json
    from profrun.runner.watch import cancel_run
    from profrun.store.run_result import run_result
    from profrun.store.runs import find

    state = cancel_run(find(runs_root(runs), run), now=now, wait=wait)
    if json_:
        emit(to_json(run_result(state)))
        return
    trials = f"{state.count('finished')} of {len(state.trials)} trials finished"
    if state.phase != "cancelled":  # it ended before it could be cancelled
        say(f"{state.run.name}: {state.phase}, {trials}")
        return
    say(f"{state.run.name}: {trials}. {cancelled_text(state)}")
    say(f"next:   profrun resume {state.run.name}")
