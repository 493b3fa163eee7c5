"""What ``profrun improve`` is given: the file of a job, or a run, as ``named_source`` reads it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profrun.backends.base import WRAPPED
from profrun.contract.private import Private
from profrun.contract.redact import HIDDEN
from profrun.errors import UsageError
from profrun.jobs.load import Spec, load_text
from profrun.jobs.model import Job
from profrun.plans.make import make_plan
from profrun.plans.public import kept_texts, redactor_of
from profrun.runner.planning import spec_at
from profrun.store.files import write_text
from profrun.store.improvement import read_improvement
from profrun.store.private import read_private, write_private
from profrun.store.runs import Run, created, find


@dataclass(frozen=True)
class Source:
    """What is to be improved.

    Attributes:
        of: the spec of a job, or a run that exists.
        job: the user's job.
        stage: the run that the user named, where it is a stage of the improvement of another run; else None.
    """

    of: Spec | Run
    job: Job
    stage: Run | None = None


def named_source(what: str, root: Path, overrides: Sequence[str], variant: str | None) -> Source:
    """What a user names.

    Args:
        what: the file of a job; or a run: its name, the beginning of it, its path, or ``last``.
        root: folder of the runs.
        overrides: ``path=value``, laid over a job.
        variant: that is to be improved; None: the first.

    Raises:
        UsageError: it cannot be read, there is no such run, or overrides are given for a run.
    """
    if what.endswith((".yaml", ".yml")):
        return Source(*spec_and_job(Path(what), overrides))
    if overrides:
        raise UsageError(
            f"overrides (--set) cannot change {what}, a run that exists",
            fix="leave them out, or name the run's job file",
        )
    named = find(root, what)
    run = run_to_improve(named)
    return Source(*source_of(run, variant), stage=None if run == named else named)


def run_to_improve(run: Run) -> Run:
    """The run that an improvement is about: of the run of a stage its base run, else the run itself."""
    for path in sorted(run.path.parent.glob("*/improvement.json")):
        base = Run(path.parent)
        found = read_improvement(base)
        if found is not None and run.name in (found.experiments_run, found.together_run):
            return base
    return run


def spec_and_job(path: Path, overrides: Iterable[str]) -> tuple[Spec, Job]:
    """The spec in the file of a job, and the job with ``path=value`` overrides laid over it.

    Raises:
        UsageError: the file cannot be read, or the spec or an override is wrong.
    """
    spec = spec_at(path)
    return spec, load_text(spec.text, spec.name, overrides)


def job_of_run(run: Run) -> Job:
    """The job that a run was made of, with its variants; of the base of an improvement the user's own job.

    Raises:
        UsageError: it cannot be read, or another launcher started its trials, so that profrun cannot run them
            again.
    """
    if created(run).get("backend") == WRAPPED:
        raise UsageError(
            f"the trials of {run.name} cannot be run again",
            why="another launcher started them with `profrun wrap`",
            fix="write a job of the program (`profrun init`), then `profrun improve JOB`",
        )
    return spec_and_job(run.user_job if run.user_job.exists() else run.resolved, ())[1]


def source_of(run: Run, variant: str | None) -> tuple[Spec | Run, Job]:
    """What is improved where a user names a run: the run itself, or the job with what helped there.

    Args:
        run: that is to be improved (``run_to_improve``).
        variant: that the user names. Where only ``improved.yaml`` of the run has it, that job is improved.

    Returns:
        The run or the spec of that job; and the job of either.

    Raises:
        UsageError: as ``job_of_run``; or ``improved.yaml`` hides values that the program needs.
    """
    job = job_of_run(run)
    if variant is None or variant in job.variants or not run.improved.exists():
        return run, job
    spec, improved = spec_and_job(run.improved, ())
    if variant not in improved.variants:
        return run, job
    if HIDDEN in spec.text:
        raise UsageError(
            f"{run.improved} hides secrets, so its program cannot run",
            fix=f"write them in a copy, then `profrun improve COPY --variant {variant}`",
        )
    return spec, improved


def keep_user_job(run: Run, job: Job) -> None:
    """Keep the user's job in the folder of the base run that was made of it, so that an improvement that was
    interrupted goes on with all its variants, collectors and repeats.

    Raises:
        UnavailableError: the folder cannot be written.
    """
    plan = make_plan(job)
    _, shown, secret = kept_texts("", plan, redactor_of(plan))
    if secret is not None:
        kept = read_private(run.path) or Private()
        values = tuple(dict.fromkeys((*kept.values, *secret.values)))
        write_private(run.path, replace(kept, values=values, user_job=secret.resolved))
    write_text(run.user_job, shown)
