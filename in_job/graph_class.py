"""torch's class of CUDA graphs, as the hook watches it: ``graph_class``."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .torch_types import Torch

METHODS = ("replay", "capture_begin", "capture_end")
"""What is watched of it."""


def graph_class(torch: Torch) -> Any:
    """``torch.cuda.CUDAGraph``; None where this torch has none, or a method of it cannot be replaced."""
    found = getattr(torch.cuda, "CUDAGraph", None)
    watched = all(isinstance(getattr(found, name, None), FunctionType) for name in METHODS)
    return found if watched else None
