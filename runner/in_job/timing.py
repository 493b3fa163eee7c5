"""How long steps took: GPU events on the current stream where there is a GPU, else the host's clock.

An event is recorded at each edge of a step and read when it has long passed, so no step ever waits for the
GPU. Without a GPU, and for steps before its first use, ``time.perf_counter_ns`` is used.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any

_LATE = 64  # steps after which an event is surely over, or asked


def anchor() -> dict[str, int]:
    """The host's clocks at one moment, ns: the tightest of five readings."""
    best: tuple[int, dict[str, int]] | None = None
    for _ in range(5):
        before = time.perf_counter_ns()
        reading = {
            "realtime_ns": time.time_ns(),
            "monotonic_ns": time.clock_gettime_ns(time.CLOCK_MONOTONIC),
            "boottime_ns": time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)),
        }
        width = time.perf_counter_ns() - before
        if best is None or width < best[0]:
            best = (width, reading)
    assert best is not None
    return best[1]


class StepClock:
    """Times steps one after another.

    Attributes:
        steps: finished steps: {step, ts_ns (unix), dur_ns or None while unread, host_ns, window, clock}.
    """

    def __init__(self, torch: Any = None) -> None:
        self.torch = torch
        self.steps: list[dict[str, Any]] = []
        self.anchor = anchor()
        self._wall = time.time_ns() - time.perf_counter_ns()
        self._open: tuple[int, str, int, Any] | None = None
        self._pending: deque[tuple[dict[str, Any], Any, Any]] = deque()
        self._first: tuple[int, str, int, Any] | None = None

    def start(self, number: int, window: str) -> None:
        """A step begins now."""
        event = self._event()
        self._open = (number, window, time.perf_counter_ns(), event)
        if self._first is None:
            self._first = self._open

    def end(self, mark: tuple[int, Any] | None = None) -> None:
        """The open step ends now, or where ``mark()`` was taken."""
        if self._open is None:
            return
        number, window, began, first = self._open
        self._open = None
        ended, last = mark if mark is not None else self.mark()
        host = ended - began
        row: dict[str, Any] = {
            "step": number,
            "ts_ns": self._wall + began,
            "dur_ns": host,
            "host_ns": host,
            "window": window,
            "clock": "wall",
        }
        self.steps.append(row)
        if first is not None and last is not None:
            row["dur_ns"] = None
            row["clock"] = self.event_clock
            self._pending.append((row, first, last))
            if len(self._pending) > _LATE and self._pending[0][2].query():
                self._read(self._pending.popleft())

    def mark(self) -> tuple[int, Any]:
        """This moment on the host and in the GPU's stream, to end a step later."""
        event = self._event()
        return time.perf_counter_ns(), event

    def drop_open(self) -> None:
        """The open step did not end: forget it."""
        self._open = None

    def reset(self) -> None:
        """Forget all steps, they were found the wrong way: the first is open again, since when it began."""
        self.steps.clear()
        self._pending.clear()
        self._open = self._first

    @property
    def event_clock(self) -> str:
        """What GPU events of this torch build are."""
        return "hip_event" if getattr(self.torch.version, "hip", None) else "cuda_event"

    @property
    def clock(self) -> str:
        """The clock of most steps; a step that used another one says so itself."""
        events = sum(1 for row in self.steps if row["clock"] != "wall")
        return self.event_clock if events * 2 > len(self.steps) else "wall"

    def read(self, *, wait: bool) -> None:
        """Turn events into durations: all of them (waits for the GPU), or those already over."""
        while self._pending and (wait or self._pending[0][2].query()):
            if wait:
                try:
                    self._pending[-1][2].synchronize()
                except RuntimeError:  # the GPU is gone (illegal access, reset): the host's time must do
                    for row, _, _ in self._pending:
                        row.update(dur_ns=row["host_ns"], clock="wall")
                    self._pending.clear()
                    return
                wait = False
            self._read(self._pending.popleft())

    def _read(self, pending: tuple[dict[str, Any], Any, Any]) -> None:
        row, first, last = pending
        try:
            row["dur_ns"] = round(first.elapsed_time(last) * 1e6)
        except RuntimeError:
            row.update(dur_ns=row["host_ns"], clock="wall")

    def _event(self) -> Any:
        if self.torch is None or not self.torch.cuda.is_initialized():
            return None
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event
