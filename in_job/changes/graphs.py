"""Root modules as CUDA graphs: ``cuda-graphs``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable

from ..modules import compiled, inner
from .forwards import Around, RootChange
from .modules import under_autocast

if TYPE_CHECKING:
    from ..torch_types import Module, Tensor, Torch, Values


class CudaGraphs(RootChange):
    """Forward and backward are captured at the first call, and replayed for calls of the same kind.

    A replay writes gradients into its own memory, and autograd keeps that memory as ``.grad``. A second
    backward would overwrite the gradients to which it must add: github.com/pytorch/pytorch/issues/181723. So
    once a call finds gradients of an earlier backward, gradients are copied.
    """

    verb = "replayed as CUDA graphs"
    _copies = False

    def attach(self, torch: Torch) -> None:
        """See ``Applied.attach``."""
        self._torch = torch

    def make(self, module: Module, args: tuple[Values, ...], kwargs: dict[str, Values]) -> str | None:
        """See ``RootChange.make``."""
        why = self._refusal(module, args, kwargs)
        return why if why is not None else self._capture(module, args)

    def _refusal(self, module: Module, args: tuple[Values, ...], kwargs: dict[str, Values]) -> str | None:
        torch = self._torch
        if kwargs:
            return f"it is called with arguments by name ({', '.join(kwargs)}), which cannot be captured"
        if not args or not all(isinstance(one, torch.Tensor) and one.is_cuda for one in args):
            return "its arguments are not all tensors on the GPU"
        if not all(parameter.is_cuda for parameter in module.parameters()):
            return "its parameters are not all on the GPU"
        if compiled(module):
            return "it is compiled"
        if inner(module) is not module:
            return f"it is wrapped in {type(module).__name__}"
        if under_autocast(torch, "cuda"):
            return "it runs under autocast, whose cache cannot be captured"
        if self.process.capturing():
            return "the program captures it itself"
        return None

    def _capture(self, module: Module, args: tuple[Values, ...]) -> str | None:
        """Capture; the random numbers and the buffers are what they were before, as if nothing had run."""
        torch = self._torch
        before, own = module.forward, module.__dict__.get("forward")
        samples = tuple(one.detach().clone().requires_grad_(one.requires_grad) for one in args)
        buffers = [(buffer, buffer.clone()) for buffer in module.buffers()]
        random = torch.cuda.get_rng_state()
        try:
            torch.cuda.make_graphed_callables(module, samples)
            graphed = module.__dict__["forward"]
        except Exception as error:
            _put_back(module, own)
            return f"torch cannot capture it: {error}"
        finally:
            torch.cuda.set_rng_state(random)
            with torch.no_grad():
                for buffer, content in buffers:
                    buffer.copy_(content)
        parameters = [one for one in module.parameters() if one.requires_grad]
        module.__dict__["forward"] = Replay(before, graphed, torch, args, parameters, self._copied)
        return None

    def _copied(self) -> None:
        self._copies = True

    def told(self) -> str:
        """See ``Applied.told``."""
        return super().told() + ", whose gradients are copied so that they add up" * self._copies


class Replay(Around):
    """Replays the graph for calls like the captured one; all others run the module's own forward.

    Args:
        call: the module's own forward.
        graphed: the forward that replays.
        torch: the torch module.
        args: of the call that was captured.
        parameters: of the module, those with gradients.
        copied: is called once, when gradients begin to be copied.
    """

    def __init__(
        self,
        call: Callable[..., Values],
        graphed: Callable[..., Values],
        torch: Torch,
        args: tuple[Values, ...],
        parameters: Sequence[Tensor],
        copied: Callable[[], None],
    ) -> None:
        super().__init__(call)
        self._graphed = graphed
        self._torch = torch
        self._like = self._key(args)
        self._parameters = parameters  # empty once gradients are copied
        self._copied = copied

    def __call__(self, *args: Values, **kwargs: Values) -> Values:
        """Replay, or call the module's own forward."""
        if kwargs or self._key(args) != self._like:
            return self.inner(*args, **kwargs)
        if self._torch.is_grad_enabled() and any(one.grad is not None for one in self._parameters):
            self._copy_gradients()
        return self._graphed(*args)

    def _copy_gradients(self) -> None:
        """Give each parameter a gradient of its own, now and after each backward."""
        for one in self._parameters:
            if one.grad is not None:
                one.grad = one.grad.clone()
            one.register_hook(self._torch.clone)
        self._parameters = ()
        self._copied()

    def _key(self, args: tuple[Values, ...]) -> tuple[Any, ...]:
        """What must be equal for a replay to stand for a call."""
        torch = self._torch
        kinds = tuple(
            (one.shape, one.dtype, one.device, one.requires_grad) if isinstance(one, torch.Tensor) else None
            for one in args
        )
        return kinds, torch.is_grad_enabled(), under_autocast(torch, "cuda")


def _put_back(module: Module, own: Callable[..., Values] | None) -> None:
    if own is None:
        module.__dict__.pop("forward", None)
    else:
        module.__dict__["forward"] = own
