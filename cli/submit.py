"""``profrun submit JOB``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profrun.cli.options import JsonOption, RunsOption, runs_root
from profrun.cli.output import emit, note, say

if TYPE_CHECKING:
    from profrun.plans.model import Plan


def command(
    job: Annotated[Path, typer.Argument(metavar="JOB", help="The job spec (YAML).")],
    backend: Annotated[
        str, typer.Option(help="What executes trials: local, docker, slurm or kubernetes.")
    ] = "local",
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Override one value: variants.baseline.batch=8.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what every trial would do; start nothing.")
    ] = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="Return at once; the run goes on by itself.")
    ] = False,
    runs: RunsOption = None,
    json_: JsonOption = False,
) -> None:
    """Plan a job, run its trials, make traces and a report."""
    from profrun.runner.create import plan_job

    plan = plan_job(job, set_ or (), vendor=_vendor(backend))
    cwd = Path.cwd()
    if dry_run:
        _show_plan(plan, backend, runs_root(runs), cwd, json_=json_)
        return
    raise typer.Exit(_start(plan, job, backend, runs_root(runs), cwd, detach=detach, json_=json_))


def _vendor(backend: str) -> str:
    """Whose GPUs the trials will see: this machine's where they run here, else only the job knows."""
    from profrun.backends.local import machine_vendor

    here = backend == "local" or (backend == "docker" and not os.environ.get("DOCKER_HOST"))
    return machine_vendor() if here else "auto"


def _start(plan: Plan, job: Path, backend: str, root: Path, cwd: Path, *, detach: bool, json_: bool) -> int:
    """Make the run and carry it out, here or in a process of its own; returns the exit code."""
    from profrun.backends.base import load
    from profrun.backends.environ import secret_env
    from profrun.runner.create import need_scripts, new_run
    from profrun.runner.execute import carry_out, detached

    for warning in plan.job.warnings:
        note(f"{job}: {warning}")
    if backend != "kubernetes":  # a cluster's pods do not see this folder
        need_scripts(plan, cwd)
    secret_env(plan.job, cwd)
    engine = load(backend)  # what cannot work, and an unusable image, must not leave a run folder behind
    prepared = engine.prepare(plan, plan.trials, (root / plan.job.name).absolute(), cwd)
    for warning in prepared.left_out:
        note(f"{job}: {warning}")
    plan = prepared.plan
    run = new_run(root, job, plan, backend=backend, cwd=cwd)
    count = len(plan.trials)
    note(f"{run.name}: {count} trial{'s' * (count != 1)} in {run.path}")
    if detach:
        return detached(run, json_=json_)
    return carry_out(run, plan, backend=engine, cwd=cwd, json_=json_, prepared=prepared)


def _show_plan(plan: Plan, backend: str, root: Path, cwd: Path, *, json_: bool) -> None:
    """Every trial's request, command and environment; the same for the same job."""
    from profrun.runner.dry_run import dry_run, dry_text

    document = dry_run(plan, backend, root, cwd)
    if json_:
        emit(document)
    else:
        say(dry_text(document))
