"""Waits that a program does not need: ``no-empty-cache`` and ``no-synchronize``."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, Callable

from ...contract.units import counted
from .. import dynamo
from .applied import Applied

if TYPE_CHECKING:
    from ..torch_types import Event, Torch

_REAL_FOR = ("torch", "triton", __name__.partition(".")[0])
"""Packages whose own calls are still carried out: torch waits before it captures a graph, torch's profilers
and triton's autotuner wait before they read a clock, profrun waits at the edges of what it records."""


class NoCalls(Applied):
    """A function does nothing where the program calls it."""

    def without(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that does nothing, except for the packages of ``_REAL_FOR``."""

        @functools.wraps(function)
        def nothing(*args: Any, **kwargs: Any) -> Any:
            if dynamo.compiling():
                return function(*args, **kwargs)
            caller = sys._getframe(1).f_globals.get("__name__") or ""
            if caller.partition(".")[0] in _REAL_FOR:
                return function(*args, **kwargs)
            self.count += 1
            return None

        return nothing


class NoEmptyCache(NoCalls):
    """``torch.cuda.empty_cache()`` does nothing."""

    nothing = "the program never called torch.cuda.empty_cache()"

    def attach(self, torch: Torch) -> None:
        """See ``Applied.attach``."""
        torch.cuda.empty_cache = torch.cuda.memory.empty_cache = self.without(torch.cuda.empty_cache)

    def told(self) -> str:
        """See ``Applied.told``."""
        return f"{counted(self.count, 'call')} of torch.cuda.empty_cache() did nothing"


class NoSynchronize(NoCalls):
    """``torch.cuda.synchronize()`` does nothing. Streams and events can still be waited for."""

    nothing = "the program never called torch.cuda.synchronize()"

    def attach(self, torch: Torch) -> None:
        """See ``Applied.attach``."""
        torch.cuda.synchronize = self.without(torch.cuda.synchronize)
        _wait_for_times(torch.cuda.Event)

    def told(self) -> str:
        """See ``Applied.told``."""
        return f"{counted(self.count, 'call')} of torch.cuda.synchronize() did nothing"


def _wait_for_times(owner: Any) -> None:
    """Let the time between two events wait for the second: it was synchronize() that a program did that by.

    Otherwise torch raises an error, because the event is not over yet.
    """
    original = owner.elapsed_time

    @functools.wraps(original)
    def elapsed_time(event: Event, end_event: Event) -> float:
        if not end_event.query():
            end_event.synchronize()
        found: float = original(event, end_event)
        return found

    owner.elapsed_time = elapsed_time
