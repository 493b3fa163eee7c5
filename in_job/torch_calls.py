"""Tells when functions of torch.compile, CUDA graphs and DataLoaders of this process are at work."""

from __future__ import annotations

import functools
from types import FunctionType
from typing import TYPE_CHECKING, Any, Callable

from .calls import same_thing
from .graph_class import graph_class

if TYPE_CHECKING:
    from types import ModuleType

    from .calls import CallWatch
    from .torch_types import Torch


def watch_compiled(eval_frame: ModuleType, watch: CallWatch) -> None:
    """Tell of each call of a function that is compiled from now on.

    The context of torch.compile runs hooks of its own around each call, with the compiler switched off; ours
    is one more of them, so what torch.compile returns stays what it is. With a torch whose context has no
    such hooks these calls are not seen.

    Args:
        eval_frame: the module ``torch._dynamo.eval_frame``.
    """
    owner = getattr(eval_frame, "OptimizeContext", None)
    if owner is None:
        return
    original = owner.__call__

    @functools.wraps(original)
    def __call__(self: Any, function: Any) -> Any:
        made = original(self, function)
        hooks = getattr(self, "enter_exit_hooks", None)
        if isinstance(made, FunctionType) and isinstance(hooks, list):
            thing = same_thing(made, "_torchdynamo_orig_callable", made)
            hooks.append(functools.partial(_enter, watch, thing))
        return made

    owner.__call__ = __call__


def _enter(watch: CallWatch, function: object) -> Callable[[], None]:
    """A compiled function is called; returns what is to be called at its end."""
    return watch.after if watch.before("compiled", function) else _nothing


def _nothing() -> None:
    """The call runs in another one."""


def watch_graphs(torch: Torch, watch: CallWatch) -> None:
    """Tell of each replay of a CUDA graph, and of captures."""
    owner = graph_class(torch)
    if owner is None:
        return
    replay, begin, end = owner.replay, owner.capture_begin, owner.capture_end

    @functools.wraps(replay)
    def watched_replay(self: Any) -> Any:
        outermost = watch.before("graph", self)
        try:
            return replay(self)
        finally:
            if outermost:
                watch.after()

    @functools.wraps(begin)
    def watched_begin(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = begin(self, *args, **kwargs)
        watch.capture(on=True)
        return result

    @functools.wraps(end)
    def watched_end(self: Any) -> Any:
        watch.capture(on=False)
        return end(self)

    owner.replay, owner.capture_begin, owner.capture_end = watched_replay, watched_begin, watched_end


def watch_loaders(torch: Torch, watch: CallWatch) -> None:
    """Tell of each batch that a DataLoader delivers to this process, and of the end of its batches."""
    owner = getattr(getattr(torch.utils.data, "dataloader", None), "_BaseDataLoaderIter", None)
    if owner is None:
        return
    original = owner.__next__

    @functools.wraps(original)
    def __next__(self: Any) -> Any:
        try:
            data = original(self)
        except StopIteration:
            watch.exhausted(self)
            raise
        watch.batch(self)
        return data

    owner.__next__ = __next__
