"""Optimizers: ``fused-optimizer``, ``foreach-optimizer`` and ``set-to-none``."""

from __future__ import annotations

import functools
import inspect
import sys
from typing import TYPE_CHECKING, Any, Callable

from ...contract.units import counted
from .. import dynamo
from ..modules import torch_version
from .applied import Applied
from .constructors import construct, given

if TYPE_CHECKING:
    from ..torch_types import Tensor, Torch


class OptimizerFlag(Applied):
    """Optimizers of torch.optim are made with one argument set to True.

    Attributes:
        flag: the argument.
        other: the argument that excludes it, and is set to None.
    """

    flag = ""
    other = ""

    def attach(self, torch: Torch) -> None:
        """See ``Applied.attach``."""
        self._names: dict[str, None] = {}
        self._under_way: set[int] = set()
        base = torch.optim.Optimizer
        classes = [found for found in vars(torch.optim).values() if isinstance(found, type)]
        for owner in dict.fromkeys(classes):
            if issubclass(owner, base) and "__init__" in vars(owner):
                signature = inspect.signature(owner.__init__)  # type: ignore[misc]
                if self.flag in signature.parameters:
                    self._watch(owner, signature)

    def told(self) -> str:
        """See ``Applied.told``."""
        return f"{counted(self.count, 'optimizer')} got {self.flag}=True ({', '.join(self._names)})"

    def _watch(self, owner: Any, signature: inspect.Signature) -> None:
        original = owner.__init__

        @functools.wraps(original)
        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            if id(optimizer) in self._under_way:  # AdamW calls Adam's
                original(optimizer, *args, **kwargs)
                return
            self._under_way.add(id(optimizer))
            try:
                self._construct(original, signature, (optimizer, *args), kwargs)
            finally:
                self._under_way.discard(id(optimizer))

        owner.__init__ = __init__

    def _construct(
        self,
        original: Callable[..., None],
        signature: inspect.Signature,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        arguments = given(self, signature, args, kwargs)
        if arguments is None or not self._is_wanted(arguments):
            original(*args, **kwargs)
            return
        args, kwargs, groups = _repeatable(signature, args, kwargs)
        why = self.refusal(args[0], _parameters(signature.bind(*args, **kwargs).arguments.get("params")))
        if why is not None:
            self.skip(f"{type(args[0]).__name__}: {why}")
            original(*args, **kwargs)
            return
        before = [dict(group) for group in groups]

        def call(*these: Any, **those: Any) -> None:
            for group, content in zip(groups, before):  # an attempt that failed has put defaults into them
                group.clear()
                group.update(content)
            original(*these, **those)

        values: dict[str, Any] = {self.flag: True}
        if self.other in signature.parameters:
            values[self.other] = None
        if construct(self, call, signature, args, kwargs, values):
            self.count += 1
            self._names[type(args[0]).__name__] = None

    def refusal(self, optimizer: Any, parameters: list[Tensor]) -> str | None:
        """Why the optimizer cannot have the argument, which torch would say only at its first step.

        Args:
            optimizer: the object that is being made.
            parameters: what it is made for.
        """
        return None

    def _is_wanted(self, arguments: dict[str, Any]) -> bool:
        if arguments.get("differentiable"):
            self.skip("the optimizer is differentiable")
        elif arguments.get(self.flag):
            self.skip(f"the optimizer has {self.flag}=True already")
        else:
            return True
        return False


class FusedOptimizer(OptimizerFlag):
    """Each step is one kernel, where torch has one for the optimizer and the device."""

    nothing = "the program made no optimizer that can be fused"
    flag = "fused"
    other = "foreach"

    def attach(self, torch: Torch) -> None:
        """See ``Applied.attach``."""
        # torch's own list of devices; the first versions with fused optimizers knew only this one
        module = sys.modules.get("torch.optim.optimizer")  # torch.optim has no attribute of this name
        devices = getattr(module, "_get_fused_kernels_supported_devices", lambda: ["cuda"])
        self._devices = frozenset(devices())
        # Adagrad could be fused on the CPU only at first; torch 2.13 is the oldest known to do it on a GPU
        self._on_cpu_only = torch.optim.Adagrad if torch_version(torch) < (2, 13) else ()
        super().attach(torch)

    def refusal(self, optimizer: Any, parameters: list[Tensor]) -> str | None:
        """See ``OptimizerFlag.refusal``."""
        devices = self._devices - ({"cuda"} if isinstance(optimizer, self._on_cpu_only) else set())
        for one in parameters:
            if not one.is_floating_point():
                return f"its parameters are {str(one.dtype).rpartition('.')[2]}, not floating-point numbers"
            if one.device.type not in devices:
                return f"torch cannot fuse it on {one.device.type}"
        return None


class ForeachOptimizer(OptimizerFlag):
    """Each step updates all parameters with few kernels."""

    nothing = "the program made no optimizer that knows foreach"
    flag = "foreach"
    other = "fused"


class SetToNone(Applied):
    """``zero_grad()`` of optimizers and modules removes the gradients."""

    nothing = "the program never called zero_grad()"

    def attach(self, torch: Torch) -> None:
        """See ``Applied.attach``."""
        for owner in (torch.optim.Optimizer, torch.nn.Module):
            self._watch(owner)

    def told(self) -> str:
        """See ``Applied.told``."""
        return f"{counted(self.count, 'call')} of zero_grad() removed the gradients"

    def _watch(self, owner: Any) -> None:
        original = owner.zero_grad
        default = inspect.signature(original).parameters["set_to_none"].default

        @functools.wraps(original)
        def zero_grad(this: Any, set_to_none: bool = default) -> None:
            if not dynamo.compiling():
                if set_to_none:
                    self.skip("zero_grad() removes the gradients already")
                else:
                    self.count += 1
            original(this, set_to_none=True)

        owner.zero_grad = zero_grad


def _parameters(given_: Any) -> list[Tensor]:
    """All tensors among what an optimizer is made for: tensors, (name, tensor), or groups of these."""
    if hasattr(given_, "is_floating_point"):
        return [given_]
    if isinstance(given_, dict):
        return _parameters(given_.get("params"))
    if isinstance(given_, (list, tuple, set)):
        return [tensor for one in given_ for tensor in _parameters(one)]
    return []


def _repeatable(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], list[dict[str, Any]]]:
    """Arguments that can be given to a constructor twice: parameters from a generator become a list.

    Returns:
        The arguments, the arguments by name, and the groups of parameters among them.
    """
    bound = signature.bind(*args, **kwargs)
    parameters: Any = bound.arguments.get("params")
    if hasattr(parameters, "__next__"):
        parameters = bound.arguments["params"] = list(parameters)
    groups = [one for one in parameters if isinstance(one, dict)] if isinstance(parameters, list) else []
    for group in groups:
        if hasattr(group.get("params"), "__next__"):
            group["params"] = list(group["params"])
    return bound.args, bound.kwargs, groups
