"""What of this process's ranges is emitted: ``Ranges`` joins the sink, the steps' ranges and the modules'."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..contract.profilers import profiler
from ..contract.step_names import OWN_STEP
from ..contract.steps import RUN_RANGE
from . import emitters, exclusive
from .api import hook
from .captures import Captures, MappingRecorder
from .lines import LineRanges
from .modules import ModuleRanges
from .own_code import OwnCode
from .sink import Sink

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The folder of profrun in the job."""

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..contract.recording import Emitter, Recorder
    from .hook_process import HookProcess
    from .modules import EnteredCall
    from .torch_types import Module, Torch


class Ranges:
    """Emits ranges while the window is open.

    Attributes:
        sink: where ranges go; None when nothing records ranges in this trial, or while the library that
            takes them is not imported yet.
    """

    def __init__(self, process: HookProcess) -> None:
        self.process = process
        self.sink: Sink | None = None
        self._modules: ModuleRanges | None = None
        self._lines: LineRanges | None = None
        self._steps_too = True

    @property
    def emitted(self) -> int:
        """Ranges that were emitted so far."""
        return 0 if self.sink is None else self.sink.emitted

    @property
    def emitter(self) -> str | None:
        """The emitter's name."""
        return None if self.sink is None else self.sink.emitter.name

    def connect(self, recorder: Recorder | None) -> None:
        """Ranges go somewhere as soon as the emitter's library is there: called at start and with torch."""
        if self.sink is not None:
            return
        emitter = self._choose(recorder)
        if emitter is None:
            return
        self.sink = hook.sink = Sink(emitter)
        self._steps_too = recorder is None or not recorder.names_steps
        config = self.process.config
        if profiler(config.profiler).maps:
            packages = config.options.get("packages")
            own = OwnCode(packages if isinstance(packages, (list, tuple)) else (), _OURS)
            self._lines = LineRanges(self.sink, own)
            if self.process.torch is not None and isinstance(recorder, MappingRecorder):
                recorder.follow(self._lines.files)
                Captures(self.sink, self._lines, recorder, self.process.fail).watch(self.process.torch)
        if not config.windowed and config.hook != "in_process":
            self.sink.open()  # the whole run is recorded

    def watch(self, torch: Torch) -> None:
        """torch is there: record_function and modules give ranges too."""
        if self.sink is None:
            return
        if not self.sink.emitter.hears_record_function:
            exclusive.reroute_record_function(torch, self.sink)
        wanted = self.process.config.ranges.modules
        depth = profiler(self.process.config.profiler).module_depth if wanted is None else wanted
        self._modules = ModuleRanges(torch, depth, self.sink, backward=wanted is not None)

    def begin_step(self, number: int) -> None:
        """A step begins."""
        if self.sink is None:
            return
        if self._steps_too:
            self.sink.begin_step(f"{OWN_STEP}{number}")
        if self._lines is not None and self._lines.is_open:
            self.sink.resume()  # a library may launch kernels before the program's next line

    def begin_run(self) -> None:
        """The run begins and is recorded as a whole: put a range round it, unless the recorder does."""
        if self.sink is not None and self._steps_too:
            self.sink.begin_step(RUN_RANGE)

    def end_step(self) -> None:
        """The open step, or the run, ends: ranges that are open end with it."""
        if self.sink is None:
            return
        if self._steps_too:
            self.sink.end_step()
        else:
            self.sink.cut()

    def open(self, roots: Iterable[Module], entered: EnteredCall | None = None) -> None:
        """Recording has begun.

        Args:
            roots: the root modules that are known now.
            entered: the call of a root in whose pre-hooks this happens, if it does.
        """
        if self.sink is None:
            return
        self.sink.open()
        for root in roots:
            self.root_called(root, entered)
        if self._lines is not None:
            self._lines.open()

    def root_called(self, root: Module, entered: EnteredCall | None = None) -> None:
        """A root module is called, or recording begins: put ranges round its modules while it is recorded."""
        if self._modules is not None and self.sink is not None and self.sink.emitting:
            self._modules.install(root, entered)

    def close(self) -> None:
        """Recording ends."""
        if self.sink is None:
            return
        if self._lines is not None:
            self._lines.close()
        self.sink.close()
        if self._modules is not None:
            self._modules.remove()

    def after_fork(self) -> None:
        """The child counts its own."""
        if self.sink is not None:
            self.sink.emitted = 0

    def _choose(self, recorder: Recorder | None) -> Emitter | None:
        process = self.process
        if process.config.emitter == "in_process":
            return None if recorder is None else recorder.emitter
        emitter, warnings = emitters.choose(process.config, process.torch)
        if emitter is not None or process.torch is not None:
            for finding in warnings:
                process.warn(finding)
        return emitter
