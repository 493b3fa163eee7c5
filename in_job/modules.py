"""Automatic ranges round nn.Modules, forward and backward, only while the window is open.

Hooks are put on the instances down to the wanted depth when recording begins and taken off when it ends, so
steps outside the window pay nothing. The forward range is closed by a hook that runs after exceptions too
(torch 2.1); on older torch the stack of ranges closes what an exception left open. Compiled modules get
one range, round the whole: hooks inside would become part of the compiled code.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Callable, NamedTuple

from ..contract.module_names import ROOT
from . import dynamo
from .backward import BackwardRanges

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .sink import Sink
    from .torch_types import Module, Torch, Values

_WRAPPERS = {"DistributedDataParallel", "DataParallel", "FullyShardedDataParallel", "OptimizedModule"}


class EnteredCall(NamedTuple):
    """A call of a module that has reached the module's pre-hooks: what is put on now, it does not run."""

    module: Module
    args: Values


def range_name(name: str, module: Module) -> str:
    """``nn.Module: <qualified name> (<class>)``; the root is called 'root'."""
    return f"nn.Module: {name or ROOT} ({type(module).__name__})"


def compiled(module: Module) -> bool:
    """Whether calling it runs code that torch.compile made."""
    return (
        type(module).__name__ == "OptimizedModule" or getattr(module, "_compiled_call_impl", None) is not None
    )


def inner(root: Module) -> Module:
    """The user's model inside DDP, DataParallel or FSDP, so that names are the model's own."""
    while type(root).__name__ in _WRAPPERS and not compiled(root) and hasattr(root, "module"):
        root = root.module
    return root


def only_holds(module: Module) -> bool:
    """Whether it has no forward of its own, as ModuleList and ModuleDict: it is never called."""
    forward = getattr(module, "forward", None)  # of the object: OptimizedModule has its own there
    return getattr(forward, "__name__", "") == "_forward_unimplemented"


def selected(root: Module, depth: int) -> Iterator[tuple[str, Module]]:
    """(qualified name, module) of the root (depth 0) and of those below it, down to a depth.

    A module that only holds others (ModuleList) has no range and adds nothing to the depth of these: the
    blocks ``transformer.h.0`` of GPT-2 have depth 2.
    """
    stack = [("", inner(root), 0)]
    seen = set()
    while stack:
        name, module, level = stack.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        if not only_holds(module):
            yield name, module
        if level < depth and not compiled(module):
            for key, child in reversed(list(module.named_children())):
                stack.append((f"{name}.{key}" if name else key, child, level + (not only_holds(child))))


class ModuleRanges:
    """Puts ranges round the modules of known roots.

    Args:
        depth: how many modules deep, counted from the root's children as 1; 0 puts no range anywhere.
        sink: takes the ranges.
        backward: put ranges round the backward, too.
    """

    def __init__(self, torch: Torch, depth: int, sink: Sink, *, backward: bool = True) -> None:
        self.depth = depth
        self.sink = sink
        self._torch = torch
        self._backward = BackwardRanges(torch, sink) if backward else None
        self._undo: list[Callable[[], None]] = []
        self._done: set[int] = set()
        self._removals = 0

    def install(self, root: Module, entered: EnteredCall | None = None) -> None:
        """Put ranges round a root and what is in it, once.

        Args:
            entered: the call in whose pre-hooks this happens: the range of its module begins at once.
        """
        if self.depth <= 0 or id(root) in self._done:
            return
        self._done.add(id(root))
        for name, module in selected(root, self.depth):
            self._install(range_name(name, module), module, entered)

    def remove(self) -> None:
        """Take all hooks off again."""
        for undo in self._undo:
            undo()
        self._undo.clear()
        self._done.clear()
        self._removals += 1

    def _install(self, label: str, module: Module, entered: EnteredCall | None) -> None:
        if sys.modules.get("torch.jit") is not None and "Script" in type(module).__mro__[-2].__name__:
            return
        sink, backward, removals = self.sink, self._backward, self._removals

        def before(_module: Module, args: Values) -> None:
            # A call whose pre-hooks run while they are removed runs all of them, but not what ends the range.
            if removals == self._removals and not dynamo.compiling():
                sink.push(label)
                if backward is not None:
                    backward.enter(label, args)

        def after(_module: Module, args: Values, output: Values) -> None:
            if not dynamo.compiling():
                if backward is not None:
                    backward.leave(label, output)
                sink.pop(label)

        self._undo.append(around_calls(self._torch, module, before, after))
        if entered is not None and entered.module is module:
            before(module, entered.args)


def around_calls(
    torch: Torch,
    module: Module,
    before: Callable[[Module, Values], None],
    after: Callable[[Module, Values, Values], None],
    *,
    outermost: bool = False,
) -> Callable[[], None]:
    """Call back before and after each forward of one module; returns what takes this back.

    A call that has begun calls what was ``before`` when it began, and what is ``after`` at its end.

    Args:
        before: given the module and its positional arguments.
        after: given the output too; after an exception it is None (before torch 2.1 nothing is called then).
        outermost: call ``before`` before the hooks that are there already (torch 2.0).
    """
    if getattr(module, "_compiled_call_impl", None) is not None:
        return _around_compiled_calls(module, (before, after), outermost=outermost)
    extra = {"always_call": True} if torch_version(torch) >= (2, 1) else {}
    order = {"prepend": True} if outermost and torch_version(torch) >= (2, 0) else {}
    handles = (
        module.register_forward_pre_hook(before, **order),
        module.register_forward_hook(after, **extra),
    )

    def remove() -> None:
        for handle in handles:
            handle.remove()

    return remove


_PAIRS = "_profrun_pairs"  # attribute of our function in the place of a compiled call


def _around_compiled_calls(
    module: Module,
    pair: tuple[Callable[[Module, Values], None], Callable[[Module, Values, Values], None]],
    *,
    outermost: bool,
) -> Callable[[], None]:
    """``around_calls`` after module.compile(), where torch's hooks would become part of the compiled code.

    One function goes round the compiled call and has all pairs, so that they nest in the wanted order.
    """
    found = module._compiled_call_impl
    if not hasattr(found, _PAIRS):
        module._compiled_call_impl = _with_pairs(module, found)
    ours = module._compiled_call_impl
    pairs = getattr(ours, _PAIRS)
    pairs.insert(0 if outermost else len(pairs), pair)

    def remove() -> None:
        pairs.remove(pair)
        if not pairs and module._compiled_call_impl is ours:  # nobody has replaced ours meanwhile
            module._compiled_call_impl = ours.__wrapped__

    return remove


def _with_pairs(module: Module, compiled_call: Callable[..., Values]) -> Callable[..., Values]:
    pairs: list[tuple[Callable[[Module, Values], None], Callable[[Module, Values, Values], None]]] = []

    def call(*args: Values, **kwargs: Values) -> Values:
        for before, _after in tuple(pairs):
            before(module, args)
        output = None
        try:
            output = compiled_call(*args, **kwargs)
        finally:
            for _before, after in reversed(pairs):
                after(module, args, output)
        return output

    call.__wrapped__ = compiled_call  # type: ignore[attr-defined]
    setattr(call, _PAIRS, pairs)
    return call


def torch_version(torch: Torch) -> tuple[int, int]:
    """(major, minor) of torch, (0, 0) when it does not say."""
    parts = str(torch.__version__).split("+")[0].split(".")
    try:
        return int(parts[0]), int(parts[1])
    except (ValueError, IndexError):
        return (0, 0)
