"""Keeps torch.compile away from the hook's own code.

While a compiled function runs what it could not compile, dynamo looks at every Python frame that starts,
ours included, and would try to compile them: time lost, graph breaks counted. Each code object of the hook
is marked to be run as it is. Code that dynamo inlines while it traces is not affected; there the hook asks
whether it is being compiled and does nothing.
"""

from __future__ import annotations

import importlib
import sys
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def skip_own_code() -> int:
    """Mark all code of this package that is loaded now; returns how many code objects that were.

    Does nothing (0) where this torch has no such mark.
    """
    skip = _marker()
    if skip is None:
        return 0
    marked = 0
    for code in own_code():
        skip(code)
        marked += 1
    return marked


def _marker() -> Callable[[CodeType], object] | None:
    """The C part's way to mark code, found without importing torch._dynamo, which takes a second."""
    part: Any = importlib.import_module("torch._C")
    eval_frame: Any = getattr(getattr(part, "_dynamo", None), "eval_frame", None)
    if eval_frame is None:
        return None
    if hasattr(eval_frame, "set_code_exec_strategy"):  # torch 2.7
        strategy = eval_frame._FrameExecStrategy(
            eval_frame._FrameAction.SKIP, eval_frame._FrameAction.DEFAULT
        )
        return lambda code: eval_frame.set_code_exec_strategy(code, strategy)
    found: Callable[[CodeType], object] | None = getattr(eval_frame, "skip_code", None)
    return found


def own_code() -> Iterator[CodeType]:
    """Every code object of the modules of this package."""
    prefix = __name__.rpartition(".")[0] + "."
    for name, module in list(sys.modules.items()):
        if name.startswith(prefix):
            for value in list(vars(module).values()):
                if getattr(value, "__module__", None) == name:
                    yield from _codes(value)


def _codes(value: Any) -> Iterator[CodeType]:
    if isinstance(value, type):
        for member in list(vars(value).values()):
            yield from _codes(member)
    elif isinstance(value, property):
        yield from _codes(value.fget)
    elif isinstance(value, (classmethod, staticmethod)):
        yield from _codes(value.__func__)
    elif isinstance(value, FunctionType):
        yield from _nested(value.__code__)


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)
