"""``profrun improve``: the changes that findings ask for are tried, and what helped is kept.

``improve`` carries out up to three ordinary runs, each with everything that a run has:

1. *base*: what a step costs, and findings. A run that exists takes its place.
2. *experiments*: the base and one variant for each change, in rounds, each until it is decided.
3. *together*: the base and everything that helped, in rounds again, on new trials. The gain that counts is
   this one: the largest of several measured gains is too large by chance.

``improvement.json`` in the folder of the base run says how far it is, so that it can go on after an
interruption.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from profrun.analysis.rules.experiments import Experiment, excluded, experiments_of, stacked
from profrun.contract.profilers import UNPROFILED
from profrun.contract.rounds import BUDGET_S, MOST
from profrun.errors import FailedError, InconclusiveError
from profrun.jobs.dump import dump_job
from profrun.jobs.load import Spec
from profrun.plans.make import make_plan
from profrun.plans.public import redactor_of
from profrun.runner.answers import diagnosed, told_by
from profrun.runner.default_comparisons import points_of
from profrun.runner.improve_budget import Budget, trials_s
from profrun.runner.improve_jobs import (
    TOGETHER,
    base_job,
    base_variant,
    free_name,
    improved_job,
    improved_name,
    own_experiments,
    public_text,
    rounds_job,
)
from profrun.runner.improve_results import results
from profrun.runner.improve_source import keep_user_job
from profrun.runner.linux import need_linux
from profrun.runner.pipeline import PreparedRun, plan, prepare, reopen
from profrun.runner.planning import plan_of
from profrun.runner.received import need_own
from profrun.runner.twins import step_of
from profrun.store.files import write_text
from profrun.store.improvement import ExperimentResult, Improvement, read_improvement, write_improvement
from profrun.store.run_result import read_findings
from profrun.store.runs import Run, is_run
from profrun.store.state import RunState, read_state
from profrun.traces.trace import Trace

if TYPE_CHECKING:
    from profrun.analysis.rules.finding import RuleFinding
    from profrun.contract.points import Scalar
    from profrun.contract.redact import Redactor
    from profrun.jobs.model import Job

WORTH = 0.02
"""The smallest gain that is looked for, as a part of the step."""
_NARROW = 0.2
"""The last stage goes on until half of its interval is at most this part of the gain, where there is time."""


@dataclass(frozen=True)
class Wishes:
    """What the user asks of an improvement.

    Attributes:
        backend: local, docker, slurm or kubernetes.
        root: folder of the runs.
        base: the variant to improve; None: the first of the job.
        only: ids of rules and names of changes; empty: everything that findings ask for.
        budget_s: time for all stages, seconds.
        accept: largest relative difference of what the program computes that counts as the same; None: what
            the kind of the change allows.
        rounds: the most trials of each variant in a stage.
        worth: smallest gain that is looked for, as a part of the step.
    """

    backend: str
    root: Path
    base: str | None = None
    only: tuple[str, ...] = ()
    budget_s: float = BUDGET_S
    accept: float | None = None
    rounds: int = MOST
    worth: float = WORTH


CarryOut = Callable[[PreparedRun], RunState]
"""Executes and finishes a run, and shows that to the user."""


@dataclass(frozen=True)
class Planned:
    """What an improvement of a run would do.

    Attributes:
        spec: of the stage with the experiments; None where there is no experiment to run.
        experiments: those that it runs.
        not_tried: name of an experiment -> why it is not tried.
    """

    spec: Spec | None
    experiments: tuple[Experiment, ...]
    not_tried: Mapping[str, str]


def base_spec(spec: Spec, job: Job, wishes: Wishes) -> Spec:
    """The spec of the base stage of a job.

    Raises:
        UsageError: the job has no such variant, or ``only`` names nothing that can be tried.
    """
    base = base_variant(job, wishes.base)
    _named_and_asked(job, base, wishes.only, ())  # before a trial runs
    text = dump_job(base_job(job, base))
    return Spec(text, spec.name, spec.folder)


def improve(spec: Spec | Run, job: Job, wishes: Wishes, carry_out: CarryOut) -> tuple[Run, Improvement]:
    """Find out what makes a program faster.

    Args:
        spec: the job's spec, or a run of it that exists.
        job: the user's job.
        wishes: what is asked.
        carry_out: executes and finishes a run.

    Returns:
        The base run, and what was tried.

    Raises:
        UsageError: the job has no such variant, ``only`` names nothing, or the run is somebody else's.
        InconclusiveError: the base has no trial that tells a step time, or none that was recorded.
        FailedError: a stage was cancelled; says how to go on.
    """
    need_linux("improving a program")
    began = time.monotonic()
    if isinstance(spec, Run):
        need_own(spec)
        state = read_state(spec)
    else:
        state = _carry_base(spec, job, wishes, carry_out)
    found = _begun(state, job, wishes, time.monotonic() - began)
    stages = _Stages(state, job, wishes, carry_out, time.monotonic() - found.spent_s)
    found = stages.together(stages.experiments(found))
    return state.run, stages.end(found)


def planned(state: RunState, job: Job, wishes: Wishes) -> Planned:
    """What an improvement of a run that exists would do; nothing is started."""
    base = base_variant(job, wishes.base)
    budget = _budget(state, wishes)
    tried, not_tried = budget.choose(asked_for(state, job, base, wishes.only), 0.0)
    if not tried:
        return Planned(None, (), not_tried)
    left = budget.for_rounds(0.0)
    stage = rounds_job(
        job, base, tried, stage="experiments", rounds=wishes.rounds, worth=wishes.worth, budget_s=left
    )
    return Planned(Spec(dump_job(stage), stage.name, state.cwd), tuple(tried), not_tried)


def asked_for(state: RunState, job: Job, base: str, only: Sequence[str]) -> tuple[Experiment, ...]:
    """The experiments of a run: what its findings ask for, and the job's other variants.

    The first variant of a job is what the others are meant to improve. So where another one is the base, the
    others are experiments only where ``only`` names them.

    Raises:
        UsageError: ``only`` names no rule, no change and no other variant.
        InconclusiveError: no recording of the base tells what could be gained, and there is nothing else.
    """
    record = told_by(points_of(state.trials)).get(base)
    findings: Sequence[RuleFinding] = ()
    if record is not None and record.trace is not None:
        with Trace(record.trace) as trace:
            findings = diagnosed(trace, record, state).findings
    own, asked = _named_and_asked(job, base, only, findings)
    if not own and not asked and (record is None or record.trace is None):
        raise InconclusiveError(
            f"{state.run.name} has no recording of its variant '{base}'",
            why="findings, which ask for experiments, are made of the trace of a trial under a profiler",
            fix=f"see `profrun status {state.run.name}`, or start from the job: profrun improve JOB",
        )
    return (*own, *(replace(one, name=free_name(job, one.name)) for one in asked))


def _named_and_asked(
    job: Job, base: str, only: Sequence[str], findings: Sequence[RuleFinding]
) -> tuple[Sequence[Experiment], Sequence[Experiment]]:
    """The job's other variants, and what findings ask for; those that ``only`` names, if it names any."""
    first = base == base_variant(job, None)
    own = [one for one in own_experiments(job, base) if (one.name in only if only else first)]
    others = [name for name in only if all(name != one.name for one in own)]
    return own, experiments_of(findings, others, job.changes.get(base, ())) if others or not only else ()


