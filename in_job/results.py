"""What the program computes in its first steps: ``ResultWatch`` remembers it, for results.json.

Values are remembered as tensors on their own device, and become numbers when the process ends: the program
never waits for its GPU because of them. Which values (``contract.results.ResultKind``):

* losses: what ``backward`` is called on, if that is one number. ``Tensor.backward`` calls
  ``torch.autograd.backward``, so one function is replaced, and it gets its place back when enough losses are
  known. Every call counts, in order: of gradient accumulation, and of a GAN with two losses. Calls that run
  inside of another one (activation checkpointing) do not count. With a ``GradScaler`` it is the scaled loss,
  because backward sees no other.
* parameters: after each step of an optimizer the sum of the absolute values of its parameters, where no loss
  was seen before the first of these steps: the program computes its gradients itself.
* outputs: of each call of a root module the mean of the absolute values of what it returns, as long as
  neither of the above was seen: inference.

Values in the capture of a CUDA graph are not remembered: they would become a part of the graph.
"""

from __future__ import annotations

import functools
import math
import random
import sys
import threading
from typing import TYPE_CHECKING, Any, Callable

from . import dynamo
from .gpu_idle import wait_until_idle
from .hook_errors import report
from .tensor_sums import SizeSum, plain, size_sum, tensors_in

if TYPE_CHECKING:
    from ..contract.results import ResultKind, Results
    from .hook_process import HookProcess
    from .torch_types import Optimizer, Tensor, Torch, Values


class ResultWatch:
    """Remembers the first values that this process computes. An error in it ends it, and nothing else.

    Args:
        wanted: how many values, and the seed of random numbers.
    """

    def __init__(self, process: HookProcess, torch: Torch, wanted: Results) -> None:
        self.process = process
        self.torch = torch
        self.wanted = wanted
        self._losses: list[Tensor] = []
        self._parameters: list[SizeSum] = []
        self._outputs: list[SizeSum] = []
        self._calls = 0  # of root modules
        self._over = False
        self._thread: int | None = None  # of the first backward
        self._in_backward = False
        self._restore: Callable[[], None] = _nothing

    def start(self) -> None:
        """Set the seed, and watch ``backward`` from now on. Never raises."""
        try:
            if self.wanted.seed is not None:
                set_seed(self.torch, self.wanted.seed)
            self._restore = self._replace_backward()
        except Exception as error:
            self._fail(error)

    def stop(self) -> None:
        """Give ``torch.autograd.backward`` its place back, and remember nothing more."""
        self._over = True
        self._restore()
        self._restore = _nothing

    @property
    def wants_outputs(self) -> bool:
        """Whether what root modules return is still of use."""
        seen = self._losses or self._parameters
        return not (self._over or seen or self._calls >= self.wanted.values)

    def stepped(self, optimizer: Optimizer) -> None:
        """An optimizer's step has returned. Never raises."""
        if self._losses or len(self._parameters) >= self.wanted.values or self._is_ignored():
            return
        try:
            parameters = (value for group in optimizer.param_groups for value in group["params"])
            self._parameters += size_sum(self.torch, parameters)
        except Exception as error:
            self._fail(error)

    def returned(self, output: Values) -> None:
        """A root module has returned. Never raises."""
        if not self.wants_outputs or self._is_ignored():
            return
        self._calls += 1
        try:
            self._outputs += size_sum(self.torch, tensors_in(self.torch, output))
        except Exception as error:
            self._fail(error)

    def read(self) -> tuple[ResultKind, tuple[float | None, ...], float | None]:
        """What was computed: of the best kind that was seen, its first values. Waits for the GPU.

        Values that are not finite are None. Where the GPU does not answer any more, because the program has
        failed on it, nothing was seen.

        Returns:
            The kind, the values, and for losses the spacing of their type (``ResultsFile.spacing``).
        """
        kind: ResultKind = "none"
        numbers: list[float] = []
        try:
            wait_until_idle(self.torch)
            if self._losses:
                kind, numbers = "loss", [float(loss) for loss in self._losses]
            elif self._parameters:
                kind, numbers = "parameters", [one.read() for one in self._parameters]
            elif self._outputs:
                kind, numbers = "output", [one.read_mean() for one in self._outputs]
            spacing = self._spacing()
        except Exception:  # of many types, by the kind of the GPU and of what has failed on it
            return "none", (), None
        return kind, tuple(number if math.isfinite(number) else None for number in numbers), spacing

    def _spacing(self) -> float | None:
        """The largest spacing of the types of the losses, relative; None without losses."""
        types = {loss.dtype for loss in self._losses}
        return max((float(self.torch.finfo(one).eps) for one in types), default=None)

    def after_fork(self) -> None:
        """A forked child: what was remembered belongs to the parent, and the child keeps nothing then."""
        if self._losses or self._parameters or self._outputs:
            self.stop()
        for values in (self._losses, self._parameters, self._outputs):
            values.clear()
        self._calls = 0
        self._thread, self._in_backward = None, False

    def _replace_backward(self) -> Callable[[], None]:
        """Put our function in the place of torch's. Returns what takes it back."""
        owner = self.torch.autograd
        original = owner.backward

        @functools.wraps(original)
        def backward(*args: Any, **kwargs: Any) -> Any:
            if self._over or dynamo.compiling() or not self._enters(args, kwargs):
                return original(*args, **kwargs)
            try:
                return original(*args, **kwargs)
            finally:
                self._in_backward = False
                if len(self._losses) >= self.wanted.values:
                    self.stop()

        def restore() -> None:
            if owner.backward is backward:  # else another tool has put its own round it
                owner.backward = original

        owner.backward = backward
        return restore

    def _enters(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """A backward begins: remember its loss. Returns whether it is one that counts. Never raises."""
        try:
            me = threading.get_ident()
            if self._in_backward or self._thread not in (None, me) or self._is_ignored():
                return False
            loss = self._loss(args[0] if args else kwargs.get("tensors"))
            if loss is None:
                return False
            self._thread = me
            self._losses.append(loss.clone())
            self._in_backward = True
        except Exception as error:
            self._fail(error)
            return False
        return True

    def _loss(self, roots: Values) -> Tensor | None:
        """The one number that backward is called on; None where it is called on something else."""
        if isinstance(roots, (tuple, list)) and len(roots) == 1:
            roots = roots[0]
        if not isinstance(roots, self.torch.Tensor) or roots.numel() != 1:
            return None
        return plain(self.torch, roots)

    def _is_ignored(self) -> bool:
        return self._over or self.process.ignored() or self.process.capturing()

    def _fail(self, error: Exception) -> None:
        report(error)
        self.stop()


def set_seed(torch: Torch, seed: int) -> None:
    """Seed the random numbers of Python, torch and, where it is imported, numpy.

    A program that sets seeds of its own does so later, and has its own.
    """
    random.seed(seed)
    torch.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed)


def _nothing() -> None:
    pass
