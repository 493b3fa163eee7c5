"""Phases of the run of a trace, the steady one, the one of the window, and why they differ: ``steadiness``.

Phases are cut from the step times of the whole run (``analysis.run_phases``). Why a phase takes longer than
its neighbour is told only by what the sampler read (``analysis.trace.phase_causes``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.phase_cuts import Cut
from profrun.analysis.run_phases import FEWEST, cut_phases, levels_of_steps, steady_level
from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.phase_causes import Cause, Stretch, causes
from profrun.analysis.trace.run_steps import RunSteps, run_steps
from profrun.contract.window_phase import WindowPhase
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


@dataclass(frozen=True)
class RunPhase:
    """A stretch of the run whose steps take equally long.

    Attributes:
        first_step, last_step: numbers of its steps, both included.
        start_ns, end_ns: begin of its first step and end of its last on the axis of the trace.
        steps: how many of the measured steps it has.
        median_ns: median time of those of its steps that no profiler disturbs.
        level: phases of the same level take equally long.
        why: what the samples tell about why it takes as long as it does; empty where they tell nothing.
        warm_up: whether these are the long first steps of the run.
        drift: ratio of the times at its end to those at its begin, where they drift by 1 % or so; else None.
    """

    first_step: int
    last_step: int
    start_ns: int
    end_ns: int
    steps: int
    median_ns: float
    level: int
    why: tuple[Cause, ...] = ()
    warm_up: bool = False
    drift: float | None = None


@dataclass(frozen=True)
class Steadiness:
    """The phases of a run.

    Attributes:
        phases: in their order, at least one; none where fewer than ``FEWEST`` steps were measured without a
            profiler's records: all steps count then.
        steady: index of the longest phase of the level in which the program lives; None without phases.
        window: index of the phase in which most steps of the window lie; None without phases or window.
        steps: the steps of the run.
        steady_median_ns: median time of the undisturbed steps of the steady level; of all undisturbed steps
            where there are no phases; None where every step is disturbed.
    """

    phases: tuple[RunPhase, ...]
    steady: int | None
    window: int | None
    steps: RunSteps
    steady_median_ns: float | None = None

    @property
    def steady_steps(self) -> Ints:
        """Numbers of the steps at the steady level, int64; of all steps where there are no phases."""
        if self.steady is None:
            return self.steps.numbers
        level = self.phases[self.steady].level
        return np.concatenate([self.numbers(phase) for phase in self.phases if phase.level == level])

    @property
    def window_ratio(self) -> float | None:
        """Median time of the window's phase divided by that of the steady level; None where one is not known.

        It is exactly 1 where both are of one level.
        """
        if self.window is None or not self.steady_median_ns:
            return None
        if self.phases[self.window].level == self.phases[self.steady or 0].level:
            return 1.0
        return self.phases[self.window].median_ns / self.steady_median_ns

    def numbers(self, phase: RunPhase) -> Ints:
        """Numbers of the steps of a phase, int64."""
        inside = (self.steps.numbers >= phase.first_step) & (self.steps.numbers <= phase.last_step)
        return self.steps.numbers[inside]


@memoised
def steadiness(trace: Trace) -> Steadiness | None:
    """The phases of the run; None for a trace without the steps of the run.

    Steps that a profiler records or warms up for take no part in the cutting. They lie in a phase by their
    position; those between two phases belong to the later one.
    """
    steps = run_steps(trace)
    if steps is None:
        return None
    calm = np.flatnonzero(~steps.disturbed)
    durs = steps.durs[calm]
    if len(calm) < FEWEST:
        return Steadiness((), None, None, steps, float(np.median(durs)) if len(durs) else None)
    cuts = cut_phases(durs)
    level = steady_level(cuts)
    bounds = [0, *(int(calm[cut.first - 1]) + 1 for cut in cuts[1:]), len(steps)]
    phases = tuple(
        _phase(steps, first, stop, cut) for (first, stop), cut in zip(pairwise(bounds), cuts, strict=True)
    )
    return Steadiness(
        phases=tuple(_explained(trace, phases)) if len(phases) > 1 else phases,
        steady=max(
            (place for place, cut in enumerate(cuts) if cut.level == level),
            key=lambda place: phases[place].end_ns - phases[place].start_ns,
        ),
        window=_window(steps, bounds),
        steps=steps,
        steady_median_ns=float(np.median(durs[levels_of_steps(cuts) == level])),
    )


def window_phase(trace: Trace) -> WindowPhase | None:
    """Where the window lies; None where the run has one phase only, or no window that is known."""
    found = steadiness(trace)
    if found is None or len(found.phases) < 2 or found.window is None or found.steady is None:
        return None
    here, steady = found.phases[found.window], found.phases[found.steady]
    slow, fast = (here, steady) if here.median_ns > steady.median_ns else (steady, here)
    return WindowPhase(
        phase=found.window + 1,
        phases=len(found.phases),
        first_step=here.first_step,
        last_step=here.last_step,
        ns=here.median_ns,
        steady=found.steady + 1,
        steady_first_step=steady.first_step,
        steady_last_step=steady.last_step,
        steady_ns=steady.median_ns,
        same_level=here.level == steady.level,
        why=tuple(cause.text for cause in slow.why or fast.why),
        recorded_ns=_recorded_ns(found.steps),
    )


def _recorded_ns(steps: RunSteps) -> float | None:
    """Median time of the steps that a profiler recorded; None without a profiler."""
    recorded = steps.durs[steps.window & steps.disturbed]
    return float(np.median(recorded)) if len(recorded) else None


def _phase(steps: RunSteps, first: int, stop: int, cut: Cut) -> RunPhase:
    return RunPhase(
        first_step=int(steps.numbers[first]),
        last_step=int(steps.numbers[stop - 1]),
        start_ns=int(steps.starts[first]),
        end_ns=int(steps.ends[first:stop].max()),
        steps=stop - first,
        median_ns=cut.median,
        level=cut.level,
        warm_up=cut.warm_up,
        drift=cut.drift,
    )


def _window(steps: RunSteps, bounds: list[int]) -> int | None:
    """Index of the phase with the most steps of the window, the first of several."""
    counts = [int(steps.window[first:stop].sum()) for first, stop in pairwise(bounds)]
    return int(np.argmax(counts)) if any(counts) else None


def _explained(trace: Trace, phases: tuple[RunPhase, ...]) -> Iterator[RunPhase]:
    stretches = [
        Stretch(phase.start_ns, phase.end_ns, phase.median_ns, warm_up=phase.warm_up) for phase in phases
    ]
    for place, phase in enumerate(phases):
        before = [one for one in stretches[:place] if not one.warm_up]
        other = before[-1] if before else stretches[place + 1] if place + 1 < len(stretches) else None
        first = not before and not phase.warm_up
        yield replace(phase, why=causes(trace, replace(stretches[place], first=first), other))
