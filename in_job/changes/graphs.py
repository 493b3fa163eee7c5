"""Root modules as CUDA graphs: ``cuda-graphs``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ..modules import compiled, inner
from .forwards import Around, RootChange
from .modules import under_autocast

if TYPE_CHECKING:
    from ..torch_types import Module, Torch, Values


class CudaGraphs(RootChange):
    """Forward and backward are captured at the first call, and replayed for calls of the same kind."""

    verb = "replayed as CUDA graphs"

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
        module.__dict__["forward"] = Replay(before, graphed, torch, args)
        return None


class Replay(Around):
    """Replays the graph for calls like the captured one; all others run the module's own forward.

    Args:
        call: the module's own forward.
        graphed: the forward that replays.
        torch: the torch module.
        args: of the call that was captured.
    """

    def __init__(
        self,
        call: Callable[..., Values],
        graphed: Callable[..., Values],
        torch: Torch,
        args: tuple[Values, ...],
    ) -> None:
        super().__init__(call)
        self._graphed = graphed
        self._torch = torch
        self._like = self._key(args)

    def __call__(self, *args: Values, **kwargs: Values) -> Values:
        """Replay, or call the module's own forward."""
        if kwargs or self._key(args) != self._like:
            return self.inner(*args, **kwargs)
        return self._graphed(*args)

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
