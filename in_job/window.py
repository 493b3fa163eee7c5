"""Starts and stops a recorder at the edges of steps, as the schedule says."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Callable

from ..contract.finding import Finding
from ..contract.recording import CannotRecordError

if TYPE_CHECKING:
    from ..contract.recording import Recorder
    from ..contract.schedule import StepSchedule
    from .config import HookConfig


class WindowDriver:
    """Follows the schedule from step to step.

    Args:
        config: the hook's orders.
        schedule: which steps are recorded.
        recorder: what it starts and stops; None while there is none.
        changed: called with True when recording has begun and with False just before it ends.
        warn: takes findings for exit.json.
        drain: waits until the GPU has done what it was given.

    Attributes:
        opened, complete: how often recording began, and how often it reached its cycle's end.
        recording: whether the step that runs now is recorded.
    """

    def __init__(
        self,
        config: HookConfig,
        schedule: StepSchedule,
        recorder: Recorder | None,
        changed: Callable[[bool], None],
        warn: Callable[[Finding], None],
        drain: Callable[[], object] = lambda: None,
    ) -> None:
        self.config = config
        self.schedule = schedule
        self.recorder = recorder
        self.opened = 0
        self.complete = 0
        self.recording = False
        self._changed = changed
        self._warn = warn
        self._drain = drain
        self._started = False  # the recorder runs; its first steps may be warm-up
        self._broken = False
        self._obstacle: Finding | None = None  # why recording could not begin so far

    def attach(self, recorder: Recorder | None) -> None:
        """Torch is there: this recorder, unless another one runs already."""
        if not self._started:
            self.recorder = recorder

    def record_everything(self) -> None:
        """The run is recorded as a whole: a recorder runs from here to the end, or to ``finish``."""
        if self.recorder is not None and not self._started and not self._broken:
            self._start(0, whole=True)

    def begin(self, step: int) -> None:
        """A step begins: the first, or the next one after ``end``."""
        if self._broken or self.recorder is None or not self.config.windowed:
            return
        part = self.schedule.part(step)
        if not self._started and part in ("active", self.recorder.starts_at):
            self._start(step)
        if part == "active" and self._started and not self.recording:
            self._set(True)

    def end(self, step: int) -> None:
        """A step has ended; whatever the profiler writes now is between steps."""
        if self.recorder is None or not self._started or not self.config.windowed:
            return
        if self.recording and self.schedule.ends_cycle(step):
            self._set(False)
            self.complete += 1
            self._stop()
        else:
            self._drain_before(step + 1)
            self.recorder.step()

    def _drain_before(self, step: int) -> None:
        """Wait for the GPU before the first recorded step after a long warm-up.

        A host may be many steps ahead of its GPU. Then work that runs during the recorded steps was launched
        before them. After a single step of warm-up the host is not ahead, because the start of the profiler
        waits for the GPU.
        """
        if self.schedule.warmup > 1 and not self.recording and self.schedule.part(step) == "active":
            self._drain()

    def reset(self) -> bool:
        """Back to the first step. False when something was recorded already: too late."""
        if self.opened:
            return False
        self.discard()
        return True

    def finish(self) -> None:
        """The program ends, or a limit is reached: keep what there is."""
        if self.recording:
            self._set(False)
        self._stop()

    def discard(self) -> None:
        """Keep nothing: this process does not do the program's work."""
        self.recording = False
        if self.recorder is not None and self._started:
            self._started = False
            self.recorder.discard()

    def after_fork(self) -> None:
        """A forked child: what is recorded now belongs to the parent, and then the child records nothing."""
        self._broken = self._started
        self._started = self.recording = False
        if not self._broken:
            self.opened = self.complete = 0

    def shortfall(self, steps: int) -> Finding | None:
        """Why the window never opened or never closed in a program that has made some steps; None: it did.

        Args:
            steps: how many the program has made.
        """
        if not self.config.windowed or not steps or self.complete:
            return None
        if self._obstacle is not None and not self.opened:
            return self._obstacle
        if self.recorder is None:
            return Finding("window-not-opened", "critical", "the window was never opened", _no_torch())
        need = self.schedule.steps_needed
        if need is not None and steps < need:  # else the last step's end was the program's own
            return self._too_long(steps, need)
        return None

    def _too_long(self, steps: int, need: int) -> Finding:
        schedule = self.schedule
        wait = need - schedule.skip_first - schedule.warmup - schedule.active
        what = (
            f"the schedule is longer than the program: it made {steps} step{'s' * (steps != 1)}, and "
            f"skip_first {schedule.skip_first} + wait {wait} + warmup {schedule.warmup} + active "
            f"{schedule.active} need {need}"
        )
        why = "the recording stops early" if self.opened else ""
        fix = f"run at least {need} steps or set a smaller schedule"
        return Finding("schedule-too-long", "warning" if self.opened else "critical", what, why, fix)

    def _start(self, step: int, *, whole: bool = False) -> None:
        if self.recorder is None:
            return
        try:
            self.recorder.start(step, whole=whole)
        except CannotRecordError as error:
            self._obstacle = error.finding
            if not error.later:
                self._broken = True
                self._warn(error.finding)
            return
        self._started = True
        if whole:
            self._set(True)

    def _stop(self) -> None:
        if self.recorder is not None and self._started:
            self._started = False
            self.recorder.stop()

    def _set(self, on: bool) -> None:
        self.recording = on
        self.opened += on
        self._changed(on)


def _no_torch() -> str:
    """Why torch is not there in a process that makes steps."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        return f"{sys.executable} has no torch; name an interpreter that has it in the command, or install it"
    return "the process that makes the steps never imports torch"
