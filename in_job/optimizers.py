"""Tells when optimizers are made and when their steps have returned."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Callable

from . import dynamo

if TYPE_CHECKING:
    from .torch_types import Optimizer, Torch


def watch_optimizers(torch: Torch, made: Callable[[], None], stepped: Callable[[Optimizer], None]) -> None:
    """Call ``made`` for each new optimizer, and ``stepped`` after each step of one.

    torch wraps the step of each optimizer class once, when the first instance is made; ours goes round that
    wrapper, so that the step's end lies outside of torch's own ``Optimizer.step#...`` range.
    """
    owner = torch.optim.Optimizer
    inner = getattr(owner, "profile_hook_step", None)
    if inner is None:  # torch 1
        return

    def profile_hook_step(function: Callable[..., Any]) -> Callable[..., Any]:
        hooked = inner(function)

        @functools.wraps(hooked)
        def step(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
            result = hooked(self, *args, **kwargs)
            if not dynamo.compiling():
                stepped(self)
            return result

        return step

    owner.profile_hook_step = staticmethod(profile_hook_step)
    patch = owner._patch_step_function

    def _patch_step_function(self: Optimizer) -> None:
        made()
        patch(self)

    owner._patch_step_function = _patch_step_function
