"""Opens and closes the recorded part of a run at the edges of steps: one driver a kind of profiler."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Callable

from . import emit
from .torch_profile import TorchProfile

if TYPE_CHECKING:
    from ..contract.schedule import Schedule
    from .config import HookConfig

OUTSIDE, WAIT, WARMUP, ACTIVE = "outside", "wait", "warmup", "active"


def label(window: Schedule, step: int) -> str:
    """What a step is to the schedule: wait, warmup, active, or outside of it."""
    cycle = window.wait + window.warmup + window.active
    place = step - window.skip_first
    if place < 0 or cycle <= 0 or (window.repeat and place >= cycle * window.repeat):
        return OUTSIDE
    place %= cycle
    if place < window.wait:
        return WAIT
    return WARMUP if place < window.wait + window.warmup else ACTIVE


def cycle_end(window: Schedule, step: int) -> bool:
    """Whether a step is the last of its cycle."""
    return (step - window.skip_first + 1) % (window.wait + window.warmup + window.active) == 0


def idle_until(config: HookConfig, step: int) -> int:
    """The first step from ``step`` on at whose beginning or end a window driver has something to do."""
    if config.hook not in ("torch", "cuda", "roctx") or config.steps == "off":
        return sys.maxsize
    window = config.window
    cycle = window.wait + window.warmup + window.active
    while label(window, step) in (WAIT, OUTSIDE):
        place = step - window.skip_first
        if place < 0:
            step = window.skip_first
        elif window.repeat and place >= cycle * window.repeat:
            return sys.maxsize
        else:
            step += window.wait - place % cycle
    return step


def steps_needed(window: Schedule) -> int:
    """Steps after which the first cycle is recorded whole."""
    return window.skip_first + window.wait + window.warmup + window.active


class EdgeDriver:
    """cudaProfilerStart/Stop or roctxProfilerResume/Pause, with the GPU idle at both edges."""

    def __init__(self, torch: Any, start: Callable[[], Any], stop: Callable[[], Any]) -> None:
        self.torch = torch
        self._start = start
        self._stop = stop

    def open(self) -> None:
        """Begin to record."""
        self._wait()
        self._start()

    def close(self) -> None:
        """Record what was enqueued, then stop."""
        self._wait()
        self._stop()

    def _wait(self) -> None:
        if self.torch is not None and self.torch.cuda.is_initialized():
            self.torch.cuda.synchronize()


def edge_driver(kind: str, torch: Any) -> tuple[EdgeDriver | None, str | None]:
    """The driver for ``Wrapped.hook`` 'cuda' or 'roctx', or why there is none."""
    if kind == "cuda":
        if torch is not None and torch.cuda.is_available():
            cudart = torch.cuda.cudart()
            return EdgeDriver(torch, cudart.cudaProfilerStart, cudart.cudaProfilerStop), None
        return None, "the window cannot be opened: this process has no torch with a CUDA GPU"
    library = emit.load_roctx()
    if library is None:
        return None, "the window cannot be opened: no ROCTX library in the image (rocprofiler-sdk has one)"
    try:
        resume, pause = library.roctxProfilerResume, library.roctxProfilerPause
    except AttributeError:
        return None, "the window cannot be opened: this ROCTX is too old for roctxProfilerResume"
    return EdgeDriver(torch, lambda: resume(0), lambda: pause(0)), None


class WindowDriver:
    """Follows the schedule from step to step.

    Args:
        config: the hook's orders.
        torch: the torch module or None.
        changed: called with True when recording has begun and with False just before it ends.
        warn: takes sentences for exit.json.
    """

    def __init__(
        self,
        config: HookConfig,
        torch: Any,
        changed: Callable[[bool], None],
        warn: Callable[[str], None],
    ) -> None:
        self.config = config
        self.torch = torch
        self.opened = 0
        self.complete = 0
        self.recording = False
        self.profile: TorchProfile | None = None
        self._changed = changed
        self._warn = warn
        self._edges: EdgeDriver | None = None
        self._broken = False

    @property
    def windowed(self) -> bool:
        """Whether there is a window at all, or nothing or everything is recorded."""
        return self.config.hook in ("torch", "cuda", "roctx") and self.config.steps != "off"

    def record_everything(self) -> None:
        """ranges.steps is off: the torch profiler runs from here to the end."""
        if self.config.hook == "torch" and self.torch is not None and self.profile is None:
            self.profile = TorchProfile(self.config, self.torch, self._warn)
            self.profile.start(0, whole=True)
            self._set(True)

    def begin(self, step: int) -> None:
        """A step begins: the first, or the next one after ``end``."""
        if not self.windowed or self._broken or (self.torch is None and self.config.hook != "roctx"):
            return
        state = label(self.config.window, step)
        if self.config.hook == "torch":
            if state in (WARMUP, ACTIVE) and self.profile is None:
                self.profile = TorchProfile(self.config, self.torch, self._warn)
                self.profile.start(step)
        elif state == ACTIVE and not self.recording:
            self._open_edges()
        if state == ACTIVE and not self.recording and not self._broken:
            self._set(True)

    def end(self, step: int) -> None:
        """A step has ended; whatever the profiler writes now is between steps."""
        if self._broken:
            return
        state = label(self.config.window, step)
        last = state == ACTIVE and cycle_end(self.config.window, step)
        if last and self.recording and self.windowed:
            self._set(False)
            self.complete += 1
            self._stop()
        elif self.profile is not None and self.windowed:
            self.profile.step()

    def reset(self) -> bool:
        """Back to the first step. False when something was recorded already: too late."""
        if self.opened:
            return False
        if self.profile is not None:
            self.profile.discard()
            self.profile = None
        return True

    def finish(self) -> None:
        """The program ends: keep what there is."""
        if self.recording:
            self._set(False)
        self._stop()

    def abandon(self) -> bool:
        """A forked child: what is recorded belongs to the parent. False: nothing is, it may record."""
        active = self.profile is not None or self._edges is not None
        self.profile = self._edges = None
        self.recording = False
        self._broken = active
        return active

    def _stop(self) -> None:
        if self.profile is not None:
            profile, self.profile = self.profile, None
            profile.stop()
        elif self._edges is not None:
            edges, self._edges = self._edges, None
            edges.close()

    def _open_edges(self) -> None:
        driver, why = edge_driver(self.config.hook, self.torch)
        if driver is None:
            self._broken = True
            self._warn(str(why))
            return
        driver.open()
        self._edges = driver

    def _set(self, on: bool) -> None:
        self.recording = on
        self.opened += on
        self._changed(on)
