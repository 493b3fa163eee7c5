"""The step times of a trial of a run, as comparisons take them: ``trial_times``, from what the hook measured.

A trace tells the same of its trial (``compare.step_samples``); here no trace has to be read.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.counted_steps import MOST_STEPS, Phase, chosen, counted
from profrun.contract.profilers import MAPPING, UNPROFILED
from profrun.store.documents import median_ns

if TYPE_CHECKING:
    from profrun.store.documents import Steps
    from profrun.store.state import TrialRecord


def trial_times(record: TrialRecord, phase: Phase = "steady") -> tuple[int, ...]:
    """Durations of the steps that count, ns, in order; of several ranks the slowest of each step.

    Args:
        phase: which steps count of a trial without a profiler. Of others, and of a program without steps,
            what the schedule records counts.
    """
    return times_of(record.steps, record.collector, phase)


def times_of(
    steps: Steps, collector: str, phase: Phase = "steady", most: int = MOST_STEPS
) -> tuple[int, ...]:
    """The same from the steps of a trial and the name of its collector; none of a mapping, which is slow.

    Args:
        most: of more steps one of each of as many equal stretches is taken.
    """
    if collector == MAPPING:
        return ()
    if collector != UNPROFILED or not steps.denominator.several or phase == "window":
        return steps.measured
    if not steps.in_window or len(steps.in_window) != len(steps.all_ns):
        return steps.measured
    known = np.asarray(steps.all_ns, dtype=np.int64)
    above = known > 0
    window = np.asarray(steps.in_window, dtype=np.bool_)[above]
    durs = known[above]
    return tuple(durs[chosen(counted(durs, window, phase), most)].tolist())


def mean_ns(record: TrialRecord) -> float | None:
    """Mean of all steps of a trial that count, ns; None where nothing was measured.

    It is what the program's time goes by where steps differ: workers of a DataLoader deliver batches in
    bursts, so most steps are short and a few take nearly all of the time. The first step of the program does
    not count: it begins only where the hook first sees a sign of a step, which may be its end.
    """
    return _mean(record.steps, record.collector)


@lru_cache(maxsize=256)  # a driver asks for all trials of a run after each of them
def _mean(steps: Steps, collector: str) -> float | None:
    if steps.denominator.several and len(steps.all_ns) > 1:
        steps = replace(steps, all_ns=steps.all_ns[1:], in_window=steps.in_window[1:])
    times = times_of(steps, collector, most=sys.maxsize)
    return sum(times) / len(times) if times else None


def typical_ns(record: TrialRecord) -> int | None:
    """Median of the step times of a trial in ns, rounded; None where nothing was measured."""
    return median_ns(trial_times(record))
