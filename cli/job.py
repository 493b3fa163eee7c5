"""``profrun job schema | check``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from profrun.cli.options import JsonOption
from profrun.cli.output import emit, note, say

EXAMPLES = (
    ("profrun job check job.yaml", "find every mistake of a job"),
    ("profrun job check job.yaml --show", "with every default written out"),
    ("profrun job schema > profrun.schema.json", "for the editor"),
)
app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    help="Print the schema of job specs, or check one.",
)


@app.command()
def schema() -> None:
    """Print the JSON Schema of job specs, for editors and linters."""
    from profrun.jobs.schema import job_schema

    emit(job_schema())


@app.command()
def check(
    job: Annotated[Path, typer.Argument(metavar="JOB", help="The job spec (YAML).")],
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Override one value first; repeatable.", show_default=False
        ),
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print the spec with every default written out.")
    ] = False,
    json_: JsonOption = False,
) -> None:
    """Find every mistake of a spec.

    Each is printed with file, line and column; a spec without mistakes with its number of trials.
    """
    from profrun.contract.codec import to_json
    from profrun.contract.units import counted
    from profrun.jobs.dump import dump_job
    from profrun.plans.make import plan_file
    from profrun.runner.planning import plan_job, spec_at

    plan = plan_job(spec_at(job), set_ or ())
    for warning in plan.job.warnings:
        note(f"{job}: {warning}")
    if json_:
        emit({"job": plan.job.name, "file": str(job), "ok": True, **to_json(plan_file(plan))})
    elif show:
        say(dump_job(plan.job).rstrip("\n"))
    else:
        say(f"{job}: {plan.job.name}, {counted(len(plan.trials), 'trial')}")
