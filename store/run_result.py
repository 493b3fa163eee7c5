"""What a run found, as values: ``comparison.json`` and the document that ``submit --json`` prints.

Times are ns, ratios are b over a. A ratio of step times is ``compare``'s: there is no second estimate of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from profrun.contract.codec import DocumentError, from_json
from profrun.contract.denominator import STEP, Denominator
from profrun.contract.finding import Finding
from profrun.contract.states import TrialState
from profrun.errors import InputError
from profrun.store.files import read_json
from profrun.store.run_answer import VariantAnswer
from profrun.store.run_claims import ClaimResult
from profrun.store.runs import Run
from profrun.store.state import RunPhase, RunState, TrialRecord

FORMAT = 3

PairKind = Literal["variant", "change", "blocking", "overhead"]
"""Why two points are compared. ``variant``: b is a later variant than a, by step time. ``change``: as
``variant``, of profiled trials, for what changed inside a step. ``blocking``: b blocks launches, a does not.
``overhead``: b is profiled, a is not. Of a run without steps b's time has the start of the profiler in it,
which does a part of the set-up that a has in its time too."""


@dataclass(frozen=True)
class PairReason:
    """One thing that two sides of a comparison differ in; see ``analysis.compare.model.Reason``."""

    code: str
    severity: str
    what: str
    why: str = ""
    fix: str = ""
    allowed: bool = False


@dataclass(frozen=True)
class PairResult:
    """Two points compared.

    Attributes:
        a, b: names of the points; ``a`` is the base.
        a_variant, b_variant: their variants. collector: of side b.
        verdict: faster, slower, same, inconclusive or incomparable.
        denominator: whether times are of a step or of the run.
        a_ns, b_ns: step time of each side; None when the sides are incomparable.
        ratio: b_ns over a_ns. ci95: its 95 % interval, None with one trial per side.
        mde: the smallest change that these trials would find, as a fraction.
        trials: of each side.
        same_kernels: of launch-blocking twins: whether both sides launched the same kernels; None where no
            trace can tell. kernels: the same in a sentence.
        text: all of it in one line. changed: what changed most inside a step, one sentence each.
        commands: what can be run after a refusal, each as (what it is for, command).
        start_ns: of an overhead of a run: how much of ``b_ns`` the start of the profiler takes, the geometric
            mean over its trials, as ``b_ns`` is; else None.
    """

    kind: PairKind
    a: str
    b: str
    verdict: str
    a_ns: float | None
    b_ns: float | None
    ratio: float | None
    ci95: tuple[float, ...] | None
    mde: float | None
    trials: tuple[int, ...]
    text: str
    reasons: tuple[PairReason, ...] = ()
    changed: tuple[str, ...] = ()
    same_kernels: bool | None = None
    kernels: str | None = None
    a_variant: str = ""
    b_variant: str = ""
    collector: str = ""
    commands: tuple[tuple[str, str], ...] = ()
    denominator: Denominator = STEP
    start_ns: int | None = None


@dataclass(frozen=True)
class Findings:
    """``comparison.json``: what the traces of a run say of each variant, about each other and about the
    expectations."""

    comparisons: tuple[PairResult, ...] = ()
    expectations: tuple[ClaimResult, ...] = ()
    answers: tuple[VariantAnswer, ...] = ()
    format: int = FORMAT


@dataclass(frozen=True)
class TrialResult:
    """One trial as ``submit --json`` lists it; None where nothing was measured."""

    trial: str
    variant: str
    collector: str
    blocking: bool
    repeat: int
    state: TrialState
    attempt: int
    exit_code: int | None
    reason: str | None
    steps: int | None
    steps_found_by: str | None
    steps_measured: int
    median_step_ns: int | None
    clock: str | None
    started_ns: int | None
    ended_ns: int | None
    trace: str | None
    trace_error: str | None
    warnings: tuple[Finding, ...]


@dataclass(frozen=True)
class RunResult:
    """A whole run, from its folder.

    Attributes:
        state: running, interrupted, finished, failed, cancelled or broken.
        report: path of the HTML report, None when there is none.
        notes: what could not be read.
    """

    run: str
    path: str
    job: str
    backend: str
    state: RunPhase
    created_ns: int
    trials: tuple[TrialResult, ...]
    answers: tuple[VariantAnswer, ...] = ()
    comparisons: tuple[PairResult, ...] = ()
    expectations: tuple[ClaimResult, ...] = ()
    report: str | None = None
    notes: tuple[str, ...] = ()


def run_result(state: RunState) -> RunResult:
    """The result of a run, as far as it has come. ``comparison.json`` is there from the end of a run on."""
    findings, problem = read_findings(state.run)
    return RunResult(
        run=state.run.name,
        path=str(state.run.path),
        job=state.job,
        backend=state.backend,
        state=state.phase,
        created_ns=state.created_ns,
        trials=tuple(trial_result(record) for record in state.trials),
        answers=findings.answers,
        comparisons=findings.comparisons,
        expectations=findings.expectations,
        report=str(state.run.report) if state.run.report.exists() else None,
        notes=(*state.notes, *([problem] if problem else ())),
    )


def trial_result(record: TrialRecord) -> TrialResult:
    """One trial."""
    return TrialResult(
        trial=record.id,
        variant=record.variant,
        collector=record.collector,
        blocking=record.blocking,
        repeat=record.repeat,
        state=record.state,
        attempt=record.attempt,
        exit_code=record.exit_code,
        reason=record.reason,
        steps=record.steps.count if record.attempt else None,
        steps_found_by=record.steps.how,
        steps_measured=len(record.steps.measured),
        median_step_ns=record.steps.median_ns,
        clock=record.steps.clock,
        started_ns=record.started_ns,
        ended_ns=record.ended_ns,
        trace=str(record.trace) if record.trace else None,
        trace_error=record.normalise_error,
        warnings=record.warnings,
    )


def read_findings(run: Run) -> tuple[Findings, str | None]:
    """``comparison.json``, and what is wrong with it: a damaged one must not hide the trials.

    A file that another version of profrun wrote counts as not there: ``profrun resume`` makes it again.
    """
    again = f"`profrun resume {run.name}` makes it again"
    try:
        document = read_json(run.comparison)
    except InputError as error:
        return Findings(), f"{error}; {again}"
    if document is None:
        return Findings(), None
    if document.get("format") != FORMAT:
        return Findings(), f"{run.comparison} was written by another version of profrun; {again}"
    try:
        return from_json(Findings, document), None
    except DocumentError as error:
        return Findings(), f"{run.comparison} is damaged: {error}; {again}"
