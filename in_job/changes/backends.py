"""Switches of torch: ``attention``, ``cudnn-benchmark`` and ``compile-dynamic``."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

from ...contract.units import counted
from .applied import Applied
from .compiler import graphs_made

if TYPE_CHECKING:
    from ..torch_types import Torch

_NO_GPU = "torch finds no GPU"
_SWITCHES = {
    "FLASH_ATTENTION": "enable_flash_sdp",
    "EFFICIENT_ATTENTION": "enable_mem_efficient_sdp",
    "CUDNN_ATTENTION": "enable_cudnn_sdp",
    "MATH": "enable_math_sdp",
}
"""Backend -> the function of ``torch.backends.cuda`` that allows it."""


class Attention(Applied):
    """Only one backend of scaled_dot_product_attention is allowed.

    The function itself is left alone, because torch.compile knows it by its identity. So it is not known
    whether the program calls it.
    """

    nothing = "torch was not imported"

    def attach(self, torch: Torch) -> None:
        """See ``Applied.attach``."""
        backends, wanted = torch.backends.cuda, self.change.value
        if not torch.cuda.is_available():  # the same switches hold for the CPU, which has other backends
            self.skip(_NO_GPU)
        elif not hasattr(backends, _SWITCHES[wanted]):
            self.skip(f"torch {torch.__version__} has no backend {wanted}")
        else:
            for backend, switch in _SWITCHES.items():
                if hasattr(backends, switch):
                    getattr(backends, switch)(backend == wanted)
            self.count = 1

    def told(self) -> str:
        """See ``Applied.told``."""
        return f"{self.change.value} is the only backend that scaled_dot_product_attention may use"


class CudnnBenchmark(Applied):
    """cuDNN measures its algorithms. If the program sets the switch itself later, the program wins."""

    nothing = "torch was not imported"

    def attach(self, torch: Torch) -> None:
        """See ``Applied.attach``."""
        self._torch = torch
        if not torch.cuda.is_available():
            self.skip(_NO_GPU)
        elif torch.backends.cudnn.benchmark:
            self.skip("it is switched on already")
        else:
            torch.backends.cudnn.benchmark = True
            self.count = 1

    def ended(self) -> None:
        """See ``Applied.ended``."""
        if self.count and not self._torch.backends.cudnn.benchmark:
            self.count = 0
            self.skip("the program has switched it off")

    def told(self) -> str:
        """See ``Applied.told``."""
        return "torch.backends.cudnn.benchmark is True"


class CompileDynamic(Applied):
    """torch.compile takes sizes as variable from the first call on.

    ``torch.compile(..., dynamic=True)`` sets ``assume_static_by_default`` to False while it compiles
    (``torch/_dynamo/eval_frame.py``). Here that holds for everything that is compiled, also where the program
    says ``dynamic=False``: that is what makes it compile for each size.
    """

    nothing = "the program compiled nothing"

    def attach(self, torch: Torch) -> None:
        """See ``Applied.attach``."""
        original = torch.compile

        @functools.wraps(original)
        def compile_(*args: Any, **kwargs: Any) -> Any:
            kwargs["dynamic"] = True
            return original(*args, **kwargs)

        torch.compile = compile_

    def compiler_imported(self) -> None:
        """See ``Applied.compiler_imported``."""
        config: Any = sys.modules.get("torch._dynamo.config")
        if not hasattr(config, "assume_static_by_default"):
            self.skip("this torch has no switch for it")
            return
        if hasattr(config, "dynamic_shapes"):
            config.dynamic_shapes = True
        config.assume_static_by_default = False
        config.automatic_dynamic_shapes = True

    def ended(self) -> None:
        """See ``Applied.ended``."""
        config: Any = sys.modules.get("torch._dynamo.config")
        if config is not None and not getattr(config, "assume_static_by_default", True):
            self.count = graphs_made()

    def told(self) -> str:
        """See ``Applied.told``."""
        return f"{counted(self.count, 'graph')} compiled with variable sizes"
