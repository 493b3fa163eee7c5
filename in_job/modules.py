"""Automatic ranges round nn.Modules, forward and backward, only while the window is open.

Hooks are put on the instances down to the wanted depth when recording begins and taken off when it ends, so
steps outside the window pay nothing. The forward range is closed by a hook that runs after exceptions too
(torch 2.1); on older torch the stack of ranges closes what an exception left open. Compiled modules get
one range, round the whole: hooks inside would become part of the compiled code.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from . import emit
from .backward import BackwardRanges

if TYPE_CHECKING:
    from collections.abc import Iterator

_WRAPPERS = {"DistributedDataParallel", "DataParallel", "FullyShardedDataParallel", "OptimizedModule"}


def range_name(name: str, module: Any) -> str:
    """``nn.Module: <qualified name> (<class>)``; the root is called 'root'."""
    return f"nn.Module: {name or 'root'} ({type(module).__name__})"


def compiled(module: Any) -> bool:
    """Whether calling it runs code that torch.compile made."""
    return (
        type(module).__name__ == "OptimizedModule" or getattr(module, "_compiled_call_impl", None) is not None
    )


def inner(root: Any) -> Any:
    """The user's model inside DDP, DataParallel or FSDP, so that names are the model's own."""
    while type(root).__name__ in _WRAPPERS and not compiled(root) and hasattr(root, "module"):
        root = root.module
    return root


def selected(root: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """(qualified name, module) of the root (depth 0) and all below it down to ``depth`` name parts."""
    stack = [("", inner(root), 0)]
    seen = set()
    while stack:
        name, module, level = stack.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        yield name, module
        if level < depth and not compiled(module):
            for key, child in reversed(list(module.named_children())):
                stack.append((f"{name}.{key}" if name else key, child, level + 1))


class ModuleRanges:
    """Puts ranges round the modules of known roots.

    Args:
        depth: name parts of the deepest modules; 0 puts no range anywhere.
        sink: takes the ranges.
    """

    def __init__(self, torch: Any, depth: int, sink: emit.Sink) -> None:
        self.depth = depth
        self.sink = sink
        self._always = torch_version(torch) >= (2, 1)
        self._backward = BackwardRanges(torch, sink)
        self._handles: list[Any] = []
        self._done: set[int] = set()

    def install(self, root: Any) -> None:
        """Put ranges round a root and what is in it, once."""
        if self.depth <= 0 or id(root) in self._done:
            return
        self._done.add(id(root))
        for name, module in selected(root, self.depth):
            self._install(range_name(name, module), module)

    def remove(self) -> None:
        """Take all hooks off again."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._done.clear()

    def _install(self, label: str, module: Any) -> None:
        if sys.modules.get("torch.jit") is not None and "Script" in type(module).__mro__[-2].__name__:
            return
        wrapped = getattr(module, "_compiled_call_impl", None)
        if wrapped is not None:
            self._wrap_compiled(label, module, wrapped)
            return
        sink, backward = self.sink, self._backward

        def before(_module: Any, args: Any) -> None:
            if not emit._compiling():
                sink.push(label)
                backward.enter(label, args)

        def after(_module: Any, args: Any, output: Any) -> None:
            if not emit._compiling():
                backward.leave(label, output)
                sink.pop(label)

        self._handles.append(module.register_forward_pre_hook(before))
        extra = {"always_call": True} if self._always else {}
        self._handles.append(module.register_forward_hook(after, **extra))

    def _wrap_compiled(self, label: str, module: Any, wrapped: Any) -> None:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.sink.push(label)
            self._backward.enter(label, args)
            output = None
            try:
                output = wrapped(*args, **kwargs)
            finally:
                self._backward.leave(label, output)
                self.sink.pop(label)
            return output

        module._compiled_call_impl = call
        self._handles.append(_Undo(module, wrapped, call))


class _Undo:
    """Gives a compiled module its call back, if nobody has replaced ours meanwhile."""

    def __init__(self, module: Any, wrapped: Any, ours: Any) -> None:
        self._module, self._wrapped, self._ours = module, wrapped, ours

    def remove(self) -> None:
        if self._module._compiled_call_impl is self._ours:
            self._module._compiled_call_impl = self._wrapped


def torch_version(torch: Any) -> tuple[int, int]:
    """(major, minor) of torch, (0, 0) when it does not say."""
    parts = str(torch.__version__).split("+")[0].split(".")
    try:
        return int(parts[0]), int(parts[1])
    except (ValueError, IndexError):
        return (0, 0)
