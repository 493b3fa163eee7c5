"""``profrun.improve``: try what findings advise, from Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from profrun.api.results import STYLE, Result
from profrun.api.run import Run, Silent, overrides_of
from profrun.contract.rounds import BUDGET_S, FIRST, MOST
from profrun.errors import UsageError
from profrun.jobs.accept import parse_accept
from profrun.reports.improve_text import improvement_parts
from profrun.reports.terminal_layout import lay_out
from profrun.runner import improve as stages
from profrun.runner import pipeline
from profrun.runner.improve_source import named_source
from profrun.runner.report import write_run_report
from profrun.store import runs as store
from profrun.store.improvement import Improvement as ImprovementValue
from profrun.store.state import read_state

if TYPE_CHECKING:
    from profrun.runner.drive import Observer
    from profrun.store.state import RunState


@dataclass(frozen=True, repr=False)
class Improvement(Result, ImprovementValue):
    """What was tried on a program and what each change gave; its table is experiments.

    ``experiments`` has each change with its state, ratio and interval, and ``together`` everything that
    helped at once. ``profrun.find_run(improvement.run)`` is the run, whose folder has ``improved.yaml``.
    """

    def __str__(self) -> str:
        return lay_out(improvement_parts(self), STYLE)


def improve(
    job_or_run: str | Path | Run,
    *,
    budget_s: float = BUDGET_S,
    only: str | Sequence[str] = (),
    accept: float | str | None = None,
    variant: str | None = None,
    rounds: int = MOST,
    backend: str = "local",
    set: str | Sequence[str] = (),
    runs: str | Path | None = None,
    observer: Observer | None = None,
) -> Improvement:
    """Try what the findings of a program advise, and say what each change gave, as ``profrun improve`` does.

    Each change is made without touching the program's files, and run in turns with the unchanged program.
    What helped is tried together on new trials, and must compute the same.

    Ctrl-C ends the stage well, and the improvement can go on: call this with its run.

    Args:
        job_or_run: a job spec (a YAML file); or a run that exists: the value, its name, the beginning of its
            name, its path or ``last``. An improvement of a run that was interrupted goes on.
        budget_s: time for all stages, seconds.
        only: ids of rules, names of changes and of variants of the job; empty: everything that findings ask
            for, and all variants.
        accept: what counts as the same result: the largest relative difference, or words such as
            ``"loss within 1%"``. None: what the kind of the change allows.
        variant: the one to improve; None: the first. ``"improved"`` of a run that was improved goes on from
            what helped.
        rounds: the most trials of each experiment, at least 3.
        backend: local, docker, slurm or kubernetes.
        set: ``path=value`` overrides of a job, one or several.
        runs: folder of the runs; None for $PROFRUN_RUNS or ./runs.
        observer: is told what happens in all stages, in this thread, also where the comparisons or the report
            of a stage could not be made; None shows nothing.

    Raises:
        UsageError: the call is wrong, or the run cannot be run again.
        UnavailableError: the job cannot be run here.
        InconclusiveError: the base has no step time, or no recording that tells what could be gained.
        FailedError: a stage was cancelled; says how to go on.
    """
    if rounds < FIRST:
        raise UsageError(f"rounds={rounds} are too few", fix=f"at least {FIRST} are needed")
    wishes = stages.Wishes(
        backend=backend,
        root=store.runs_root(runs),
        base=variant,
        only=(only,) if isinstance(only, str) else tuple(only),
        budget_s=budget_s,
        accept=parse_accept(accept) if isinstance(accept, str) else accept,
        rounds=rounds,
    )
    what = str(job_or_run.path if isinstance(job_or_run, Run) else job_or_run)
    source = named_source(what, wishes.root, overrides_of(set), variant)
    told = observer or Silent()

    def carry_out(prepared: pipeline.PreparedRun) -> RunState:
        for text in prepared.left_out:
            told.note(text)
        state = pipeline.execute(prepared, told)
        for problem in pipeline.finish(state, prepared.plan):
            told.note(str(problem))
        return state

    run, found = stages.improve(source.of, source.job, wishes, carry_out)
    write_run_report(read_state(run))
    return Improvement(**{one.name: getattr(found, one.name) for one in fields(found)})
