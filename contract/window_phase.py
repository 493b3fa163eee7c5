"""In which phase of the run the recorded window lies, beside the steady phase: ``WindowPhase``.

The summary, a comparison, the first screen of a run and the report say it in the same words.
"""

from __future__ import annotations

from dataclasses import dataclass

from .units import change_text, time_text

SAID = 0.02
"""Share by which the window must differ from the steady phase before the first screen of a run says so."""


@dataclass(frozen=True)
class WindowPhase:
    """The phase in which most steps of the window lie, and the steady one.

    Attributes:
        phase, steady: their numbers, counted from 1. phases: how many the run has, 2 or more.
        first_step, last_step: of the window's phase, both included. ns: median time of its steps.
        steady_first_step, steady_last_step, steady_ns: the same of the steady phase.
        same_level: whether the steps of both take equally long.
        why: clauses about why the slower one is slower, as far as samples tell.
        recorded_ns: median time of the steps that a profiler recorded; None without a profiler. A profiler
            makes steps longer. Where they are shorter than the steady ones, the program was in another state.
    """

    phase: int
    phases: int
    first_step: int
    last_step: int
    ns: float
    steady: int
    steady_first_step: int
    steady_last_step: int
    steady_ns: float
    same_level: bool
    why: tuple[str, ...] = ()
    recorded_ns: float | None = None

    @property
    def rested(self) -> bool:
        """Whether the recorded steps are shorter than the steady ones by more than ``SAID``.

        While a profiler starts, the program waits and the GPU is idle. Measured on an H200: the GPU then ran
        above the clock of its power cap again, for 60 to 150 ms.
        """
        return self.recorded_ns is not None and self.recorded_ns < self.steady_ns * (1 - SAID)

    @property
    def _rested_while_steady(self) -> bool:
        return self.rested and (self.phase == self.steady or self.same_level)

    @property
    def ratio(self) -> float:
        """Time of the steps that ``text`` is about / time of the steady ones."""
        if self._rested_while_steady and self.recorded_ns is not None:
            return self.recorded_ns / self.steady_ns
        return self.ns / self.steady_ns

    @property
    def matters(self) -> bool:
        """Whether the window's steps take another time than the steady ones by more than ``SAID``."""
        return self.rested or (not self.same_level and abs(self.steady_ns / self.ns - 1) > SAID)

    @property
    def text(self) -> str:
        """One sentence without capital and full stop."""
        steps = _steps(self.first_step, self.last_step)
        here = (
            f"the window lies in phase {self.phase} of {self.phases} ({steps}, {time_text(self.ns)} per step)"
        )
        if self._rested_while_steady and self.recorded_ns is not None:
            change = change_text(self.ratio)
            return (
                f"{here}, but the recorded steps took {time_text(self.recorded_ns)}, {change} than the "
                "steady ones: the GPU is idle while a profiler starts; more steps of schedule.warmup help"
            )
        if self.phase == self.steady:
            return f"{here}, the steady phase"
        steps = _steps(self.steady_first_step, self.steady_last_step)
        there = f"phase {self.steady} ({steps}"
        if self.same_level:
            return f"{here}; its steps take as long as those of the steady phase, {there})"
        change = change_text(self.steady_ns / self.ns)
        why = f": {', and '.join(self.why)}" if self.why else ""
        return f"{here}; the steady phase is {there}, {time_text(self.steady_ns)} per step, {change}){why}"


def _steps(first: int, last: int) -> str:
    return f"step {first}" if first == last else f"steps {first}-{last}"
