"""Where the window of a profiled trial lies, by what the first unprofiled trial has shown: ``Placer``.

A program may not be steady where the schedule's default puts the window: its first steps compile, or run at
a clock that the GPU's power cap does not let it keep. Where trials run one after another, the phases of the
first unprofiled trial of a variant are known when the first profiled one begins. Its window is then moved
into the steady phase, unless the job says itself where it wants it (``schedule.wait``, ``skip_first``). For
``wait: steady`` it is put there in any case; the hook's own rule (``in_job.steady``) is for the rest.

The phase begins at another step in each trial, so the window does not lie at its very begin: 1 s of steps, or
as many steps as came before the phase if they are more, but no more than to the middle of the phase.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from profrun.contract.finding import Finding
from profrun.contract.profilers import UNPROFILED
from profrun.contract.schedule import STEADY, WINDOW_MOVED, Schedule
from profrun.contract.units import change_text, time_text
from profrun.contract.window_phase import SAID
from profrun.errors import ProfrunError
from profrun.plans.model import Plan, Trial
from profrun.store.runs import Run
from profrun.store.state import read_trial

if TYPE_CHECKING:
    from profrun.analysis.trace.steadiness import RunPhase, Steadiness


MARGIN_NS = 1e9
"""Time of steps between the begin of the steady phase and the window."""

WARM_NS = 5e8
"""Time of steps between the start of a profiler and a window that was moved: the GPU is idle while a profiler
starts, and then runs above the clock of its power cap again (on an H200 for 60 to 150 ms)."""
MOST_WARM = 100
"""Most steps of that warm-up: a profiler keeps what happens in them for a while."""


@dataclass(frozen=True)
class Placed:
    """The schedule of one trial, and why it is this one."""

    schedule: Schedule
    finding: Finding


class Placer:
    """Places the windows of one run's trials.

    Args:
        run: what its first trials left is read when it is needed.
        plan: its trials, in the order in which they run.
    """

    def __init__(self, run: Run, plan: Plan) -> None:
        self._run, self._plan = run, plan
        self._seen: dict[str, Steadiness] = {}

    def place(self, trial: Trial) -> Placed | None:
        """Where the window of a trial that begins now is put; None: where the job's schedule has it."""
        schedule, job = self._plan.job.schedule, self._plan.job
        asked = schedule.wait == STEADY
        chosen = schedule.wait is not None or schedule.skip_first
        if trial.collector == UNPROFILED or job.ranges.whole or (chosen and not asked):
            return None
        for other in self._plan.trials[: trial.index]:
            same = (other.variant, other.blocking) == (trial.variant, trial.blocking)
            if same and other.collector == UNPROFILED:
                found = self._steadiness(other)
                if found is not None:
                    return placed(schedule, found, other.id)
        return None

    def _steadiness(self, trial: Trial) -> Steadiness | None:
        """The phases of an unprofiled trial; None where it has not finished or has no steps."""
        if trial.id not in self._seen:
            record = read_trial(self._run, trial.id)
            if record.state != "finished" or record.trace is None:
                return None
            from profrun.analysis.trace.steadiness import steadiness
            from profrun.traces.trace import Trace

            with contextlib.suppress(ProfrunError), contextlib.closing(Trace(record.trace)) as trace:
                found = steadiness(trace)
                if found is not None:
                    self._seen[trial.id] = found
        return self._seen.get(trial.id)


def placed(schedule: Schedule, found: Steadiness, trial: str) -> Placed | None:
    """The schedule with its window in the steady phase; None where it may stay as it is.

    Args:
        schedule: of the job; ``wait`` is not given, or it is ``steady``.
        found: the phases of the first unprofiled trial.
        trial: its id, for the finding.
    """
    ratio = found.window_ratio
    asked = schedule.wait == STEADY
    matters = ratio is not None and abs(1 / ratio - 1) > SAID
    if found.steady is None or not (asked or matters):
        return None
    phase = found.phases[found.steady]
    why = f"trial {trial} showed that {_why(found, phase, asked=asked)}"
    first = int(found.steps.numbers[0])
    more = _warm_up(phase) if schedule.repeat == 1 else 0
    warm = replace(schedule, warmup=max(schedule.warmup, more))
    for fitting in (warm, schedule):
        begin = _begin(fitting, phase, first)
        if begin is not None:
            what = f"recorded from step {begin + fitting.warmup} on, in the steady phase"
            fix = "set schedule.wait to record elsewhere"
            return Placed(_moved(fitting, begin), Finding(WINDOW_MOVED, "info", what, why, fix))
    if asked:
        return None
    what = f"the window is not in the steady phase, which has {phase.steps} steps: it does not fit into it"
    fix = "run more steps or set a smaller schedule"
    return Placed(schedule, Finding("window-does-not-fit", "info", what, why, fix))


def _warm_up(phase: RunPhase) -> int:
    """Steps of warm-up that a moved window has at least."""
    return min(MOST_WARM, math.ceil(WARM_NS / phase.median_ns))


def _begin(schedule: Schedule, phase: RunPhase, first: int) -> int | None:
    """The step with which the first cycle begins after its wait; None where the phase is too short."""
    room = phase.last_step + 1 - phase.first_step - schedule.steps().span
    if room < 0:
        return None
    margin = max(phase.first_step - first, math.ceil(MARGIN_NS / phase.median_ns))
    begin = max(phase.first_step + min(margin, room // 2), schedule.skip_first)
    return begin if begin <= phase.first_step + room else None


def _moved(schedule: Schedule, begin: int) -> Schedule:
    """The schedule whose first cycle begins there; the steps between cycles stay as many as they were."""
    if schedule.repeat == 1:
        return replace(schedule, wait=begin - schedule.skip_first)
    wait = min(schedule.steps().wait, begin)
    return replace(schedule, wait=wait, skip_first=begin - wait)


def _why(found: Steadiness, phase: RunPhase, *, asked: bool) -> str:
    ratio = found.window_ratio
    if asked or found.window is None or ratio is None:
        return f"its steps are steady from step {phase.first_step} on, {time_text(phase.median_ns)} per step"
    window = found.phases[found.window]
    return (
        f"steps {window.first_step}-{window.last_step} are {change_text(ratio)} than the steady ones: "
        f"{time_text(window.median_ns)} per step, not {time_text(phase.median_ns)}"
    )
