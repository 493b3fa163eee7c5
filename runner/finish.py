"""What the end of a run asks of its traces: comparisons of its points, and the job's expectations.

Each trace is opened once, because opening one costs more than most answers. The answers are kept in
``comparison.json``; ``ReadTraces`` keeps what the report of the run needs of the traces as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from profrun.contract.codec import to_json
from profrun.runner.answers import answers, diagnosed, told_by
from profrun.runner.default_comparisons import Point, compare_pairs, default_pairs, points_of
from profrun.store.documents import provenance_beside
from profrun.store.files import write_json
from profrun.store.run_result import ExpectationResult, Findings
from profrun.store.state import RunState

if TYPE_CHECKING:
    from profrun.analysis.compare import ComparedTrial
    from profrun.analysis.compare.expect import Check
    from profrun.analysis.rules.diagnose import Diagnosis
    from profrun.jobs.expectation import Expectation

_STATES: dict[bool | None, Literal["held", "failed", "unknown"]] = {
    True: "held",
    False: "failed",
    None: "unknown",
}


@dataclass(frozen=True)
class ReadTraces:
    """What was read of the traces of a run, so that the report of the run does not read it again.

    Attributes:
        trials: id of a trial -> its trace as comparisons take it.
        diagnoses: id of a trial -> what its recording shows, for the trials that ``told_by`` names.
    """

    trials: dict[str, ComparedTrial] = field(default_factory=dict)
    diagnoses: dict[str, Diagnosis] = field(default_factory=dict)


def write_findings(
    state: RunState, expectations: Sequence[Expectation], read: ReadTraces | None = None
) -> Findings:
    """Ask the traces of a run, keep the answers in ``comparison.json`` and return them.

    Args:
        state: the run and its trials.
        expectations: of the job.
        read: is filled with what is read of the traces.

    Raises:
        InputError: a trace is damaged.
        UnavailableError: the folder cannot be written.
    """
    points = points_of(state.trials)
    read = ReadTraces() if read is None else read
    checks = _read(points, expectations, state, read)

    def trials_of(point: Point) -> list[ComparedTrial]:
        return [read.trials[record.id] for record in point.trials]

    found = Findings(
        answers=answers(points, read.diagnoses),
        comparisons=tuple(compare_pairs(default_pairs(points), points, trials_of)),
        expectations=_expectations(checks),
    )
    write_json(state.run.comparison, to_json(found))
    return found


def _read(
    points: Sequence[Point], expectations: Sequence[Expectation], state: RunState, read: ReadTraces
) -> list[Check]:
    """Fill ``read`` from every trace of the points; returns what the traces say of the expectations."""
    from profrun.analysis.compare import read_trial
    from profrun.analysis.compare.expect import check_trace
    from profrun.traces.trace import Trace

    told = {record.id for record in told_by(points).values()}
    checks: list[Check] = []
    for point in points:
        for record in point.trials:
            assert record.trace is not None  # points hold trials with a trace only
            with Trace(record.trace) as trace:
                trial = read_trial(trace, label=record.id, provenance=provenance_beside(record.trace))
                read.trials[record.id] = trial
                if record.id in told:
                    read.diagnoses[record.id] = diagnosed(trace, record, state)
                if expectations:
                    checks += check_trace(trace, expectations, trial=trial)
    return checks


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