def _begun(state: RunState, job: Job, wishes: Wishes, spent_s: float) -> Improvement:
    """The improvement of a run as far as it has come; a new one where there is none that can go on.

    Args:
        spent_s: seconds that the base took just now.
    """
    kept = read_improvement(state.run)
    if kept is not None and not kept.done and wishes.base in (None, kept.base):
        return kept
    base = base_variant(job, wishes.base)
    state.run.improved.unlink(missing_ok=True)  # of an earlier improvement
    step = step_of([one for one in state.trials if one.variant == base and one.collector == UNPROFILED])
    if step is None:
        raise InconclusiveError(
            f"{state.run.name} has no step time of its variant '{base}' without a profiler",
            why=f"its trials failed, or no step was seen: see `profrun status {state.run.name}`",
            fix="call profrun.step() once an iteration, or use an optimizer or nn.Module",
        )
    asked = asked_for(state, job, base, wishes.only)
    _, not_tried = _budget(state, wishes).choose(asked, spent_s)
    redactor = redactor_of(make_plan(job))
    rows = [
        replace(row, state="not tried", why=not_tried[row.name]) if row.name in not_tried else row
        for row in (_row(one, redactor) for one in asked)
    ]
    return Improvement(
        run=state.run.name,
        base=base,
        base_changes=job.changes.get(base, ()),
        experiments=tuple(rows),
        budget_s=wishes.budget_s,
        spent_s=spent_s,
        step_ns=step.ns,
        gpus=next((one.gpus for one in read_findings(state.run)[0].answers if one.variant == base), ()),
        rounds=wishes.rounds,
        worth=wishes.worth,
        accept=wishes.accept,
    )


