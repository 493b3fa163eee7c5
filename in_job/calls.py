"""What runs in the place of modules tells where steps end: compiled and jitted functions, graphs, batches."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from typing import TYPE_CHECKING, Callable

from . import dynamo

if TYPE_CHECKING:
    from ..contract.steps import StepSign
    from .hook_process import HookProcess
    from .step_follower import StepFollower
    from .torch_types import Torch

_GPUS = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""What a machine with a GPU has; asking torch for one would initialise the driver."""


class CallWatch:
    """Tells the step finder of outermost calls, on the thread that made the first one.

    Batches count on the main thread only: threads that fetch ahead work on none of them.

    Args:
        in_module: whether a root module runs now.
    """

    def __init__(self, process: HookProcess, steps: StepFollower, in_module: Callable[[], bool]) -> None:
        self.process = process
        self.steps = steps
        self._in_module = in_module
        self._thread: int | None = None
        self._inside = False

    def before(self, sign: StepSign, thing: object) -> bool:
        """Something is about to be called that ``StepFinder.called`` takes.

        Returns:
            Whether it runs in no other call; then ``after`` must be called when it has returned.
        """
        if not self._is_outermost():
            return False
        self._inside = True
        try:
            self.steps.finder.called(sign, thing, grad=self._builds_graph())
        except Exception as error:
            self.process.fail(error)
        return True

    def after(self) -> None:
        """The outermost call has returned or failed."""
        self._inside = False
        if self.steps.finder.ends_with_calls:
            self._note_end()

    def batch(self, batches: object) -> None:
        """A DataLoader of this process has delivered a batch."""
        if not self._is_loop() or _only_reads(self.process.torch):
            return
        try:
            self.steps.finder.batch(batches, grad=self._builds_graph())
        except Exception as error:
            self.process.fail(error)

    def exhausted(self, batches: object) -> None:
        """A DataLoader of this process has no more batches."""
        if self._is_loop() and self.steps.finder.exhausted(batches):
            self._note_end()

    def capture(self, *, on: bool) -> None:
        """The capture of a CUDA graph begins or has ended."""
        if self._is_outermost():
            self.steps.finder.capture(on=on)

    def after_fork(self) -> None:
        """A forked child: nothing was called in it yet."""
        self._thread = None
        self._inside = False

    def _is_loop(self) -> bool:
        """Whether the program's own loop, in no call, is what runs."""
        if self._inside or self._in_module() or self.process.ignored():
            return False
        return threading.get_ident() == threading.main_thread().ident

    def _is_outermost(self) -> bool:
        if self._inside or self._in_module() or dynamo.compiling() or self.process.ignored():
            return False
        here = threading.get_ident()
        if self._thread is None:
            self._thread = here
        return self._thread == here

    def _builds_graph(self) -> bool:
        torch = self.process.torch
        return torch is not None and bool(torch.is_grad_enabled())

    def _note_end(self) -> None:
        try:
            self.steps.note_end()
        except Exception as error:
            self.process.fail(error)


def same_thing(made: object, name: str, instead: object) -> object:
    """What is called when the program calls a compiled function: the function that it was made of.

    So ``jax.jit(f)(x)``, written in a loop, calls the same thing again and again.

    Args:
        made: what the compiler gave.
        name: of its attribute that holds the function.
        instead: for a function that cannot be referred to weakly.
    """
    found = getattr(made, name, instead)
    try:
        weakref.ref(found)
    except TypeError:
        return instead
    return found


def _only_reads(torch: Torch) -> bool:
    """Whether the batches cannot have been worked on: there is a GPU, and the process has not used it."""
    if torch.cuda.is_initialized() or "jax" in sys.modules or "cupy" in sys.modules:
        return False
    if getattr(torch.version, "cuda", None) is None and getattr(torch.version, "hip", None) is None:
        return False
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "0") in ("", "-1")
    return not hidden and any(os.path.exists(path) for path in _GPUS)
