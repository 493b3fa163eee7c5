"""Which steps of a program are recorded, and how much of a run without steps: ``Schedule``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from .finding import Finding
from .options import Duration, Size, Whole, option
from .units import bytes_text, time_text

WindowPart = Literal["wait", "warmup", "active", "outside"]
"""Where the schedule puts a step; ``active`` ones are recorded."""

Limit = Literal["max_seconds", "max_size"]
"""The fields of a schedule that limit the recording of a run without steps."""

LIMITS: tuple[Limit, ...] = get_args(Limit)
RECORDING_CUT = "recording-cut"
"""Code of the finding that a limit has ended the recording of a run without steps."""


@dataclass(frozen=True)
class Schedule:
    """Steps to skip, to warm up and to record, counted as ``torch.profiler.schedule`` counts them.

    The first ``skip_first`` steps are skipped; then follow ``repeat`` cycles of ``wait`` + ``warmup`` +
    ``active`` steps, of which the ``active`` ones are recorded. With ``repeat`` 0 the cycles never end.

    A run that is recorded as a whole (``Ranges.whole``) has no steps to count: it is recorded from its begin
    to its end, or until one of the limits ``max_seconds`` and ``max_size`` (bytes) is reached. The limits
    change nothing where steps are recorded.
    """

    wait: int = option(Whole(0), "Steps to skip in each cycle.", value=1)
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

    @property
    def cycle(self) -> int:
        """Steps of one cycle."""
        return self.wait + self.warmup + self.active

    @property
    def steps_needed(self) -> int:
        """Steps after which the first cycle is recorded whole."""
        return self.skip_first + self.cycle

    def part(self, step: int) -> WindowPart:
        """Where the schedule puts a step; steps count from 0."""
        place = step - self.skip_first
        if place < 0 or self.cycle <= 0 or (self.repeat and place >= self.cycle * self.repeat):
            return "outside"
        place %= self.cycle
        if place < self.wait:
            return "wait"
        return "warmup" if place < self.wait + self.warmup else "active"

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

    def ends_cycle(self, step: int) -> bool:
        """Whether a step is the last one of its cycle."""
        return (step - self.skip_first + 1) % self.cycle == 0
