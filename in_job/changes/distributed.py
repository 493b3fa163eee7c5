"""DistributedDataParallel: ``bucket-size``."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from ...contract.units import counted
from .applied import Applied
from .constructors import given

if TYPE_CHECKING:
    from ..torch_types import Torch


class BucketSize(Applied):
    """Gradients are summed in buckets of another size."""

    nothing = "the program made no DistributedDataParallel"

    def attach(self, torch: Torch) -> None:
        """See ``Applied.attach``."""
        owner = torch.nn.parallel.DistributedDataParallel
        original = owner.__init__
        signature = inspect.signature(original)

        @functools.wraps(original)
        def __init__(module: Any, *args: Any, **kwargs: Any) -> None:
            # Never a second attempt: ranks talk to each other while the module is made.
            if given(self, signature, (module, *args), kwargs) is not None:
                bound = signature.bind(module, *args, **kwargs)
                bound.arguments["bucket_cap_mb"] = int(self.change.value)
                args, kwargs = bound.args[1:], bound.kwargs
                self.count += 1
            original(module, *args, **kwargs)

        owner.__init__ = __init__

    def told(self) -> str:
        """See ``Applied.told``."""
        return f"{counted(self.count, 'DistributedDataParallel')} got buckets of {self.change.value} MB"
