"""``profrun submit JOB``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from profrun.cli import completers
from profrun.cli.options import (
    BackendOption,
    CollectorsOption,
    DetachOption,
    DryRunOption,
    JsonOption,
    LinesOption,
    RepeatsOption,
    RunsOption,
    SetOption,
    VerboseOption,
)
from profrun.cli.start import HowToStart, short_overrides, start, words

EXAMPLES = (
    ("profrun submit job.yaml", "run every trial of a job"),
    ("profrun submit job.yaml --dry-run", "show what would be started"),
    ("profrun submit job.yaml --only fast -n 3", "one variant, three times"),
    ("profrun submit job.yaml --backend slurm", "run the trials on a cluster"),
)


def command(
    job: Annotated[Path, typer.Argument(metavar="JOB", help="The job spec (YAML).")],
    collectors: CollectorsOption = None,
    repeats: RepeatsOption = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VARIANT,...",
            help="Run only these variants (names or globs); repeatable.",
            autocompletion=completers.variants_of_job,
            show_default=False,
        ),
    ] = None,
    lines: LinesOption = False,
    set_: SetOption = None,
    backend: BackendOption = "local",
    cwd: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder that the job's relative paths count from [default: the folder of JOB].",
            show_default=False,
        ),
    ] = None,
    dry_run: DryRunOption = False,
    detach: DetachOption = False,
    runs: RunsOption = None,
    verbose: VerboseOption = False,
    json_: JsonOption = False,
) -> None:
    """Plan a job, run its trials, make traces and a report."""
    from profrun.runner.planning import spec_at

    how = HowToStart(backend, set_ or (), dry_run, detach, runs, verbose, json_)
    wanted = [word for text in only or () for word in words(text)]
    code = start(
        spec_at(job, cwd), how, overrides=short_overrides(collectors, repeats, lines=lines), only=wanted
    )
    raise typer.Exit(code)