class _Stages:
    """The stages after the base, each on what the one before has found."""

    def __init__(self, state: RunState, job: Job, wishes: Wishes, carry_out: CarryOut, began: float) -> None:
        self._state, self._job = state, job
        self._wishes, self._carry_out, self._began = wishes, carry_out, began

    def experiments(self, found: Improvement) -> Improvement:
        """Run the experiments that are planned, or go on with them."""
        tried = [one for one in found.experiments if one.state == "planned"]
        if not tried:
            return self._keep(found)
        job = rounds_job(
            self._job,
            found.base,
            [_experiment(one, self._job) for one in tried],
            stage="experiments",
            rounds=found.rounds,
            worth=found.worth,
            budget_s=self._budget(found).for_rounds(found.spent_s),
        )
        state, job = self._stage(
            job, found.experiments_run, lambda name: self._keep(replace(found, experiments_run=name))
        )
        told = {one.name: one for one in results(job, tried, state, found.accept)}
        rows = tuple(told.get(one.name, one) for one in found.experiments)
        return self._keep(replace(found, experiments_run=state.run.name, experiments=rows))

    def together(self, found: Improvement) -> Improvement:
        """Run everything that helped at once against the base, on new trials."""
        helped = sorted(
            (one for one in found.experiments if one.state == "proven"), key=lambda one: one.ratio or 1.0
        )
        if not helped:
            return found
        all_ = [_experiment(one, self._job) for one in helped]
        kept = stacked(all_, free_name(self._job, TOGETHER))
        left = tuple(one.name for one in excluded(all_, kept))
        spent_s = time.monotonic() - self._began
        job = rounds_job(
            self._job,
            found.base,
            [kept],
            stage=TOGETHER,
            rounds=found.rounds,
            worth=found.worth,
            budget_s=None,
            recorded=len(helped) > 1,  # a single change was recorded as an experiment
            narrow=_NARROW if self._budget(found).allows_all_rounds(spent_s) else None,
        )
        state, job = self._stage(
            job, found.together_run, lambda name: self._keep(replace(found, together_run=name))
        )
        row = replace(
            _row(kept, redactor_of(make_plan(self._job))),
            promises=tuple(dict.fromkeys(told for one in helped for told in one.promises)),
        )
        (together,) = results(job, [row], state, found.accept)
        found = replace(found, together_run=state.run.name, together=together, left_out=left)
        if together.state == "proven":
            write_text(self._state.run.improved, public_text(improved_job(self._job, found.base, kept)))
            found = replace(found, improved=improved_name(self._job))
        return self._keep(found)

    def _budget(self, found: Improvement) -> Budget:
        """The budget that the improvement began with."""
        total_s = self._wishes.budget_s if found.budget_s is None else found.budget_s
        return Budget(total_s, trials_s(self._state), found.rounds)

    def end(self, found: Improvement) -> Improvement:
        """All stages have ended."""
        return self._keep(replace(found, done=True))

    def _stage(self, job: Job, name: str | None, began: Callable[[str], object]) -> tuple[RunState, Job]:
        """Carry out the run of a stage, or carry on the one that was begun; returns it and its job.

        Args:
            job: of the stage, for a new run.
            name: of the run that was begun, if any.
            began: is told the name of a new run before it starts.
        """
        run = Run(self._state.run.path.parent / name) if name else None
        if run is not None and is_run(run.path):
            state = read_state(run)
            if state.phase in ("interrupted", "cancelled"):
                state = self._carry_out(reopen(run))
            job = plan_of(run).job
        else:
            spec = Spec(dump_job(job), job.name, self._state.cwd)
            prepared = _prepared(spec, self._wishes)
            began(prepared.run.name)
            state = self._carry_out(prepared)
        _need_end(state, self._state.run)
        return state, job

    def _keep(self, found: Improvement) -> Improvement:
        found = replace(found, spent_s=time.monotonic() - self._began)
        write_improvement(self._state.run, found)
        return found


def _carry_base(spec: Spec, job: Job, wishes: Wishes, carry_out: CarryOut) -> RunState:
    """The base run of a job."""
    prepared = _prepared(base_spec(spec, job, wishes), wishes)
    keep_user_job(prepared.run, job)
    state = carry_out(prepared)
    _need_end(state, state.run)
    return state


def _prepared(spec: Spec, wishes: Wishes) -> PreparedRun:
    return prepare(plan(spec, backend=wishes.backend), spec, backend=wishes.backend, root=wishes.root)


def _need_end(state: RunState, base: Run) -> None:
    if state.phase in ("cancelled", "interrupted"):
        again = f"`profrun improve {base.name}`"
        if state.run.name == base.name:
            again = f"`profrun resume {base.name}`, then {again}"
        raise FailedError(f"{state.run.name} was {state.phase}", fix=f"go on with {again}")


def _budget(state: RunState, wishes: Wishes) -> Budget:
    return Budget(wishes.budget_s, trials_s(state), wishes.rounds)


def _row(one: Experiment, redactor: Redactor) -> ExperimentResult:
    """The row of an experiment; secrets among its values are hidden, because rows are kept and shown."""
    values = {name: cast("Scalar", redactor.named(name, value)) for name, value in one.values.items()}
    return ExperimentResult(one.name, one.changes, values, one.promises)


def _experiment(one: ExperimentResult, job: Job) -> Experiment:
    """The experiment of a row; the values of the job's own variants are those of the job."""
    return Experiment(one.name, one.changes, job.variants.get(one.name, one.values), one.promises)
