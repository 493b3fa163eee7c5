"""Which steps of a program are recorded, and how much of a run without steps.

``Schedule`` is what a job says. ``StepSchedule`` is the same as numbers of steps; of ``wait: steady`` they
are known only when the program has reached its steady state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

from .finding import Finding
from .options import Duration, Size, Whole, option
from .units import bytes_text, time_text

Steady = Literal["steady"]
STEADY: Steady = "steady"
"""The value of ``wait`` for: until the times of the steps are steady."""

DEFAULT_WAIT = 1
"""What ``wait`` is where the job does not give it."""

WindowPart = Literal["wait", "warmup", "active", "outside"]
"""Where the schedule puts a step; ``active`` ones are recorded."""

Limit = Literal["max_seconds", "max_size"]
"""The fields of a schedule that limit the recording of a run without steps."""

LIMITS: tuple[Limit, ...] = get_args(Limit)
WINDOW_MOVED, WINDOW_OPENED = "window-moved", "window-opened"
"""Codes of the findings that a window was put into the steady phase: by an earlier trial's phases, or by the
step times of the trial itself."""
RECORDING_CUT = "recording-cut"
"""Code of the finding that a limit has ended the recording of a run without steps."""


@dataclass(frozen=True)
class Schedule:
    """Steps to skip, to warm up and to record, counted as ``torch.profiler.schedule`` counts them.

    The first ``skip_first`` steps are skipped; then follow ``repeat`` cycles of ``wait`` + ``warmup`` +
    ``active`` steps, of which the ``active`` ones are recorded. With ``repeat`` 0 the cycles never end.

    ``wait`` is ``steady`` where the first cycle waits until the times of the steps are steady; the other
    cycles then follow without waiting. It is None where the job does not give it: 1, unless the first
    unprofiled trial of a run shows that another phase is the steady one (``runner.placement``).

    A run that is recorded as a whole (``Ranges.whole``) has no steps to count: it is recorded from its begin
    to its end, or until one of the limits ``max_seconds`` and ``max_size`` (bytes) is reached. The limits
    change nothing where steps are recorded.
    """

    wait: int | Steady | None = option(
        Whole(0, or_word=STEADY),
        "Steps to skip in each cycle; `steady`: until the times of the steps are steady.",
        "1, or as far as the steady phase where the first unprofiled trial shows that it matters",
        null=True,
    )
    warmup: int = option(
        Whole(0), "Steps in which the profiler warms up; their data is thrown away.", value=1
    )
    active: int = option(Whole(1), "Steps to record in each cycle.", value=3)
    repeat: int = option(
        Whole(1, 10_000), "Cycles. torch's 0, which means without end, is not offered.", value=1
    )
    skip_first: int = option(Whole(0), "Steps before the first cycle.", value=0)
    max_seconds: float = option(
        Duration(0.001),
        "How long a run without steps is recorded; the program goes on after it.",
        value=10.0,
    )
    max_size: int = option(
        Size(1 << 20),
        "How much the recording of a run without steps may grow, in memory or on the disk.",
        "2GiB",
        value=2 << 30,
    )

    def settled(self) -> Schedule:
        """The same with ``wait`` as it is where the job does not give it."""
        return self if self.wait is not None else replace(self, wait=DEFAULT_WAIT)

    def steps(self) -> StepSchedule:
        """The same as numbers of steps, for one process."""
        return StepSchedule(self)

    def cut(self, limit: Limit, recorded_ns: int) -> Finding:
        """What is to be said when a limit has ended the recording of a run without steps.

        Args:
            limit: the one that was reached.
            recorded_ns: how long was recorded.
        """
        value = f"{self.max_seconds:g} s" if limit == "max_seconds" else bytes_text(self.max_size)
        return Finding(
            RECORDING_CUT,
            "info",
            f"the first {time_text(recorded_ns)} of the run were recorded",
            f"schedule.{limit} is {value}",
            f"set schedule.{limit} higher to record more",
        )


class StepSchedule:
    """Which steps of one process are recorded, by their numbers, which count from 0.

    It changes once where the schedule waits for the steady state: until ``place`` every step after the first
    ``skip_first`` ones is one of ``wait``. The hook, the recorder and the timer of a process share one.

    Attributes:
        begin: the step with which the first cycle begins after its wait; None: not known yet.
        wait: steps between two cycles.
        steady: whether the first cycle waits for the steady state.
        skip_first, warmup, active, repeat: as ``Schedule``.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.skip_first = schedule.skip_first
        self.warmup, self.active, self.repeat = schedule.warmup, schedule.active, schedule.repeat
        wait = schedule.settled().wait
        self.steady = wait == STEADY
        self.wait = wait if isinstance(wait, int) else 0
        self.begin: int | None = None
        self.forget()

    def forget(self) -> None:
        """The steps are counted from 0 again: where the first cycle begins may not be known any more."""
        self.begin = None if self.steady else self.skip_first + self.wait

    def place(self, step: int) -> None:
        """The steady state was seen: the first cycle begins with this step."""
        self.begin = max(step, self.skip_first)

    @property
    def cycle(self) -> int:
        """Steps from the begin of one cycle to that of the next."""
        return self.wait + self.warmup + self.active

    @property
    def span(self) -> int:
        """Steps from the begin of the first cycle to the last recorded step; ``repeat`` is not 0."""
        return self.cycle * self.repeat - self.wait

    @property
    def last(self) -> int | None:
        """The last step that is recorded; None where the schedule has no end or is not placed yet."""
        if self.begin is None or not self.repeat:
            return None
        return self.begin + self.span - 1

    @property
    def steps_needed(self) -> int | None:
        """Steps after which the first cycle is recorded whole; None: not known yet."""
        return None if self.begin is None else self.begin + self.warmup + self.active

    def part(self, step: int) -> WindowPart:
        """Where the schedule puts a step."""
        if step < self.skip_first or self.cycle <= 0:
            return "outside"
        if self.begin is None or step < self.begin:
            return "wait"
        if self.repeat and step >= self.begin + self.span:
            return "outside"
        place = (step - self.begin) % self.cycle
        if place < self.warmup:
            return "warmup"
        return "active" if place < self.warmup + self.active else "wait"

    def ends_cycle(self, step: int) -> bool:
        """Whether a step is the last one that is recorded in its cycle."""
        if self.begin is None:
            return False
        return (step - self.begin) % self.cycle == self.warmup + self.active - 1

    def idle_until(self, step: int) -> int | None:
        """The first step from ``step`` on that is warmed up for or recorded; None: there is none so far."""
        if self.begin is None:
            return None
        if step < self.begin:
            return self.begin
        if self.part(step) in ("warmup", "active"):
            return step
        following = step + self.cycle - (step - self.begin) % self.cycle
        return None if self.part(following) == "outside" else following
