"""Follows the steps of one process: times each one, and tells the window and the ranges of its edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

from .finder import StepFinder
from .timing import StepTimer
from .window_placer import WindowPlacer

if TYPE_CHECKING:
    from .hook_process import HookProcess
    from .ranges import Ranges
    from .torch_types import Event
    from .window import WindowDriver


class StepFollower:
    """What happens at the edges of steps.

    Args:
        ended: called after each step with the moment of its end, ``time.perf_counter_ns``.
        free: called when the hook is no longer between two steps: a signal may come in again.

    Attributes:
        number: of the open step, from 0.
        finder: says which moments are the ends of steps.
        timer: has the times of the steps so far.
        placer: finds the place of a window that waits for the steady state.
        busy: between two steps, where no signal may come in.
        last_end: when the last call that can be the end of the last step has ended; None: there was none.
    """

    def __init__(
        self,
        process: HookProcess,
        window: WindowDriver,
        ranges: Ranges,
        ended: Callable[[int], None],
        free: Callable[[], None],
    ) -> None:
        self.process = process
        self.window = window
        self.ranges = ranges
        self._ended = ended
        self._freed = free
        self.forget()

    def forget(self) -> None:
        """Start from nothing."""
        self.number = 0
        self.busy = False
        self.last_end: tuple[int, Event] | None = None
        self.timer = StepTimer(self.process.torch)
        self.finder = StepFinder(self.process.config.ranges.steps, self._begin, self._end, self._restart)
        self.process.schedule.forget()
        self.placer = WindowPlacer(self.process, self.timer)
        self._idle_until = self._until(0)

    def note_end(self) -> None:
        """What may be the last work of the program has ended."""
        if not self.process.capturing():
            self.last_end = self.timer.mark()

    def close_last(self) -> None:
        """The program ends."""
        if self.last_end is not None and self.finder.close_last():
            self.timer.end(self.number, self.last_end)
        self.timer.drop_open()

    def _begin(self) -> None:
        """The first step begins."""
        self.busy = True
        try:
            self.placer.start()
            self._idle_until = self._until(0)
            self.window.begin(0)
            self._open(self.timer.mark())
        finally:
            self._free()

    def _end(self) -> None:
        """A step has ended and the next one begins. Most are idle: nothing to do but to time them."""
        if self.process.capturing():
            self.finder.count -= 1
            return
        timer = self.timer
        moment = timer.mark()
        timer.end(self.number, moment)
        following = self.number + 1
        sink = self.ranges.sink
        if following < self._idle_until and (sink is None or not sink.emitting):
            self.number = following
            timer.start(moment)
        else:
            self._edge(following)
        self._ended(moment[0])

    def _edge(self, following: int) -> None:
        """Between two steps of which one is recorded or warmed up, or after which the steps are looked at."""
        self.busy = True
        try:
            self.ranges.end_step()
            self.window.end(self.number)
            self.number = following
            self.placer.look(following)
            self.window.begin(following)
            self._idle_until = self._until(following)
            self._open(self.timer.mark())
        finally:
            self._free()

    def _until(self, step: int) -> int:
        """The first step from ``step`` on at whose edges there is more to do than to time it."""
        process = self.process
        following = process.schedule.idle_until(step) if process.config.windowed else None
        return self.placer.look_at if following is None else min(following, self.placer.look_at)

    def _free(self) -> None:
        self.busy = False
        self._freed()

    def _open(self, moment: tuple[int, Event]) -> None:
        self.ranges.begin_step(self.number)
        self.timer.start(moment)

    def _restart(self) -> bool:
        if not self.window.reset():
            return False
        self.ranges.end_step()
        self.ranges.begin_step(0)
        self.number = 0
        self.process.schedule.forget()
        self.timer.reset()
        self.placer = WindowPlacer(self.process, self.timer)
        self.placer.start()
        self._idle_until = self._until(0)
        return True
