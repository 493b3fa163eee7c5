"""``profrun resume RUN``."""

from __future__ import annotations

from typing import Annotated

import typer

from profrun.cli.options import DetachOption, JsonOption, RunArgument, RunsOption, VerboseOption, runs_root

EXAMPLES = (
    ("profrun resume last", "run what is still missing"),
    ("profrun resume last --failed", "repeat the failed trials too"),
)


def command(
    run: RunArgument = "last",
    failed: Annotated[
        bool, typer.Option("--failed", help="Also repeat trials that failed or ran out of time.")
    ] = False,
    detach: DetachOption = False,
    runs: RunsOption = None,
    verbose: VerboseOption = False,
    json_: JsonOption = False,
) -> None:
    """Continue a run that was interrupted; nothing that finished is repeated."""
    from profrun.cli.carry_out import carry_out, detach_run
    from profrun.runner.pipeline import reopen
    from profrun.store.runs import find

    prepared = reopen(find(runs_root(runs), run))
    if detach:
        raise typer.Exit(detach_run(prepared.run, json_=json_, repeat_failed=failed))
    raise typer.Exit(carry_out(prepared, json_=json_, repeat_failed=failed, verbose=verbose))
