"""``profrun resume RUN``."""

from __future__ import annotations

from typing import Annotated

import typer

from profrun.cli.options import JsonOption, RunArgument, RunsOption, runs_root


def command(
    run: RunArgument = "last",
    failed: Annotated[
        bool, typer.Option("--failed", help="Also repeat trials that failed or ran out of time.")
    ] = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="Return at once; the run goes on by itself.")
    ] = False,
    runs: RunsOption = None,
    json_: JsonOption = False,
) -> None:
    """Finish a run that was interrupted; repeat nothing that finished."""
    from profrun.backends.base import load
    from profrun.runner.create import plan_of
    from profrun.runner.execute import carry_out, detached
    from profrun.store.runs import find
    from profrun.store.state import read_state

    found = find(runs_root(runs), run)
    plan = plan_of(found)
    if detach:
        raise typer.Exit(detached(found, json_=json_, repeat_failed=failed))
    state = read_state(found)
    engine = load(state.backend)
    code = carry_out(found, plan, backend=engine, cwd=state.cwd, json_=json_, repeat_failed=failed)
    raise typer.Exit(code)
