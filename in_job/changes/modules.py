"""Root modules: ``autocast``, ``compile`` and ``channels-last``."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Callable

from ..modules import compiled, inner
from .compiler import graphs_made
from .forwards import Around, RootChange, put_around
from .nested import mapped

if TYPE_CHECKING:
    from ..torch_types import Module, Tensor, Torch, Values
    from .applied import Applied

_COMPILER = (("torch", "_dynamo"), ("torch", "_inductor"))
"""The packages whose errors are those of the compiler, and not of the program."""


class Autocast(RootChange):
    """The forward runs under autocast; what it returns in fp16 or bf16 becomes fp32 again.

    Outputs are converted as ``accelerate`` does it (``convert_outputs_to_fp32``): in tuples, lists and
    mappings, and not in objects of other classes.
    """

    def attach(self, torch: Torch) -> None:
        """See ``Applied.attach``."""
        self._torch = torch
        self.verb = f"under autocast in {self.change.value}"

    def make(self, module: Module, args: tuple[Values, ...], kwargs: dict[str, Values]) -> str | None:
        """See ``RootChange.make``."""
        torch, dtype = self._torch, getattr(self._torch, self.change.value)
        parameter = next((one for one in module.parameters() if one.is_floating_point()), None)
        if parameter is None:
            return "it has no floating-point parameters"
        kind = parameter.device.type
        why = self._refusal(module, parameter, kind)
        if why is not None:
            return why
        half = (torch.float16, torch.bfloat16)
        no_gradients = dtype is torch.float16

        def as_float(value: Values) -> Values:
            return value.float() if isinstance(value, torch.Tensor) and value.dtype in half else value

        class UnderAutocast(Around):
            def __call__(around, *args: Values, **kwargs: Values) -> Values:
                if no_gradients and torch.is_grad_enabled():
                    return around.inner(*args, **kwargs)
                with torch.autocast(kind, dtype=dtype):
                    output = around.inner(*args, **kwargs)
                try:
                    return mapped(output, as_float)
                except Exception as error:  # a class that is not made as its base is
                    self.failed(error)
                    return output

        put_around(module, UnderAutocast)
        return None

    def _refusal(self, module: Module, parameter: Tensor, kind: str) -> str | None:
        torch = self._torch
        if parameter.dtype is not torch.float32:
            return f"its parameters are {str(parameter.dtype).rpartition('.')[2]}, not fp32"
        # accelerate puts autocast inside the forward, and keeps the program's own there
        if under_autocast(torch, kind) or "_original_forward" in vars(inner(module)):
            return "the program runs it under autocast already"
        if self.change.value == "float16" and torch.is_grad_enabled():
            return "gradients are computed, and in fp16 they can underflow without a GradScaler"
        if self.change.value == "bfloat16" and kind == "cuda" and not torch.cuda.is_bf16_supported():
            return "this GPU does not support bf16"
        return None


class Compile(RootChange):
    """Root modules are compiled in place, by ``torch.nn.Module.compile``."""

    verb = "compiled"

    def attach(self, torch: Torch) -> None:
        """See ``Applied.attach``."""
        self._torch = torch

    def make(self, module: Module, args: tuple[Values, ...], kwargs: dict[str, Values]) -> str | None:
        """See ``RootChange.make``."""
        owner = self._torch.nn.Module
        if not hasattr(owner, "compile"):
            return f"torch {self._torch.__version__} has no nn.Module.compile (torch 2.2 has)"
        if any(compiled(one) for one in module.modules()):
            return "it is compiled already, or a part of it"
        if isinstance(module, self._torch.jit.ScriptModule):
            return "it is TorchScript"
        mode = None if self.change.value == "default" else self.change.value
        wrap = self._wrap_inline()
        home = getattr(type(module).forward, "__module__", None) or ""
        if wrap is not None and home.startswith("torch.nn.modules."):
            # The compiler skips the frames of torch.nn, and module.compile() would compile nothing of a
            # Sequential; this is how torch.compile(module) does it (torch/_dynamo/eval_frame.py).
            module._compiled_call_impl = self._torch.compile(wrap(module._call_impl), mode=mode)
        else:
            owner.compile(module, mode=mode)  # not module.compile: a program may have a method of that name
        put_around(module, lambda call: CompiledCall(call, module, self))
        return None

    def ended(self) -> None:
        """See ``Applied.ended``."""
        if self.count and not graphs_made():
            self.count = 0
            self.skip(f"torch.compile made no graph of {', '.join(self._names)}")

    def _wrap_inline(self) -> Any:
        try:
            found = importlib.import_module("torch._dynamo.external_utils")
        except ImportError:
            return None
        return getattr(found, "wrap_inline", None)


class CompiledCall(Around):
    """The compiled call of a module; its own code from the moment on when the compiler fails.

    Args:
        call: what torch.compile made.
        module: the module.
        applied: told of the compiler's error.
    """

    def __init__(self, call: Callable[..., Values], module: Module, applied: Applied) -> None:
        super().__init__(call)
        self.module = module
        self.applied = applied
        self.failed = False

    def __call__(self, *args: Values, **kwargs: Values) -> Values:
        """Call the compiled code."""
        if not self.failed:
            try:
                return self.inner(*args, **kwargs)
            except Exception as error:
                if tuple(type(error).__module__.split(".")[:2]) not in _COMPILER:
                    raise
                self.failed = True
                self.applied.count -= 1
                self.applied.failed(error)
        return self.module._call_impl(*args, **kwargs)


class ChannelsLast(RootChange):
    """Root modules and the 4-dimensional tensors that they are called with have the format channels_last."""

    verb = "in the memory format channels_last"

    def attach(self, torch: Torch) -> None:
        """See ``Applied.attach``."""
        self._torch = torch

    def make(self, module: Module, args: tuple[Values, ...], kwargs: dict[str, Values]) -> str | None:
        """See ``RootChange.make``."""
        torch = self._torch
        dimensions = {parameter.dim() for parameter in module.parameters()}
        if 4 not in dimensions:
            return "it has no 4-dimensional parameters"
        if 5 in dimensions:
            return "it has 5-dimensional parameters, too, which have no such format"
        torch.nn.Module.to(module, memory_format=torch.channels_last)

        def converted(value: Values) -> Values:
            if isinstance(value, torch.Tensor) and value.dim() == 4 and value.is_floating_point():
                return value.contiguous(memory_format=torch.channels_last)
            return value

        class WithChannelsLast(Around):
            def __call__(around, *args: Values, **kwargs: Values) -> Values:
                found: tuple[Any, Any] = args, kwargs
                try:
                    found = mapped(args, converted), mapped(kwargs, converted)
                except Exception as error:
                    self.failed(error)
                return around.inner(*found[0], **found[1])

        put_around(module, WithChannelsLast)
        return None


def under_autocast(torch: Torch, kind: str) -> bool:
    """Whether autocast is switched on here for this type of device ("cuda", "cpu")."""
    try:
        return bool(torch.is_autocast_enabled(kind))
    except TypeError:  # before torch 2.4 without the device
        return bool(torch.is_autocast_cpu_enabled() if kind == "cpu" else torch.is_autocast_enabled())
