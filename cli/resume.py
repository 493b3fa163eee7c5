"""``profrun resume RUN``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from profrun.cli.options import DetachOption, JsonOption, RunArgument, RunsOption, VerboseOption, runs_root
from profrun.cli.output import complain
from profrun.cli.question import confirm

if TYPE_CHECKING:
    from profrun.store.runs import Run

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
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", "-y", help="Also carry on a run of somebody else or of another place; do not ask."
        ),
    ] = False,
    runs: RunsOption = None,
    verbose: VerboseOption = False,
    json_: JsonOption = False,
) -> None:
    """Continue a run that was interrupted; nothing that finished is repeated.

    Of a run that came from somebody else, or was moved, the commands are shown and you are asked first.
    """
    from profrun.cli.carry_out import carry_out, detach_run
    from profrun.runner.pipeline import reopen
    from profrun.store.runs import find

    found = find(runs_root(runs), run)
    _make_own(found, yes)
    prepared = reopen(found)
    if detach:
        raise typer.Exit(detach_run(prepared.run, json_=json_, repeat_failed=failed))
    raise typer.Exit(carry_out(prepared, json_=json_, repeat_failed=failed, verbose=verbose))


def _make_own(run: Run, yes: bool) -> None:
    """Show what a run of somebody else would run, and ask whether it may.

    Raises:
        UsageError: there is nobody to ask, and ``yes`` was not given.
    """
    from profrun.runner.linux import need_linux
    from profrun.runner.received import accept, received, refusal

    need_linux("carrying on a run")

    found = received(run)
    if found is None:
        return
    complain("\n".join(found.would_run))
    if not yes:
        confirm(
            f"{found.run.name} comes from elsewhere ({found.why}). Run this?",
            declined="Nothing was run.",
            nobody=refusal(found),
        )
    accept(run)
