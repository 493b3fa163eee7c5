"""The hook of one Python process: joins step finding, window, clock, ranges and ways out."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

from ..contract.finding import Finding
from . import api, dynamo, emit, exclusive, record, recorders
from .bootstrap import report
from .config import HookConfig
from .exits import Exits
from .finder import StepFinder
from .modules import ModuleRanges
from .root_module_hook import Doorbell
from .timing import StepClock
from .window import WindowDriver, idle_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from ..contract.recording import Emitter, Recorder

_FLUSH_NS = 2_000_000_000
_FLUSH_SHARE = 500  # a flush may take this fraction of the time between two of them
_SETTLED = 3  # steps after which no new root module is looked for


class Session:
    """What the hook knows and does in one process.

    Attributes:
        torch: the torch module once it is imported, else None.
        sink: where ranges go; None when nothing records ranges in this trial.
    """

    def __init__(self, config: HookConfig) -> None:
        self.config = config
        self.torch: Any = None
        self.pid = os.getpid()
        self.forked = False
        self.warnings: list[Finding] = []
        self.out_of_memory = False
        self.work: dict[str, object] = dict(config.values)
        self.step = 0
        self.clock = StepClock()
        self.finder = StepFinder(config.ranges.steps, self._begin, self._ended, self._restart)
        self.sink: emit.Sink | None = None
        self.bell: Doorbell | None = None
        self._roots = self._quiet = 0  # roots known, and rings since the last new one
        self.modules: ModuleRanges | None = None
        self.recorder: Recorder | None = recorders.make(config, None, self.warn)
        self.window = WindowDriver(config, self.recorder, self._window_changed, self.warn)
        self._busy = False
        self._finished = self._done = False
        self._last_forward: Any = None
        self._flush_at = time.perf_counter_ns() + _FLUSH_NS
        self._idle_until = idle_until(config, 0)
        self.exits = Exits(self.finish, self._failed, self._in_the_middle, unwind=config.unwind)

    @classmethod
    def start(cls, path: str) -> Session:
        """Wake up in this process.

        Raises:
            OSError, ValueError: the wrapper's orders cannot be read.
        """
        session = cls(HookConfig.load(path))
        api._on_step = session.explicit
        os.register_at_fork(after_in_child=session._after_fork)
        session._make_sink()
        if session.config.ranges.steps == "explicit":
            session.finder.start()
        return session

    def attach(self, torch: ModuleType) -> None:
        """torch is there: watch optimizers, root modules and its profilers."""
        if self.torch is not None:
            return
        self.torch = self.clock.torch = torch
        self.recorder = recorders.make(self.config, torch, self.warn)
        self.window.attach(self.recorder)
        emit.watch_compile(torch)
        dynamo.skip_own_code()
        self._make_sink()
        exclusive.guard(
            torch,
            self.config.collector,
            self.warn,
            exclusive=self.config.exclusive,
            is_torch=self.recorder is not None and self.recorder.is_torch_profiler,
        )
        if self.sink is not None and not self.sink.emitter.hears_record_function:
            exclusive.reroute_record_function(torch, self.sink)
        if self.sink is not None:
            self.modules = ModuleRanges(torch, self.config.ranges.modules, self.sink)
        self.bell = Doorbell(torch, self._before_root, self._after_root)
        if self.config.ranges.steps == "off":
            self.window.record_everything()
        self.bell.listen()
        if self.finder.began:
            self.window.begin(self.step)
        _watch_optimizers(torch, self.finder.optimizer_made, self.optimizer)

    def warn(self, finding: Finding) -> None:
        """Keep a finding for exit.json, once."""
        if finding not in self.warnings:
            self.warnings.append(finding)

    def explicit(self) -> None:
        """``profrun.step()``."""
        if not self._ignored():
            self._guarded(self.finder.explicit)

    def optimizer(self, optimizer: Any) -> None:
        """An optimizer's step has returned."""
        if not self._ignored():
            self._guarded(self.finder.optimizer, optimizer)

    def _guarded(self, function: Callable[..., None], *args: Any) -> None:
        """What goes wrong in the hook is the hook's: the program goes on without it."""
        try:
            function(*args)
        except Exception as error:
            report(error)
            what = f"profrun's hook failed and stopped following steps: {error!r}"
            self.warn(Finding("hook-failed", "critical", what))
            self._finished = self._done = True

    def finish(self) -> None:
        """The process ends: stop the recording, write steps.json and this process's note. Never raises."""
        if self._finished or os.getpid() != self.pid:
            return
        self._finished = True
        try:
            self._finish()
        except Exception as error:
            report(error)
        self._done = True

    def _finish(self) -> None:
        api._sink = None
        if self._last_forward is not None and self.finder.close_last():
            self.clock.end(self.step, self._last_forward)
        self.clock.drop_open()
        if self.bell is not None:
            self.bell.stop()
        self._explain()
        try:
            self.window.finish()
        finally:
            if self.sink is not None:
                self.sink.close()
            self.clock.wait()
            record.write_steps(self)
            record.write_note(self)

    def _explain(self) -> None:
        """A window that never opened or never closed: how many steps there were and what to set."""
        found, schedule = self.finder.count, self.config.schedule
        if self.finder.kept_lower is not None:
            what = (
                f"steps were found by {self.finder.how} and recorded before the first "
                f"{self.finder.kept_lower} step was seen"
            )
            self.warn(
                Finding("steps-found-late", "warning", what, fix="call profrun.step() once per iteration")
            )
        if not self.config.windowed or not found or self.window.complete:
            return
        if self.torch is None:
            self.warn(Finding("window-not-opened", "warning", "the window was never opened", _no_torch()))
            return
        need = schedule.steps_needed
        if found >= need:  # the last step's end was the program's own
            return
        done = "nothing was recorded" if not self.window.opened else "the recording stops early"
        what = (
            f"the schedule is longer than the program: it made {found} step{'s' * (found != 1)}, and "
            f"skip_first {schedule.skip_first} + wait {schedule.wait} + warmup {schedule.warmup} + active "
            f"{schedule.active} need {need}: {done}"
        )
        fix = f"run at least {need} steps or set a smaller schedule"
        self.warn(Finding("schedule-too-long", "warning", what, fix=fix))

    def _make_sink(self) -> None:
        """Ranges have somewhere to go as soon as the emitter's library is there."""
        if self.sink is not None or self.config.emitter is None:
            return
        emitter = self._emitter()
        if emitter is None:
            return
        self.sink = emit.Sink(emitter)
        api._sink = self.sink
        if not self.config.windowed and self.config.hook != "in_process":
            self.sink.open()  # the whole run is recorded

    def _emitter(self) -> Emitter | None:
        if self.config.emitter == "in_process":
            return None if self.recorder is None else self.recorder.emitter
        emitter, warnings = emit.choose(self.config.emitter, self.torch, self.config.tool_version)
        if emitter is not None or self.torch is not None:
            for finding in warnings:
                self.warn(finding)
        return emitter

    @property
    def _names_steps(self) -> bool:
        return self.recorder is not None and self.recorder.names_steps

    def _begin(self) -> None:
        """The first step begins."""
        self._busy = True
        try:
            self.window.begin(0)
            self._open_step(self.clock.mark())
        finally:
            self._free()

    def _ended(self) -> None:
        """A step has ended and the next one begins. Most are idle: nothing to do but to time them."""
        if self._capturing():
            self.finder.count -= 1
            return
        moment = self.clock.mark()
        self.clock.end(self.step, moment)
        following = self.step + 1
        if following < self._idle_until and (self.sink is None or not self.sink.emitting):
            self.step = following
            self.clock.start(moment)
        else:
            self._edge(following)
        if self.bell is not None and self.bell.wanted:
            self._settle()
        if moment[0] >= self._flush_at:
            self._flush()

    def _edge(self, following: int) -> None:
        """Between two steps of which one at least is recorded or warmed up."""
        self._busy = True
        try:
            if self.sink is not None and self._names_steps:
                self.sink.cut()
            elif self.sink is not None:
                self.sink.end_step()
            self.window.end(self.step)
            self.step = following
            self.window.begin(following)
            self._idle_until = idle_until(self.config, following)
            self._open_step(self.clock.mark())
        finally:
            self._free()

    def _open_step(self, moment: tuple[int, Any]) -> None:
        if self.sink is not None and not self._names_steps:
            self.sink.begin_step(self.step)
        self.clock.start(moment)

    def _restart(self) -> bool:
        if not self.window.reset():
            return False
        if self.sink is not None and not self._names_steps:
            self.sink.end_step()
            self.sink.begin_step(0)
        self.step = 0
        self._idle_until = idle_until(self.config, 0)
        self.clock.reset()
        return True

    def _in_the_middle(self) -> bool:
        return self._busy or (self._finished and not self._done)

    def _free(self) -> None:
        self._busy = False
        self.exits.resume_signal()

    def _capturing(self) -> bool:
        """Inside a CUDA graph capture nothing happens now: what is captured is no step."""
        torch = self.torch
        if torch is None or not torch.cuda.is_initialized():
            return False
        return bool(torch.cuda.is_current_stream_capturing())

    def _settle(self) -> None:
        """Stop looking for root modules when they can tell nothing new."""
        bell = self.bell
        assert bell is not None
        if not self.finder.undecided and (bell.roots or self.step >= _SETTLED):
            bell.settle(keep=False)
        elif self.finder.how == "module" and self.step >= _SETTLED:
            bell.settle(keep=True)

    def _before_root(self, module: Any, args: tuple[Any, ...]) -> None:
        if self._ignored():
            return
        self._guarded(self._root_begins, module, args)

    def _root_begins(self, module: Any, args: tuple[Any, ...]) -> None:
        self._shapes(args)
        self.finder.root(module, grad=self.torch.is_grad_enabled() and module.training)
        if self.modules is not None and self.sink is not None and self.sink.emitting:
            self.modules.install(module)
        if self.config.ranges.steps in ("off", "explicit") and self.bell is not None:
            self._settle_quiet(self.bell)

    def _settle_quiet(self, bell: Doorbell) -> None:
        """Where forwards are no steps, look for roots only until no new one has come for a while.

        Each ring changes nn.Module and so empties Python's attribute caches: 0.25 ms a step, measured.
        """
        self._quiet = self._quiet + 1 if len(bell.roots) == self._roots else 0
        self._roots = len(bell.roots)
        if self._quiet >= _SETTLED or self._roots >= _SETTLED:
            bell.settle(keep=False)

    def _after_root(self, _module: Any) -> None:
        if self.finder.saw_forward and not self._ignored() and not self._capturing():
            self._guarded(self._root_ended)

    def _root_ended(self) -> None:
        self._last_forward = self.clock.mark()

    def _shapes(self, args: tuple[Any, ...]) -> None:
        """Shapes of the first root's inputs: what is known of the work a step."""
        if "shapes" not in self.work:
            tensors = [value for value in args if isinstance(value, self.torch.Tensor)]
            self.work["shapes"] = "; ".join(f"{list(value.shape)} {value.dtype}" for value in tensors)

    def _window_changed(self, on: bool) -> None:
        if self.sink is None:
            return
        if not on:
            self.sink.close()
            if self.modules is not None:
                self.modules.remove()
            return
        self.sink.open()
        if self.modules is not None and self.bell is not None:
            for reference in self.bell.roots:
                root = reference()
                if root is not None:
                    self.modules.install(root)

    def _flush(self) -> None:
        """Keep the steps so far in case the process is killed, at most 1/500 of the time."""
        began = time.perf_counter_ns()
        self.clock.read()
        try:
            record.write_steps(self)
        except OSError as error:
            what = f"step times could not be kept during the run: {error}"
            self.warn(Finding("step-times-not-kept", "warning", what))
        done = time.perf_counter_ns()
        self._flush_at = done + max(_FLUSH_NS, (done - began) * _FLUSH_SHARE)

    def _failed(self, kind: type[BaseException], _error: BaseException) -> None:
        if any(parent.__name__ == "OutOfMemoryError" for parent in kind.__mro__):
            self.out_of_memory = True

    def _ignored(self) -> bool:
        """DataLoader workers and finished sessions make no steps."""
        if self._finished:
            return True
        if not self.forked or self.torch is None:
            return False
        data = getattr(self.torch.utils, "data", None)
        return data is not None and data.get_worker_info() is not None

    def _after_fork(self) -> None:
        """A forked child starts from nothing; what is open belongs to the parent."""
        self.pid = os.getpid()
        self.forked = True
        self._finished = self._done = self._busy = False
        self.warnings = []
        self.step = 0
        self._idle_until = idle_until(self.config, 0)
        self._last_forward = None
        self.clock = StepClock(self.torch)
        self.finder = StepFinder(self.config.ranges.steps, self._begin, self._ended, self._restart)
        if not self.window.abandon():
            self.window = WindowDriver(self.config, self.recorder, self._window_changed, self.warn)
        if self.sink is not None:
            self.sink.emitted = 0
        if self.bell is not None:
            self.bell.roots.clear()
            self.bell._thread = None


def _no_torch() -> str:
    """Why torch is not there in a process that makes steps."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        return f"{sys.executable} has no torch; name an interpreter that has it in the command, or install it"
    return "the process that makes the steps never imports torch"


def _watch_optimizers(torch: Any, made: Any, stepped: Any) -> None:
    """Tell when optimizers are made and when their step has returned.

    torch wraps the step of each optimizer class once, when the first instance is made; ours goes round that
    wrapper, so that the step's end lies outside of torch's own ``Optimizer.step#...`` range.
    """
    owner = torch.optim.Optimizer
    inner = getattr(owner, "profile_hook_step", None)
    if inner is None:  # torch 1
        return

    def profile_hook_step(function: Any) -> Any:
        import functools

        hooked = inner(function)

        @functools.wraps(hooked)
        def step(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = hooked(self, *args, **kwargs)
            if not emit._compiling():
                stepped(self)
            return result

        return step

    owner.profile_hook_step = staticmethod(profile_hook_step)
    patch = owner._patch_step_function

    def _patch_step_function(self: Any) -> None:
        made()
        patch(self)

    owner._patch_step_function = _patch_step_function
