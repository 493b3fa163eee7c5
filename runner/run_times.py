"""The times of runs without steps, as the overhead of a profiler compares them: ``timed_runs``.

A profiler inside the program starts between the begin and the end of the run. Its start does a part of the
set-up of the program, such as the initialisation of CUDA, and a recording begins after it. So neither the
recorded range nor the run without the start can be compared with a run without a profiler; the run with the
start can: it lasts from the same begin to the same end of the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean
from typing import TYPE_CHECKING

from profrun.contract.denominator import RUN

if TYPE_CHECKING:
    from profrun.analysis.compare import ComparedTrial
    from profrun.store.state import TrialRecord


@dataclass(frozen=True)
class TimedRuns:
    """The trials of a point with nothing but the time of their run.

    Attributes:
        trials: each with one sample, from ``steps.json``: the run with the start of the profiler.
        start_ns: how much of these times the start of the profiler takes: geometric mean over the trials.
    """

    trials: tuple[ComparedTrial, ...]
    start_ns: int


def timed_runs(records: Sequence[TrialRecord], trials: Sequence[ComparedTrial]) -> TimedRuns | None:
    """The runs of a point.

    Args:
        records: its trials, of a program without steps.
        trials: the same as comparisons take them.

    Returns:
        None where the time of a run or the start of its profiler is not known (recorded by profrun 0.1).
    """
    starts = [record.steps.profiler_start_ns for record in records]
    known = [start for start in starts if start is not None]
    if len(known) < len(records) or not all(record.steps.measured for record in records):
        return None
    timed = [
        _timed(trial, record.steps.measured[0] + start)
        for record, trial, start in zip(records, trials, known, strict=True)
    ]
    return TimedRuns(tuple(timed), round(geometric_mean(known)) if all(known) else 0)


def _timed(trial: ComparedTrial, ns: int) -> ComparedTrial:
    from profrun.analysis.compare.compared_trial import ComparedTrial, StepSample, StepWork

    one = StepSample(0, 0, time_ns=ns, host_ns=ns, gpu_ns=0, busy_ns=0, kernels=0, launches=0)
    return ComparedTrial(
        conditions=replace(trial.conditions, measure="wall", denominator=RUN),
        samples=(one,),
        kernel_groups=(),
        facts={},
        series={},
        host_ops=(),
        work=StepWork(),
    )
