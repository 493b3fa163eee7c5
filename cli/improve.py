"""``profrun improve JOB|RUN``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profrun.cli import completers
from profrun.cli.options import (
    BackendOption,
    DryRunOption,
    JsonOption,
    RunsOption,
    SetOption,
    VerboseOption,
    runs_root,
)
from profrun.cli.output import emit, note, say, shown_path, tell
from profrun.contract.codec import to_json
from profrun.contract.rounds import BUDGET_S, FIRST, MOST

if TYPE_CHECKING:
    from profrun.jobs.load import Spec
    from profrun.jobs.model import Job
    from profrun.runner.improve import Wishes
    from profrun.runner.pipeline import PreparedRun
    from profrun.store.improvement import Improvement
    from profrun.store.runs import Run
    from profrun.store.state import RunState

EXAMPLES = (
    ("profrun improve job.yaml", "find out what makes a job's program faster"),
    ("profrun improve last --budget 1h", "the same for a run that exists"),
    ("profrun improve last --only dataloader-stall", "try what one finding asks for"),
    ("profrun improve last --variant improved", "go on from what helped"),
    ("profrun improve last --only compile --accept 'loss within 1%'", "try one change"),
)


def command(
    what: Annotated[
        str,
        typer.Argument(
            metavar="JOB|RUN",
            help="A job spec (YAML), or a run: its name, the beginning of it, its path, or `last`.",
            autocompletion=completers.runs,
        ),
    ],
    budget: Annotated[
        str, typer.Option(metavar="TIME", help="Time for all trials, e.g. 20m or 2h.")
    ] = f"{BUDGET_S / 60:g}m",
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Only what this rule asks for, this change (docs/changes.md), or this variant; repeatable.",
            show_default=False,
        ),
    ] = None,
    accept: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="What counts as the same result: 'loss within 1%' [default: by the kind of the change].",
            show_default=False,
        ),
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The variant to improve [default: the first].", show_default=False),
    ] = None,
    rounds: Annotated[
        int, typer.Option(min=FIRST, max=100, metavar="N", help="The most trials of each experiment.")
    ] = MOST,
    set_: SetOption = None,
    backend: BackendOption = "local",
    dry_run: DryRunOption = False,
    runs: RunsOption = None,
    verbose: VerboseOption = False,
    json_: JsonOption = False,
) -> None:
    """Try what findings advise, and say what it gave: each change is proven, or it is not.

    Each change is made without touching the program's files, and run in turns with the unchanged program.
    What helps is tried together on new trials, and must compute the same.
    """
    from profrun.jobs.accept import parse_accept
    from profrun.runner.improve import Wishes
    from profrun.runner.improve_source import named_source
    from profrun.store.runs import Run

    root = runs_root(runs)
    wishes = Wishes(
        backend=backend,
        root=root,
        base=variant,
        only=tuple(word.strip() for text in only or () for word in text.split(",")),
        budget_s=_seconds(budget),
        accept=None if accept is None else parse_accept(accept),
        rounds=rounds,
    )
    source = named_source(what, root, set_ or (), variant)
    if source.stage is not None and isinstance(source.of, Run):
        note(f"{source.stage.name} is a stage of the improvement of {source.of.name}")
    if dry_run:
        _show_plan(source.of, source.job, wishes, json_=json_)
        return
    _carry_out(source.of, source.job, wishes, json_=json_, verbose=verbose)


def _seconds(text: str) -> float:
    """A time as ``--budget`` takes it.

    Raises:
        UsageError: it is none.
    """
    from profrun.contract.quantities import parse_time
    from profrun.errors import UsageError

    try:
        return parse_time(text)
    except ValueError as error:
        raise UsageError(f"--budget {text} is no time", fix=str(error)) from None


def _carry_out(source: Spec | Run, job: Job, wishes: Wishes, *, json_: bool, verbose: bool) -> None:
    from profrun.runner.improve import improve
    from profrun.runner.report import write_run_report
    from profrun.store.state import read_state

    def carry_out(prepared: PreparedRun) -> RunState:
        from profrun.cli.carry_out import carried

        note(f"{prepared.run.name}: at most {len(prepared.plan.trials)} trials in {prepared.run.path}")
        return carried(prepared)

    run, found = improve(source, job, wishes, carry_out)
    report = write_run_report(read_state(run))
    if json_:
        emit(to_json(found))
        return
    say()
    _show(run, found, report, verbose=verbose)


def _show(run: Run, found: Improvement, report: Path, *, verbose: bool) -> None:
    """Print what was found, and where it is."""
    from profrun.contract.units import elapsed_text
    from profrun.reports.improve_text import improvement_parts, next_command
    from profrun.reports.terminal_layout import Prose

    tell(Prose(f"improve ended after {elapsed_text(found.spent_s)}", label=run.name))
    say()
    tell(*improvement_parts(found))
    say()
    if found.improved:
        say(f"job:    {shown_path(run.improved)}, variant '{found.improved}'")
    say(f"report: {shown_path(report)}")
    go_on = next_command(found)
    if go_on is not None:
        say(f"next:   {go_on}")
    for name in (found.experiments_run, found.together_run) if verbose else ():
        if name:
            say(f"stage:  {shown_path(run.path.parent / name)}")


def _show_plan(source: Spec | Run, job: Job, wishes: Wishes, *, json_: bool) -> None:
    """Print what the next stage would run."""
    from profrun.errors import InconclusiveError
    from profrun.jobs.load import Spec
    from profrun.reports.improve_text import NOTHING
    from profrun.runner.dry_run import dry_run, dry_text
    from profrun.runner.improve import base_spec, planned
    from profrun.runner.pipeline import plan
    from profrun.store.state import read_state

    if isinstance(source, Spec):
        spec, after = base_spec(source, job, wishes), "experiments: what the findings of this run ask for"
    else:
        found = planned(read_state(source), job, wishes)
        for name, why in found.not_tried.items():
            note(f"not tried: {name}: {why}")
        if found.spec is None:
            raise InconclusiveError(
                f"there is nothing to try on {source.name}", why=None if found.not_tried else NOTHING
            )
        spec, after = found.spec, "together: everything that helped, against the base again"
    result = dry_run(plan(spec, backend=wishes.backend), wishes.backend, wishes.root, spec.folder)
    if json_:
        emit(to_json(result))
        return
    say(dry_text(result))
    say(f"\n# the next stage, {after}")
