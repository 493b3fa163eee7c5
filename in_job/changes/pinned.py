"""Copies to the GPU from pinned memory: ``pinned-memory``."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Callable

from ...contract.units import counted
from .. import dynamo
from .applied import Applied
from .constructors import construct, given
from .loaders import on_gpu

if TYPE_CHECKING:
    from ..torch_types import Tensor, Torch

_LEAST_BYTES = 64 << 10
"""From this size on a tensor is copied into pinned memory first. The driver copies up to 64 KiB of pageable
memory without waiting for the GPU (CUDA Runtime API, "API synchronization behavior")."""


class PinnedMemory(Applied):
    """DataLoaders pin their batches, and copies from the CPU to the GPU do not wait.

    What is copied first into pinned memory of torch's own allocator may be overwritten at once: the allocator
    gives the memory away again only when the copy is over. Pageable memory has been read when the copy
    returns. Only memory that the program itself has pinned must not be overwritten too early. Copies from
    the GPU to the CPU are left alone: the program would read them too early.
    """

    nothing = "the program made no DataLoader, and copied no tensor from the CPU to the GPU"

    def attach(self, torch: Torch) -> None:
        """See ``Applied.attach``."""
        self._torch = torch
        self._loaders = 0
        if not torch.cuda.is_available():
            self.skip("torch finds no GPU")
            return
        self._watch_loaders(torch.utils.data.DataLoader)
        owner = torch.Tensor
        owner.to = self._moving(owner.to, self._target_of_to)
        owner.cuda = self._moving(owner.cuda, lambda _args, _kwargs: ("cuda", 1))
        owner.copy_ = self._filling(owner.copy_)

    def told(self) -> str:
        """See ``Applied.told``."""
        moved = counted(self.count - self._loaders, "tensor")
        return (
            f"{counted(self._loaders, 'DataLoader')} pinned batches, {moved} went to the GPU without a wait"
        )

    def _watch_loaders(self, owner: Any) -> None:
        original = owner.__init__
        signature = inspect.signature(original)

        @functools.wraps(original)
        def __init__(loader: Any, *args: Any, **kwargs: Any) -> None:
            arguments = given(self, signature, (loader, *args), kwargs)
            if arguments is None or arguments.get("pin_memory") or on_gpu(arguments.get("dataset")):
                original(loader, *args, **kwargs)
            elif construct(self, original, signature, (loader, *args), kwargs, {"pin_memory": True}):
                self._loaders += 1
                self.count += 1

        owner.__init__ = __init__

    def _moving(
        self, original: Any, target: Callable[[tuple[Any, ...], dict[str, Any]], tuple[str, int]]
    ) -> Callable[..., Any]:
        """``tensor.to`` or ``tensor.cuda`` for tensors on the CPU that move to the GPU.

        Args:
            target: gives the type of the device that the arguments name, and the place of ``non_blocking``.
        """

        @functools.wraps(original)
        def moved(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
            if dynamo.compiling() or tensor.device.type != "cpu":
                return original(tensor, *args, **kwargs)
            source = tensor
            try:
                kind, place = target(args, kwargs)
                if kind == "cuda" and not self._is_parameter(tensor):
                    args, kwargs = _not_waiting(args, kwargs, place)
                    source = self._pinned(tensor)
                    self.count += 1
            except Exception as error:
                self.failed(error)
            return original(source, *args, **kwargs)

        return moved

    def _filling(self, original: Any) -> Callable[..., Any]:
        """``tensor.copy_`` for tensors on the GPU that are filled from the CPU."""

        @functools.wraps(original)
        def copy_(tensor: Tensor, src: Any, non_blocking: bool = False) -> Any:
            if not dynamo.compiling() and tensor.device.type == "cuda":
                try:
                    if src.device.type == "cpu" and not self._is_parameter(src):
                        src, non_blocking = self._pinned(src), True
                        self.count += 1
                except Exception as error:
                    self.failed(error)
            return original(tensor, src, non_blocking)

        return copy_

    def _target_of_to(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, int]:
        """``to(device, dtype, non_blocking)``, ``to(dtype, non_blocking)`` or ``to(other, non_blocking)``."""
        torch = self._torch
        first = args[0] if args else kwargs.get("device", kwargs.get("other"))
        if isinstance(first, torch.Tensor):
            return str(first.device.type), 1
        if first is None or isinstance(first, torch.dtype):
            return "", 1
        return str(torch.device(first).type), 2

    def _is_parameter(self, tensor: Tensor) -> bool:
        """Parameters move once, in ``nn.Module.to``."""
        return isinstance(tensor, self._torch.nn.Parameter)

    def _pinned(self, tensor: Tensor) -> Tensor:
        """The tensor in pinned memory; the very same where that is not worth it, or cannot be."""
        torch = self._torch
        if type(tensor) is not torch.Tensor or tensor.layout is not torch.strided or tensor.requires_grad:
            return tensor
        if tensor.numel() * tensor.element_size() < _LEAST_BYTES or tensor.is_pinned():
            return tensor
        return tensor if self.process.capturing() else tensor.pin_memory()


def _not_waiting(
    args: tuple[Any, ...], kwargs: dict[str, Any], place: int
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with ``non_blocking=True``, whose place among those without a name is ``place``."""
    if len(args) > place:
        return (*args[:place], True, *args[place + 1 :]), kwargs
    return args, {**kwargs, "non_blocking": True}
