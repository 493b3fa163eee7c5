"""The step time of a trial's variant without a profiler: ``unprofiled_step``, from the trials of its run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from profrun.contract.profilers import UNPROFILED
from profrun.contract.schedule import WINDOW_MOVED, WINDOW_OPENED
from profrun.errors import ProfrunError

if TYPE_CHECKING:
    from profrun.analysis.counted_steps import Phase
    from profrun.analysis.rules.step_cost import UnprofiledStep
    from profrun.contract.finding import Finding
    from profrun.store.state import RunState, TrialRecord


def unprofiled_step(trace: Path) -> UnprofiledStep | None:
    """The step time of the same variant without a profiler.

    Args:
        trace: a trace folder.

    Returns:
        None where the trace is no trial's, or its run has no finished trial of that variant without a
        profiler whose steps were found in the same way.
    """
    from profrun.store.runs import Run, is_run
    from profrun.store.state import read_state

    path = trace.absolute()
    run = path.parent.parent.parent
    if path.name != "trace" or not is_run(run):
        return None
    try:
        return unprofiled_twin(read_state(Run(run)), path.parent.name)
    except ProfrunError:  # a damaged run must not hide what its trace shows
        return None


def unprofiled_twin(state: RunState, trial: str) -> UnprofiledStep | None:
    """The same for a run that was read already; ``trial`` is the id of the profiled trial."""
    record = next((one for one in state.trials if one.id == trial), None)
    if record is None or record.collector == UNPROFILED:
        return None
    return step_of([one for one in state.trials if _is_twin(one, record)], phase_beside([record.warnings]))


def phase_beside(recorded: Iterable[Iterable[Finding]]) -> Phase:
    """Which steps of trials without a profiler are compared with those that a profiler recorded.

    Args:
        recorded: for each profiled trial its findings.

    Returns:
        The steady ones where a window was put into the steady phase; else those of the phase in which the
        job's window lies, because both trials have the same.
    """
    codes = {finding.code for findings in recorded for finding in findings}
    return "steady" if codes & {WINDOW_MOVED, WINDOW_OPENED} else "recorded"


def step_of(trials: Sequence[TrialRecord], phase: Phase = "steady") -> UnprofiledStep | None:
    """The step time of trials as comparisons take it; None where no step was measured.

    Args:
        phase: which steps count. What a recording shows is a part of the steps of the phase that it recorded
            (``recorded``); what a step costs is said of the steady phase.
    """
    from profrun.analysis.rules.step_cost import UnprofiledStep
    from profrun.analysis.trial_times import trial_times

    measured = [times for one in trials if (times := trial_times(one, phase))]
    if not measured or min(map(min, measured)) <= 0:
        return None
    steps = trials[0].steps
    return UnprofiledStep.of(measured, steps.clock or "wall", steps.denominator)


def _is_twin(one: TrialRecord, record: TrialRecord) -> bool:
    """Did this trial run the same variant without a profiler, and are its steps the same steps?"""
    return (
        one.collector == UNPROFILED
        and one.state == "finished"
        and (one.variant, one.blocking) == (record.variant, record.blocking)
        and one.steps.how == record.steps.how
        and bool(one.steps.measured)
    )
