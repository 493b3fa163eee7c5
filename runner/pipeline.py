"""The life of a run as four functions: plan, prepare, execute, finish.

``plan`` reads a job and lists its trials; ``prepare`` refuses what cannot work and makes the run's folder;
``execute`` drives the trials to their end and makes their traces; ``finish`` compares the points of the run
and writes its report. The command line and the Python API call these and nothing below them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from profrun.backends.base import Backend, PreparedPlan, load
from profrun.plans.model import Plan
from profrun.runner.linux import need_linux
from profrun.runner.planning import (
    need_secrets,
    plan_document,
    plan_job,
    plan_of,
    refuse_secret_names,
    vendor_seen,
)
from profrun.runner.progress import no_progress
from profrun.store.runs import Run, create

if TYPE_CHECKING:  # a dry run needs none of these, and loading them takes a third of its time
    from profrun.collectors.reading import Progress
    from profrun.jobs.load import Spec
    from profrun.jobs.overrides import Override
    from profrun.runner.drive import Observer
    from profrun.store.state import RunState


@dataclass(frozen=True)
class PreparedRun:
    """A run whose folder is made and whose trials can start.

    Attributes:
        cwd: the folder that the job's relative paths count from.
        prepared: the plan as the backend has prepared it; None: that is done when a trial is to be started.
    """

    run: Run
    plan: Plan
    backend: Backend[PreparedPlan]
    cwd: Path
    prepared: PreparedPlan | None = None

    @property
    def left_out(self) -> tuple[str, ...]:
        """What of the job this backend leaves out, one sentence each."""
        return (*self.plan.left_out, *(self.prepared.left_out if self.prepared else ()))


def plan(
    spec: Spec,
    overrides: Sequence[str | Override] = (),
    *,
    only: Sequence[str] = (),
    backend: str = "local",
) -> Plan:
    """The trials of a job. Nothing is started and nothing is written.

    Args:
        spec: the job; ``runner.planning.spec_at`` reads one from a file.
        overrides: ``path=value``, as of ``--set``.
        only: names or globs of the variants to keep; empty: all.
        backend: where it will run: on this machine the vendor of the GPUs is known.

    Raises:
        UsageError: the spec or an override is wrong; names file, line, column and the nearest valid value.
        UnavailableError: this is not Linux.
    """
    need_linux("running a job")
    return plan_job(spec, overrides, only=only, vendor=vendor_seen(backend))


def prepare(plan: Plan, spec: Spec, *, backend: str, root: Path) -> PreparedRun:
    """Refuse what cannot work here, then make the run's folder. No trial is started.

    Args:
        spec: the plan's job, kept in the run's folder; the job's relative paths count from its folder.
        backend: local, docker, slurm or kubernetes.
        root: folder of the runs.

    Raises:
        UsageError, UnavailableError: something that the job needs is not there. No run folder is left behind.
    """
    from profrun.backends.environ import secret_env
    from profrun.runner.scripts import need_programs

    cwd = spec.folder
    need_secrets(plan, spec.name)
    refuse_secret_names(plan)
    need_programs(plan, cwd, backend)
    secret_env(plan.job, cwd)
    engine = load(backend)
    prepared = engine.prepare(plan, plan.trials, Run((root / plan.job.name).absolute()), cwd)
    pinned = prepared.plan
    run = new_run(root, spec, pinned, backend=backend)
    return PreparedRun(run, pinned, engine, cwd, prepared)


def new_run(root: Path, spec: Spec, plan: Plan, *, backend: str) -> Run:
    """Make the run folder of a plan.

    Raises:
        UnavailableError: the runs folder cannot be written or the disk is full.
    """
    from profrun.plans.public import kept_texts, redactor_of
    from profrun.version import VERSION

    redactor = redactor_of(plan)
    job_text, resolved_text, private = kept_texts(spec.text, plan, redactor)
    return create(
        root,
        plan.job.name,
        spec_text=job_text,
        resolved_text=resolved_text,
        plan=plan_document(plan, redactor),
        private=private,
        backend=backend,
        cwd=spec.folder,
        version=VERSION,
    )


def reopen(run: Run) -> PreparedRun:
    """A run that exists, ready to be carried on.

    Raises:
        InputError: it was never planned to the end, this profrun plans it differently, or its folder holds
            what profrun does not make in one: a link, a pipe.
        UsageError: this user did not make it here, and has not accepted it (``received.accept``).
        UnavailableError: this is not Linux.
    """
    need_linux("carrying on a run")
    from profrun.runner.received import need_own
    from profrun.store.state import read_state

    need_own(run)
    state = read_state(run)
    plan = plan_of(run)
    need_secrets(plan, run.name)
    return PreparedRun(run, plan, load(state.backend), state.cwd)


def execute(prepared: PreparedRun, observer: Observer, *, repeat_failed: bool = False) -> RunState:
    """Run every trial that has not finished yet and make its trace; returns the state of the run at the end.

    Args:
        observer: is told what happens.
        repeat_failed: also repeat trials that failed or ran out of time.

    Raises:
        UsageError: another process drives the run.
        UnavailableError: the disk is full, or the backend cannot be used. What was collected is kept.
    """
    from profrun.runner.drive import drive
    from profrun.runner.interrupt import Interrupts

    with Interrupts() as interrupts:
        return drive(
            prepared.run,
            prepared.plan,
            prepared.backend,
            cwd=prepared.cwd,
            observer=observer,
            interrupts=interrupts,
            repeat_failed=repeat_failed,
            prepared=prepared.prepared,
        )


def finish(state: RunState, plan: Plan, progress: Progress = no_progress) -> list[Exception]:
    """Compare the points of a run, check its expectations and write its report.

    Args:
        progress: called with the number of traces that were begun, and how many there are.

    Returns:
        What went wrong meanwhile: it must not hide what the trials measured.
    """
    from profrun.runner.finish import ReadTraces, write_findings
    from profrun.runner.report import write_run_report

    read = ReadTraces()
    steps: list[Callable[[], object]] = [
        lambda: write_findings(state, plan.job.expect, read, progress),
        lambda: write_run_report(state, read),
    ]
    problems: list[Exception] = []
    for step in steps:
        try:
            step()
        except Exception as error:
            problems.append(error)
    return problems
