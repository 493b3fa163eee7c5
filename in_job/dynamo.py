"""Keeps torch.compile (its front end is called dynamo) away from the hook's own code.

While a compiled function runs what it could not compile, dynamo looks at every Python frame that starts,
ours included, and would try to compile them: time lost, graph breaks counted. Each code object of the hook
is marked to be run as it is. Code that dynamo inlines while it traces is not affected; there the hook asks
``compiling()`` and does nothing.
"""

from __future__ import annotations

import importlib
import sys
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .torch_types import Torch


def _never() -> bool:
    return False


compiling: Callable[[], bool] = _never
"""Whether the code that calls this is being traced rather than run. A global, because dynamo knows torch's
own function by its identity; ``watch_compile`` puts it here."""


def watch_compile(torch: Torch) -> None:
    """torch is there: ask it from now on, and mark all code of profrun that is loaded now to be skipped."""
    global compiling
    compiler = getattr(torch, "compiler", None)
    if compiler is not None and hasattr(compiler, "is_compiling"):
        compiling = compiler.is_compiling
    elif "torch._dynamo" in sys.modules:  # torch 2.0
        compiling = sys.modules["torch._dynamo"].is_compiling
    skip = _marker()
    if skip is not None:
        for code in own_code():
            skip(code)


def _marker() -> Callable[[CodeType], object] | None:
    """The C part's way to mark code, found without importing torch._dynamo, which takes a second.

    None where this torch has no such mark.
    """
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
    """Every code object of profrun's modules that are loaded."""
    prefix = __name__.partition(".")[0] + "."
    for name, module in list(sys.modules.items()):
        if name.startswith(prefix):
            for value in list(vars(module).values()):
                if getattr(value, "__module__", None) == name:
                    yield from _codes(value)


def _codes(value: object) -> Iterator[CodeType]:
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
