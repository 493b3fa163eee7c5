"""``profrun job schema | check | examples``."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from profrun.cli import completers
from profrun.cli.options import JsonOption
from profrun.cli.output import emit, note, say, tell
from profrun.errors import UsageError

EXAMPLES = (
    ("profrun job check job.yaml", "find every mistake of a job"),
    ("profrun job check job.yaml --show", "with every default written out"),
    ("profrun job schema > profrun.schema.json", "for the editor"),
    ("profrun job examples", "the jobs that come with profrun"),
    ("profrun job examples mlp", "writes mlp.yaml and the program that it runs"),
)
app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    help="Check a job spec, print the schema of job specs, or copy a job that comes with profrun.",
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


@app.command()
def examples(
    chosen: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME...",
            help="The examples to copy. Without a name, all are listed.",
            autocompletion=completers.examples,
            show_default=False,
        ),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Copy all examples.")] = False,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="The folder to copy into.")
    ] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Replace files with another content.")] = False,
    json_: JsonOption = False,
) -> None:
    """List the jobs that come with profrun, or copy some of them with the programs that they run.

    The copies are yours to change.
    """
    from profrun.jobs.examples import names

    if all_ and chosen:
        raise UsageError("names are given, and --all too", fix="leave one of them out")
    if all_ or chosen:
        _copy(names() if all_ else list(dict.fromkeys(chosen or ())), out, force=force, json_=json_)
    elif force or out != Path():
        raise UsageError("nothing is copied without a name", fix="name examples, or give --all")
    else:
        _list(json_=json_)


def _list(*, json_: bool) -> None:
    """All examples, with what is in each."""
    from profrun.contract.codec import to_json
    from profrun.contract.units import counted
    from profrun.jobs.examples import names
    from profrun.reports.terminal_layout import Prose
    from profrun.runner.examples import example

    found = [example(name) for name in names()]
    if json_:
        emit({"examples": [to_json(one) for one in found]})
        return
    for one in found:
        size = f"{counted(one.variants, 'variant')}, {counted(one.claims, 'claim')}"
        tell(
            Prose(f"{size}, {one.gpu_claims} only with a GPU", label=one.name),
            Prose(f"  {one.question}", hang=0),
        )
    note("to copy one into this folder: profrun job examples NAME; to copy all: profrun job examples --all")


def _copy(chosen: Sequence[str], folder: Path, *, force: bool, json_: bool) -> None:
    """Write the files of some examples, and say which command runs each."""
    from profrun.runner.examples import example, plan_copies, write_copies

    found = [example(name) for name in chosen]
    written = write_copies(plan_copies(found, folder), force=force)
    submits = [f"profrun submit {shlex.quote(str(folder / one.files[0]))}" for one in found]
    if json_:
        emit({"examples": list(chosen), "written": list(map(str, written)), "next": submits})
        return
    for path in written:
        say(f"wrote {path}")
    if not written:
        say("the files are here already")
    for submit in submits:
        note(f"next: {submit}")
