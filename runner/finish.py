"""What the end of a run asks of its traces: comparisons of its points, and the job's expectations.

Each trace is opened once, because opening one costs more than most answers. The answers are kept in
``comparison.json``; ``ReadTraces`` keeps what the report of the run needs of the traces as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from profrun.contract.codec import to_json
from profrun.contract.profilers import UNPROFILED
from profrun.runner.answers import answers, diagnosed, told_by
from profrun.runner.default_comparisons import Point, compare_pairs, default_pairs, points_of
from profrun.runner.progress import counted, no_progress
from profrun.runner.twins import phase_beside, unprofiled_twin
from profrun.store.documents import provenance_beside
from profrun.store.files import write_json
from profrun.store.run_claims import ClaimResult
from profrun.store.run_result import Findings, read_findings
from profrun.store.runs import Run
from profrun.store.state import RunState, TrialRecord, read_state

if TYPE_CHECKING:
    from profrun.analysis.compare import ComparedTrial
    from profrun.analysis.compare.expect import Told
    from profrun.analysis.rules.diagnose import Diagnosis
    from profrun.analysis.trace.used_gpus import UsedGpus
    from profrun.collectors.reading import Progress
    from profrun.jobs.expectation import Expectation


@dataclass(frozen=True)
class ReadTraces:
    """What was read of the traces of a run, so that the report of the run does not read it again.

    Attributes:
        trials: id of a trial -> its trace as comparisons take it.
        diagnoses: id of a trial -> what its recording shows, for the trials that ``told_by`` names.
        used_gpus: id of a trial -> the GPUs that it used.
        recorded: id of a trial -> the same as in ``trials``; a trial without a profiler has the steps of the
            phase that a profiler records.
    """

    trials: dict[str, ComparedTrial] = field(default_factory=dict)
    diagnoses: dict[str, Diagnosis] = field(default_factory=dict)
    used_gpus: dict[str, UsedGpus] = field(default_factory=dict)
    recorded: dict[str, ComparedTrial] = field(default_factory=dict)


def write_findings(
    state: RunState,
    expectations: Sequence[Expectation],
    read: ReadTraces | None = None,
    progress: Progress = no_progress,
) -> Findings:
    """Ask the traces of a run, keep the answers in ``comparison.json`` and return them.

    Args:
        state: the run and its trials.
        expectations: of the job.
        read: is filled with what is read of the traces.
        progress: called with the number of traces that were begun, and how many there are.

    Raises:
        InputError: a trace is damaged.
        UnavailableError: the folder cannot be written.
    """
    points = points_of(state.trials)
    read = ReadTraces() if read is None else read
    another = counted(progress, sum(len(point.trials) for point in points))
    told = _read(points, expectations, state, read, another)

    def trials_of(point: Point) -> list[ComparedTrial]:
        return [read.trials[record.id] for record in point.trials]

    def recorded_of(point: Point) -> list[ComparedTrial]:
        return [read.recorded[record.id] for record in point.trials]

    found = Findings(
        answers=answers(points, read.diagnoses, read.trials),
        comparisons=tuple(compare_pairs(default_pairs(points), points, trials_of, recorded_of)),
        expectations=_claims(expectations, told, state),
    )
    write_json(state.run.comparison, to_json(found))
    return found


def _read(
    points: Sequence[Point],
    expectations: Sequence[Expectation],
    state: RunState,
    read: ReadTraces,
    another: Callable[[], None],
) -> list[Told]:
    """Fill ``read`` from every trace of the points; returns what the traces say of the expectations."""
    from profrun.analysis.compare import read_trial
    from profrun.analysis.compare.expect import tell
    from profrun.analysis.compare.reading import in_phase
    from profrun.analysis.trace.used_gpus import used_gpus
    from profrun.traces.trace import Trace

    telling = {record.id for record in told_by(points).values()}
    told: list[Told] = []
    for point in points:
        for record in point.trials:
            assert record.trace is not None  # points hold trials with a trace only
            another()
            provenance = provenance_beside(record.trace)
            with Trace(record.trace) as trace:
                trial = read_trial(trace, label=record.id, provenance=provenance)
                read.trials[record.id] = trial
                beside = [one.warnings for one in state.trials if _records(one, record)]
                read.recorded[record.id] = in_phase(trial, trace, phase_beside(beside))
                read.used_gpus[record.id] = used_gpus(trace, provenance)
                if record.id in telling:
                    read.diagnoses[record.id] = diagnosed(trace, record, state)
                if expectations:
                    twin = unprofiled_twin(state, record.id)
                    steps = len(record.steps.measured) or None
                    told.append(
                        tell(
                            trace,
                            expectations,
                            trial=trial,
                            point=(record.variant, record.collector, record.blocking),
                            steps=steps,
                            steps_of=record.steps.denominator,
                            provenance=provenance,
                            unprofiled=twin,
                        )
                    )
    return told


def _records(one: TrialRecord, record: TrialRecord) -> bool:
    """Whether this is a profiled trial of the same variant."""
    same = (one.variant, one.blocking) == (record.variant, record.blocking)
    return same and one.collector != UNPROFILED


def _claims(
    expectations: Sequence[Expectation], told: Sequence[Told], state: RunState
) -> tuple[ClaimResult, ...]:
    """One result per expectation, over all the traces that it is about."""
    if not expectations:
        return ()
    from profrun.analysis.compare.expect import judge

    return judge(expectations, told, list(dict.fromkeys(record.variant for record in state.trials)))


def claims_of(run: Run) -> tuple[ClaimResult, ...]:
    """What a run says of the claims of its job: as its end kept it, else by the traces that are there now.

    Raises:
        InputError: a trace is damaged.
        UsageError: its job cannot be read.
    """
    kept = read_findings(run)[0].expectations
    if kept:
        return kept
    from profrun.jobs.load import load_job

    return judged_again(run, load_job(run.resolved).expect)


def judged_again(run: Run, expectations: Sequence[Expectation]) -> tuple[ClaimResult, ...]:
    """What the traces of a run say now of claims, whatever its end kept.

    Args:
        expectations: the claims, those of its job or others about its variants.

    Raises:
        InputError: a trace is damaged.
    """
    state = read_state(run)
    told = _read(points_of(state.trials), expectations, state, ReadTraces(), lambda: None)
    return _claims(expectations, told, state)
