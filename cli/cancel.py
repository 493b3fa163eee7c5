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
    from profrun.contract.codec import to_json
    from profrun.runner.watch import cancel_run
    from profrun.store.run_result import run_result
    from profrun.store.runs import find

    state = cancel_run(find(runs_root(runs), run), now=now, wait=wait)
    if json_:
        emit(to_json(run_result(state)))
        return
    ended = state.count("finished")
    say(
        f"{state.run.name}: {state.phase}; {ended} of {len(state.trials)} trials finished, all files are kept"
    )
    if state.phase == "cancelled":
        say(f"continue it later with `profrun resume {state.run.name}`")
