"""Ends the recording by a profiler round the program when a limit is reached: ``RecordingWatch``.

The program goes on. What is watched is seen from outside, so this works for programs in any language. The
seconds count from the moment when a process of the program opens the GPU's driver. The size is that of the
files in the folder of the recording.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from ..contract.finding import Finding
from ..contract.wrapping import ATTEMPTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from ..contract.schedule import Limit
    from ..contract.wrapping import Limits
    from .proctree import Process

LOOK_S = 0.1
"""Seconds between two looks."""

AGAIN_S = 1.0
"""Seconds until a command that could not end the recording is tried again."""

_DRIVERS = ("/dev/nvidia-uvm", "/dev/kfd", "/dev/dxg")
"""What a process opens when it initialises CUDA or ROCm (dxg: on WSL), and not for a mere query by NVML."""


class RecordingWatch:
    """Watches one recording.

    Args:
        limits: when the recording is ended, and how.
        folder: where the profiler writes.
        env: the environment of the wrapped command.
        cut: what is to be said when a limit has ended the recording after that many ns (``Schedule.cut``).
        gpu: whether there is a GPU: then the seconds count from its first use.

    Attributes:
        finding: what is to be said; None while no limit was reached.
    """

    def __init__(
        self,
        limits: Limits,
        folder: Path,
        env: Mapping[str, str],
        cut: Callable[[Limit, int], Finding],
        *,
        gpu: bool,
    ) -> None:
        self.finding: Finding | None = None
        self._limits = limits
        self._folder = folder
        self._env = env
        self._cut = cut
        self._gpu = gpu
        self._due = 0.0  # time.monotonic of the next look
        self._began: float | None = None  # the moment from which the seconds count
        self._reached: tuple[Limit, float] = ("max_seconds", 0.0)  # and the seconds recorded until then
        self._stop: subprocess.Popen[bytes] | None = None
        self._tries = 0

    def look(self, program: Callable[[], Iterable[Process]]) -> None:
        """Called again and again while the program runs.

        Args:
            program: gives the processes of the program; none as long as it has not started.
        """
        now = time.monotonic()
        if self._stop is not None or self.finding is not None or now < self._due:
            return
        self._due = now + LOOK_S
        if self._began is None:
            running = list(program())
            if not running:
                return
            if not self._gpu or any(_uses_gpu(process.pid) for process in running):
                self._began = now
        limits = self._limits
        recorded = 0.0 if self._began is None else now - self._began
        if limits.seconds is not None and self._began is not None and recorded >= limits.seconds:
            self._end("max_seconds", recorded)
        elif size_of(self._folder) >= limits.size:
            self._end("max_size", recorded)

    def reaped(self, ended: Mapping[int, int], *, running: bool) -> None:
        """Told of child processes that have ended.

        Args:
            ended: pid -> wait status.
            running: whether the program runs: the recording of one that has just ended cannot be stopped.
        """
        if self._stop is None or self._stop.pid not in ended:
            return
        status = ended[self._stop.pid]
        self._stop.returncode = status  # it was waited for here, not by subprocess
        self._stop = None
        if status == 0:
            limit, recorded = self._reached
            self.finding = self._cut(limit, round(recorded * 1e9))
        elif running and self._tries < ATTEMPTS:  # nsys refuses for a moment while it starts the program
            self._due = time.monotonic() + AGAIN_S
        elif running:
            self.finding = self._failed(os.waitstatus_to_exitcode(status))

    @property
    def busy(self) -> bool:
        """Whether the recording is being ended: the profiler may be writing its report."""
        return self._stop is not None

    def _end(self, limit: Limit, recorded: float) -> None:
        self._reached = (limit, recorded)
        self._tries += 1
        try:
            self._stop = subprocess.Popen(
                self._limits.stop,
                env=dict(self._env),
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=_unblock_signals,
            )
        except OSError as error:
            self.finding = self._failed(error.strerror)

    def _failed(self, how: object) -> Finding:
        what = f"the recording could not be ended when it had reached schedule.{self._reached[0]}"
        words = f"exit code {how}" if isinstance(how, int) else str(how)
        return Finding("recording-not-cut", "warning", what, f"{' '.join(self._limits.stop)}: {words}")


def _unblock_signals() -> None:
    """The wrapper blocks signals, and its children must not inherit that."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _uses_gpu(pid: int) -> bool:
    """Whether a process has the driver of a GPU open; False where that cannot be seen."""
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    return any(_target(f"{folder}/{name}") in _DRIVERS for name in names)


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder; what vanishes meanwhile does not count."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size
            except OSError:
                continue
    return total
