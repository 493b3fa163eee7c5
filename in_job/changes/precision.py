"""``tf32``: matrix products of fp32 tensors run in TF32, also where the program asks for more bits."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Callable

from ...contract.units import counted
from .applied import Applied

if TYPE_CHECKING:
    from ..torch_types import Torch

_PRODUCTS = ("cuda", "matmul")
"""Backend and operation of these products in ``torch.backends``; of the whole: ``generic`` and ``all``."""
_FEWER = ("high", "medium", "tf32", "bf16")
"""Settings with at most as many bits as TF32; those of ``set_float32_matmul_precision`` come first."""


class Tf32(Applied):
    """Products use TF32 from the import of torch on.

    A program has three ways to set that: ``torch.set_float32_matmul_precision``, ``allow_tf32``, and since
    torch 2.9 ``fp32_precision`` (https://docs.pytorch.org/docs/main/notes/cuda.html). Behind each is one
    function of ``torch._C``, which is replaced here by one that asks for no more bits.
    """

    nothing = "torch was not imported"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._ignored = 0

    def attach(self, torch: Torch) -> None:
        """See ``Applied.attach``."""
        if not torch.cuda.is_available():
            self.skip("torch finds no GPU")
            return
        binding: Any = torch._C
        torch.set_float32_matmul_precision("high")
        self._replace(binding, "_set_float32_matmul_precision", self._is_more)
        self._replace(binding, "_set_cublas_allow_tf32", lambda wanted: not wanted)
        if hasattr(binding, "_set_fp32_precision_setter"):
            self._keep_setter(binding)
        self.count = 1

    def told(self) -> str:
        """See ``Applied.told``."""
        calls = f", and {counted(self._ignored, 'call')} for more bits did nothing" if self._ignored else ""
        return f"matrix products of fp32 tensors may run in TF32{calls}"

    @staticmethod
    def _is_more(wanted: str) -> bool:
        return wanted not in _FEWER

    def _replace(self, binding: Any, name: str, is_more: Callable[[Any], bool]) -> None:
        """Let a function of torch do nothing where its argument asks for more bits."""
        original = getattr(binding, name)

        @functools.wraps(original)
        def setter(wanted: Any) -> None:
            if is_more(wanted):
                self._ignored += 1
            else:
                original(wanted)

        setattr(binding, name, setter)

    def _keep_setter(self, binding: Any) -> None:
        """The same for ``fp32_precision``, which is a setting of products, of a backend, or of everything.

        One for products alone goes before the others, so that is set again after each of them.
        """
        original = binding._set_fp32_precision_setter

        @functools.wraps(original)
        def setter(backend: str, operation: str, wanted: str) -> None:
            if (backend, operation) != _PRODUCTS:
                original(backend, operation, wanted)
                original(*_PRODUCTS, "tf32")
            elif self._is_more(wanted):
                self._ignored += 1
            else:
                original(backend, operation, wanted)

        binding._set_fp32_precision_setter = setter
