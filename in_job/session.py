"""The hook of one Python process: joins step finding, window, ranges, root modules and ways out."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..contract.finding import Finding
from . import dynamo, exclusive, jax_calls, process_rank, recorded_ranks, recorders, torch_calls
from .api import hook
from .calls import CallWatch
from .config import HookConfig
from .exits import Exits
from .gpu_idle import wait_until_idle
from .hook_errors import report
from .hook_process import HookProcess
from .optimizers import watch_optimizers
from .ranges import Ranges
from .record import ProcessFiles
from .root_watch import RootWatch
from .step_follower import StepFollower
from .whole_run import WholeRun
from .window import WindowDriver

if TYPE_CHECKING:
    from types import ModuleType

    from .changes import Changes
    from .results import ResultWatch
    from .torch_types import Optimizer, Torch

FRAMEWORKS = ("torch", "jax", "cupy")
"""GPU frameworks: the run begins when the first of them has been imported."""


class Session:
    """The hook's parts in one process, and what passes between them."""

    def __init__(self, config: HookConfig) -> None:
        self.process = process = HookProcess(config)
        self.recorder = recorders.make(config, process.schedule, None, process.warn)
        self.ranges = Ranges(process)
        self.window = WindowDriver(
            config, process.schedule, self.recorder, self._window_changed, process.warn, self._drain
        )
        self.steps = StepFollower(process, self.window, self.ranges, self._step_ended, self._freed)
        self.roots: RootWatch | None = None
        self.changes: Changes | None = None
        self.results: ResultWatch | None = None
        self.calls = CallWatch(process, self.steps, self._in_module)
        self.run = WholeRun(process, self.window, self.ranges, self._freed)
        self.files = ProcessFiles(process, self.steps, self.ranges, self.run)
        self._finishing = False
        self.exits = Exits(self.finish, self._program_failed, self._in_the_middle, unwind=config.unwind)

    @classmethod
    def start(cls, path: str) -> Session:
        """Start the hook in this process.

        Args:
            path: of the hook's orders.

        Raises:
            OSError, ValueError: they cannot be read.
        """
        session = cls(recorded_ranks.of_process(HookConfig.load(path), process_rank.from_environ()))
        hook.on_step = session.explicit
        os.register_at_fork(after_in_child=session._after_fork)
        session.ranges.connect(session.recorder)
        if session.process.config.ranges.steps == "explicit":
            session.steps.finder.start()
        return session

    def imported(self, name: str, module: ModuleType) -> None:
        """One of the modules that ``bootstrap`` waits for is there.

        Args:
            name: of the module, as in ``bootstrap.WATCHED``.
        """
        if name == "jax":
            jax_calls.watch_jit(module, self.calls)
        elif name == "torch._dynamo.eval_frame":
            torch_calls.watch_compiled(module, self.calls)
            self._load_changes()
            if self.changes is not None:
                self.changes.compiler_imported()
        elif name == "torch" and hasattr(module, "nn") and hasattr(module, "__version__"):
            self.attach(module)
        if name in FRAMEWORKS:
            self.run.begin()

    def attach(self, torch: Torch) -> None:
        """torch is there: watch optimizers, root modules, what runs in their place, and its profilers."""
        process = self.process
        if process.torch is not None:
            return
        process.torch = self.steps.timer.torch = torch
        self._watch_results(torch)
        self.recorder = recorders.make(process.config, process.schedule, torch, process.warn)
        self.window.attach(self.recorder)
        self._load_changes()
        dynamo.watch_compile(torch)
        self.ranges.connect(self.recorder)
        exclusive.guard(
            torch,
            process.config.collector,
            process.warn,
            exclusive=process.config.exclusive,
            is_torch=self.recorder is not None and self.recorder.is_torch_profiler,
        )
        self.ranges.watch(torch)
        changes = self.changes
        first = None if changes is None else changes.root_called
        self.roots = RootWatch(process, self.steps, self.ranges, torch, first, self.results)
        self.roots.hook.search()
        if self.steps.finder.began:
            self.window.begin(self.steps.number)
        watch_optimizers(torch, self._optimizer_made, self.optimizer)
        torch_calls.watch_graphs(torch, self.calls)
        torch_calls.watch_loaders(torch, self.calls)
        if changes is not None:
            changes.attach(torch)

    def _watch_results(self, torch: Torch) -> None:
        """Remember what the program computes, where the job asks for it; only then is the code loaded."""
        wanted = self.process.config.results
        if wanted is not None:
            from .results import ResultWatch

            self.results = ResultWatch(self.process, torch, wanted)
            self.results.start()

    def explicit(self) -> None:
        """``profrun.step()``."""
        if self.process.ignored():
            return
        try:
            self.steps.finder.explicit()
        except Exception as error:
            self.process.fail(error)

    def optimizer(self, optimizer: Optimizer) -> None:
        """An optimizer's step has returned."""
        if self.process.ignored():
            return
        if self.results is not None:
            self.results.stepped(optimizer)
        try:
            self.steps.finder.optimizer(optimizer)
        except Exception as error:
            self.process.fail(error)

    def finish(self) -> None:
        """The process ends: stop the recording, write steps.json and this process's note. Never raises."""
        if self.process.over or os.getpid() != self.process.pid:
            return
        self.process.over = self._finishing = True
        try:
            self._finish()
        except Exception as error:
            report(error)
        self._finishing = False

    def _finish(self) -> None:
        hook.sink = None
        self.steps.close_last()
        if not self.steps.finder.count:
            self.run.end()
        if self.roots is not None:
            self.roots.hook.stop()
        if self.results is not None:
            self.results.stop()
        self._explain()
        self._tell_changes()
        try:
            self.window.finish()
        finally:
            self.ranges.close()
            self.steps.timer.wait()
            self.files.write_steps()
            self.files.write_note()
            if self.results is not None:
                self.files.write_results(*self.results.read())

    def _load_changes(self) -> None:
        """Load what makes changes, where a variant of the job has some."""
        if self.changes is None and self.process.config.changes is not None:
            from .changes import Changes

            self.changes = Changes(self.process)

    def _tell_changes(self) -> None:
        """Not in helpers of other processes, nor in forked children that made no step."""
        works = self.steps.finder.count > 0 or not self.process.forked
        if self.changes is not None and works and self.run.role() is None:
            self.changes.tell()

    def _explain(self) -> None:
        finder = self.steps.finder
        if finder.kept_lower is not None:
            what = (
                f"steps were found by {finder.how} and recorded before the first {finder.kept_lower} step "
                "was seen"
            )
            fix = "call profrun.step() once per iteration"
            self.process.warn(Finding("steps-found-late", "warning", what, fix=fix))
        if finder.late_capture is not None:
            what = f"{finder.late_capture} steps that were the warm-up of a CUDA graph are recorded"
            fix = "set schedule.skip_first to skip them, or call profrun.step() once per replay"
            self.process.warn(Finding("steps-found-late", "warning", what, fix=fix))
        for told in (self.window.shortfall(finder.count), self.steps.placer.explain(finder.count)):
            if told is not None:
                self.process.warn(told)

    def _step_ended(self, now_ns: int) -> None:
        if self.roots is not None and self.roots.hook.searching:
            self.roots.settle()
        if now_ns >= self.files.due_ns:
            self.files.flush()

    def _drain(self) -> None:
        wait_until_idle(self.process.torch)

    def _window_changed(self, on: bool) -> None:
        if on:
            self.files.put_off()
            if self.roots is None:
                self.ranges.open(())
            else:
                self.ranges.open(self.roots.hook.roots(), self.roots.hook.entered)
        else:
            self.ranges.close()

    def _in_module(self) -> bool:
        return self.roots is not None and self.roots.hook.inside

    def _optimizer_made(self) -> None:
        self.steps.finder.optimizer_made()

    def _program_failed(self, kind: type[BaseException], _error: BaseException) -> None:
        if any(parent.__name__ == "OutOfMemoryError" for parent in kind.__mro__):
            self.process.out_of_memory = True

    def _in_the_middle(self) -> bool:
        return self.steps.busy or self.run.busy or self._finishing

    def _freed(self) -> None:
        self.exits.resume_signal()

    def _after_fork(self) -> None:
        """A forked child starts from nothing; what is open belongs to the parent."""
        self.process.after_fork()
        self._finishing = False
        self.window.after_fork()
        self.steps.forget()
        self.run.after_fork()
        self.ranges.after_fork()
        self.calls.after_fork()
        if self.results is not None:
            self.results.after_fork()
        if self.roots is not None:
            self.roots.after_fork()
