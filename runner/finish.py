"""What the end of a run asks of its traces: comparisons of its points, and the job's expectations.

Each trace is opened once, because opening one costs more than most answers. The answers are kept in
``comparison.json``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from profrun.contract.codec import to_json
from profrun.runner.answers import answers, diagnosed, told_by
from profrun.runner.default_comparisons import Point, compare_pairs, default_pairs, points_of
from profrun.store.documents import provenance_beside
from profrun.store.files import write_json
from profrun.store.run_result import ExpectationResult, Findings
from profrun.store.state import RunState, TrialRecord

if TYPE_CHECKING:
    from profrun.analysis.compare import ComparedTrial
    from profrun.analysis.compare.expect import Check
    from profrun.analysis.rules.diagnose import Diagnosis
    from profrun.jobs.model import Expectation

_STATES: dict[bool | None, Literal["held", "failed", "unknown"]] = {
    True: "held",
    False: "failed",
    None: "unknown",
}


def write_findings(state: RunState, expectations: Sequence[Expectation]) -> Findings:
    """Ask the traces of a run, keep the answers in ``comparison.json`` and return them.

    Raises:
        InputError: a trace is damaged.
        UnavailableError: the folder cannot be written.
    """
    points = points_of(state.trials)
    told = {record.id: record for record in told_by(points).values()}
    trials, checks, diagnoses = _read(points, expectations, told, state)

    def trials_of(point: Point) -> list[ComparedTrial]:
        return [trials[record.trace] for record in point.trials if record.trace is not None]

    found = Findings(
        answers=answers(points, diagnoses),
        comparisons=tuple(compare_pairs(default_pairs(points), points, trials_of)),
        expectations=_expectations(checks),
    )
    write_json(state.run.comparison, to_json(found))
    return found


def _read(
    points: Sequence[Point],
    expectations: Sequence[Expectation],
    told: Mapping[str, TrialRecord],
    state: RunState,
) -> tuple[dict[Path, ComparedTrial], list[Check], dict[str, Diagnosis]]:
    """Every trace as comparisons take it, what it says of the expectations, and the diagnoses of some."""
    from profrun.analysis.compare import read_trial
    from profrun.analysis.compare.expect import check_trace
    from profrun.traces.trace import Trace

    trials: dict[Path, ComparedTrial] = {}
    checks: list[Check] = []
    diagnoses: dict[str, Diagnosis] = {}
    for point in points:
        for record in point.trials:
            assert record.trace is not None  # points hold trials with a trace only
            with Trace(record.trace) as trace:
                trial = read_trial(trace, label=record.id, provenance=provenance_beside(record.trace))
                trials[record.trace] = trial
                if record.id in told:
                    diagnoses[record.id] = diagnosed(trace, record, state)
                if expectations:
                    checks += check_trace(trace, expectations, trial=trial)
    return trials, checks, diagnoses


def _expectations(checks: Sequence[Check]) -> tuple[ExpectationResult, ...]:
    """One result per expectation, over all the traces that it is about."""
    from profrun.analysis.compare.expect import summarise

    return tuple(
        ExpectationResult(
            number=verdict.number,
            key=verdict.key,
            variant=verdict.variant,
            expected=verdict.expected,
            state=_STATES[verdict.passed],
            found=verdict.found,
            trials=tuple(verdict.trials),
            failed_on=tuple(verdict.failed_on),
        )
        for verdict in (summarise(checks) if checks else ())
    )
