"""How long steps took: GPU events on the current stream where there is a GPU, else the host's clock.

An event is recorded at each edge of a step and read when it has long passed, so no step ever waits for the
GPU. Without a GPU, and for steps before its first use, ``time.perf_counter_ns`` is used.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ..contract.steps import Anchor, StepTime

if TYPE_CHECKING:
    from ..contract.schedule import StepSchedule
    from ..contract.steps import StepClock
    from .torch_types import Event, Torch

_LATE = 64  # steps that an event is left alone before it is asked whether it is over


def anchor() -> Anchor:
    """The host's clocks at one moment, ns: the tightest of five readings."""
    readings = []
    for _ in range(5):
        before = time.perf_counter_ns()
        reading = Anchor(
            realtime_ns=time.time_ns(),
            monotonic_ns=time.clock_gettime_ns(time.CLOCK_MONOTONIC),
            boottime_ns=time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)),
        )
        readings.append((time.perf_counter_ns() - before, reading))
    return min(readings, key=lambda width_and_reading: width_and_reading[0])[1]


class StepTimer:
    """Times steps one after another.

    A moment is (host ns, GPU event or None). Rows are kept small and made readable by ``steps``.
    """

    def __init__(self, torch: Torch = None) -> None:
        self.torch = torch
        self.anchor = anchor()
        self._wall = time.time_ns() - time.perf_counter_ns()
        self._rows: list[list[Any]] = []  # step, began ns, host ns, first event, last event, event ns
        self._read_to = 0
        self._open: tuple[int, Event] | None = None
        self._first: tuple[int, Event] | None = None

    def mark(self) -> tuple[int, Event]:
        """This moment on the host and in the GPU's stream."""
        torch = self.torch
        if torch is None or not torch.cuda.is_initialized():
            return time.perf_counter_ns(), None
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return time.perf_counter_ns(), event

    def start(self, moment: tuple[int, Event]) -> None:
        """A step begins."""
        self._open = moment
        if self._first is None:
            self._first = moment

    def end(self, number: int, moment: tuple[int, Event]) -> None:
        """The open step ends and was this number."""
        if self._open is None:
            return
        began, first = self._open
        ended, last = moment
        self._open = None
        self._rows.append([number, began, ended - began, first, last, None])
        if first is not None and len(self._rows) - self._read_to >= 2 * _LATE:
            self._read(len(self._rows) - _LATE)

    def drop_open(self) -> None:
        """The open step did not end: forget it."""
        self._open = None

    def reset(self) -> None:
        """Forget all steps, they were found the wrong way: the first is open again, since when it began."""
        self._rows.clear()
        self._read_to = 0
        self._open = self._first

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def event_clock(self) -> StepClock:
        """What GPU events of this torch build are."""
        version = getattr(self.torch, "version", None)
        return "hip_event" if getattr(version, "hip", None) else "cuda_event"

    @property
    def clock(self) -> StepClock:
        """The clock of most steps; a step that used another one says so itself."""
        events = sum(1 for row in self._rows if row[5] is not None or row[3] is not None)
        return self.event_clock if events * 2 > len(self._rows) else "wall"

    def wait(self) -> None:
        """Read every event; waits for the GPU to reach the last one."""
        last = next((row[4] for row in reversed(self._rows) if row[4] is not None), None)
        if last is not None:
            try:
                last.synchronize()
            except RuntimeError:  # the GPU is gone (illegal access, reset): the host's time must do
                for row in self._rows[self._read_to :]:
                    row[3] = row[4] = None
        self._read(len(self._rows))

    def read(self) -> None:
        """Read the events that are over, without waiting."""
        self._read(len(self._rows))

    @property
    def known(self) -> int:
        """How many steps from the first on have been measured; ``read`` adds those that are over."""
        return self._read_to

    def durations(self, first: int, end: int, most: int) -> list[int]:
        """Durations, ns, of the known steps from index ``first`` to ``end``, at most ``most``, evenly apart.

        The distance between those that are taken is odd, so that it is no multiple of what repeats every two,
        four or eight steps.
        """
        apart = max(1, -(-(end - first) // most)) | 1
        return [row[2] if row[5] is None else row[5] for row in self._rows[first:end:apart]]

    def steps(self, schedule: StepSchedule) -> tuple[StepTime, ...]:
        """Finished steps whose time is known; the events of the others are not over yet."""
        usual = self.clock
        found = []
        for number, began, host, first, _last, measured in self._rows:
            if first is not None:
                continue
            clock = "wall" if measured is None else self.event_clock
            found.append(
                StepTime(
                    step=number,
                    ts_ns=self._wall + began,
                    dur_ns=host if measured is None else measured,
                    host_ns=host,
                    window=schedule.part(number),
                    clock=None if clock == usual else clock,
                )
            )
        return tuple(found)

    def whole(self, began_ns: int, dur_ns: int) -> StepTime:
        """The run as one step.

        Args:
            began_ns: when it began, ``time.perf_counter_ns``.
            dur_ns: how long it took on the host, the GPU idle at its end.
        """
        return StepTime(0, self._wall + began_ns, dur_ns, dur_ns, "active")

    def _read(self, end: int) -> None:
        """Turn events of rows before ``end`` into ns, in order, until one is not over yet."""
        while self._read_to < end:
            row = self._rows[self._read_to]
            first, last = row[3], row[4]
            try:
                if first is not None and last is not None:
                    if not last.query():
                        return
                    row[5] = round(first.elapsed_time(last) * 1e6)
            except RuntimeError:
                pass  # the host's time stays
            row[3] = row[4] = None
            self._read_to += 1
