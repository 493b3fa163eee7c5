"""The run of a process as one step: for programs in which no step is seen, and where none is looked for."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Callable

from .gpu_idle import wait_until_idle
from .limit_watch import LimitWatch

if TYPE_CHECKING:
    from ..contract.schedule import Limit
    from .hook_process import HookProcess
    from .ranges import Ranges
    from .window import WindowDriver

_HELPERS = {
    "torch.distributed.run": "launcher",
    "torch.distributed.launch": "launcher",
    "torchrun": "launcher",
    "accelerate": "launcher",
    "accelerate.commands.launch": "launcher",
    "deepspeed": "launcher",
    "torch._inductor.compile_worker.__main__": "compile worker",
}
"""What a process was started as -> its role, where it only helps those that do the program's work."""


class WholeRun:
    """Times the run of this process, and drives its recording where it is recorded as a whole.

    The run begins when the first GPU framework has been imported. It ends with the process, when the GPUs
    are idle. What the profiler does at its start and at a limit is no part of its duration. The start is
    kept on its own, because it does a part of the program's set-up (it initialises CUDA, for example).

    Args:
        freed: called when it is no longer busy: a signal may come in again.

    Attributes:
        began_ns: ``time.perf_counter_ns`` of its begin; None where no framework was imported, and in a forked
            child, because its work is part of its parent's run.
        ended_ns: likewise of its end, None before.
        start_ns: how long the profiler took to start in this process.
        used_gpu: whether the process uses a GPU; known at the end.
        busy: whether a recording is being ended, where no signal may come in.
    """

    def __init__(
        self, process: HookProcess, window: WindowDriver, ranges: Ranges, freed: Callable[[], None]
    ) -> None:
        self.process = process
        self.window = window
        self.ranges = ranges
        self.began_ns: int | None = None
        self.ended_ns: int | None = None
        self.start_ns = 0
        self.used_gpu = False
        self.busy = False
        self._freed = freed
        self._recorded_from = 0
        self._away_ns = 0
        self._watch: LimitWatch | None = None

    @property
    def dur_ns(self) -> int | None:
        """How long the run took; None before its end, and where it never began."""
        if self.began_ns is None or self.ended_ns is None:
            return None
        return self.ended_ns - self.began_ns - self._away_ns

    def begin(self) -> None:
        """A GPU framework was imported. The first one begins the run; torch's profilers begin with torch."""
        if self.process.forked:
            return
        before = time.perf_counter_ns()
        if self.process.config.ranges.whole:
            self._record()
        now = time.perf_counter_ns()
        if self.window.recording or self.ranges.sink is not None:
            self.start_ns += now - before
        if self.began_ns is None:
            self.began_ns = now
        else:
            self._away_ns += now - before

    def end(self) -> None:
        """The process ends, and no step was seen in it."""
        if self._watch is not None:
            self._watch.stop()
        if self.began_ns is None:
            return
        self.used_gpu = wait_until_idle(self.process.torch)
        self.ended_ns = time.perf_counter_ns()
        if self.process.config.ranges.whole:
            self.ranges.end_step()
            self._keep_nothing_of_helpers()

    def role(self) -> str | None:
        """What this process does for those that do the program's work; None for one of these."""
        data = sys.modules.get("torch.utils.data")
        if data is not None and data.get_worker_info() is not None:
            return "dataloader worker"
        module = getattr(sys.modules.get("__main__"), "__spec__", None)
        script = os.path.basename(sys.argv[0]) if sys.argv else ""
        return _HELPERS.get(script if module is None else module.name)

    def after_fork(self) -> None:
        """A forked child has no run of its own."""
        self.began_ns = self._watch = None

    def cut(self, limit: Limit) -> bool:
        """A limit is reached: end the recording; the program goes on.

        Returns:
            Whether it has ended: not while a CUDA graph is being captured.
        """
        process = self.process
        if process.over:  # the process ends, and ``end`` with it; or the hook has failed
            return True
        if process.capturing():
            return False
        began = time.perf_counter_ns()
        self.busy = True
        try:
            wait_until_idle(process.torch)
            self.ranges.end_step()
            if not self._keep_nothing_of_helpers():
                process.warn(process.config.schedule.cut(limit, began - self._recorded_from))
                self.window.finish()
        except Exception as error:
            process.fail(error)
        self.busy = False
        self._away_ns += time.perf_counter_ns() - began
        self._freed()
        return True

    def _keep_nothing_of_helpers(self) -> bool:
        """Whether this process is a helper of others; then its recording is dropped."""
        if self.role() is None:
            return False
        self.window.discard()
        return True

    def _record(self) -> None:
        """Record from here on, as far as something records inside this process."""
        if self.window.recording or self.window.opened:
            return
        self.window.record_everything()
        if self.began_ns is None:
            self.ranges.begin_run()
        recorder = self.window.recorder
        if self.window.recording and recorder is not None:
            self._recorded_from = time.perf_counter_ns()
            self._watch = LimitWatch(self.process.config.schedule, recorder.memory_factor, self.cut)
            self._watch.start()
