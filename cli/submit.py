"""``profrun submit JOB``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from profrun.cli import completers
from profrun.cli.options import JsonOption, RunsOption, VerboseOption, runs_root
from profrun.cli.output import emit, note, say

EXAMPLES = (
    ("profrun submit job.yaml", "run every trial of a job"),
    ("profrun submit job.yaml --dry-run", "show what would be started"),
    ("profrun submit job.yaml --set repeats=3", "change one value of the job"),
    ("profrun submit job.yaml --backend slurm", "run the trials on a cluster"),
)


def command(
    job: Annotated[Path, typer.Argument(metavar="JOB", help="The job spec (YAML).")],
    backend: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Where trials run: local, docker, slurm or kubernetes.",
            autocompletion=completers.backends,
        ),
    ] = "local",
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Override one value of the job, e.g. variants.baseline.batch=8; repeatable.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what every trial would do; start nothing.")
    ] = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="Return at once; the run continues in the background.")
    ] = False,
    runs: RunsOption = None,
    verbose: VerboseOption = False,
    json_: JsonOption = False,
) -> None:
    """Plan a job, run its trials, make traces and a report."""
    from profrun.runner.pipeline import plan, prepare

    planned = plan(job, set_ or (), backend=backend)
    root, cwd = runs_root(runs), Path.cwd()
    if dry_run:
        from profrun.contract.codec import to_json
        from profrun.runner.dry_run import dry_run as requests
        from profrun.runner.dry_run import dry_text

        found = requests(planned, backend, root, cwd)
        emit(to_json(found)) if json_ else say(dry_text(found))
        return
    from profrun.cli.carry_out import carry_out, detach_run  # not needed by a dry run, which should be fast

    for warning in planned.job.warnings:
        note(f"{job}: {warning}")
    prepared = prepare(planned, job, backend=backend, root=root, cwd=cwd)
    for text in prepared.left_out:
        note(f"{job}: {text}")
    count = len(prepared.plan.trials)
    note(f"{prepared.run.name}: {count} trial{'s' * (count != 1)} in {prepared.run.path}")
    if detach:
        raise typer.Exit(detach_run(prepared.run, json_=json_))
    raise typer.Exit(carry_out(prepared, json_=json_, verbose=verbose))
