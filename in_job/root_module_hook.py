"""Finds root modules: calls back before and after the forward of an outermost nn.Module.

Global module hooks would run for every submodule (far more than 1 % of a 1 ms step), would be traced by
torch.compile and make it warn. So until the steps are settled, the function ``nn.Module.__call__`` runs code
of ours, but only while no module runs: the call of a root gives the function its own code back for the time
of the forward, so submodules and torch.compile never see ours. Once settled, only the known roots keep a hook
of their own (module steps) or none at all (optimizer and explicit steps).

The code of the function is exchanged, not the function: each assignment to a class empties Python's caches
for it and for all that inherit from it, which makes a small step 0.1 to 0.3 ms longer. Besides, torch.fx,
torch.compile and torch.profiler know torch's function by its identity.
"""

from __future__ import annotations

import threading
import weakref
from types import FunctionType
from typing import TYPE_CHECKING, Any, Callable

from . import dynamo
from .modules import EnteredCall, around_calls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .torch_types import Module, Torch, Values

    FirstCall = Callable[[Module, tuple[Values, ...], dict[str, Values]], None]


def _profrun_call(module: Module, args: tuple[Values, ...], kwargs: dict[str, Values]) -> Values:
    """Stands for the global of this name that ``RootModuleHook`` puts where torch's function finds it."""
    raise NotImplementedError


def _entry(self: Module, *args: Values, **kwargs: Values) -> Values:
    """Its code is what ``nn.Module.__call__`` runs while root modules are looked for."""
    return _profrun_call(self, args, kwargs)


class RootModuleHook:
    """Calls ``before(module, args)`` and ``after(module, output)`` for calls of outermost modules with
    parameters.

    Args:
        first: called before the first call of each of them, with the module and the arguments of the call;
            what it calls is watched as little as what the module calls.

    Attributes:
        searching: whether it still looks for new root modules.
        entered: the call of a known root in whose pre-hooks ``before`` is called now.
    """

    def __init__(
        self,
        torch: Torch,
        before: Callable[[Module, tuple[Values, ...]], None],
        after: Callable[[Module, Values], None],
        first: FirstCall | None = None,
    ) -> None:
        self.torch = torch
        self.searching = False
        self.entered: EnteredCall | None = None
        self._known: list[weakref.ref[Module]] = []  # in the order of their first call
        self._before = before
        self._after = after
        self._first = first
        self._function = _exchangeable(torch.nn.Module)
        self._code = self._function.__code__
        self._original = _copy(self._function)  # runs torch's code also while the function runs ours
        self._current: weakref.ref[Module] | None = None
        self._in_replacement = False  # in a call that came through the replacement
        self._thread: int | None = None
        self._undo: list[Callable[[], None]] = []
        self._empty: weakref.WeakKeyDictionary[Module, bool] = weakref.WeakKeyDictionary()
        self._function.__globals__[_profrun_call.__name__] = self._make()

    @property
    def inside(self) -> bool:
        """Whether a root module runs, as far as calls are watched."""
        return self._current is not None

    def __len__(self) -> int:
        """Root modules that were called so far."""
        return len(self._known)

    def roots(self) -> Iterator[Module]:
        """Those root modules that are still there."""
        for reference in self._known:
            module = reference()
            if module is not None:
                yield module

    def search(self) -> None:
        """Call back for every root module from now on."""
        self.searching = True
        self._patch(True)

    def settle(self, *, keep: bool) -> None:
        """Stop looking for root modules. ``keep``: calls of the known ones go on to call back."""
        self.searching = False
        self._patch(False)
        for module in self.roots() if keep else ():  # a step begins before the range of its root module
            undo = around_calls(self.torch, module, self._pre_hook, self._post_hook, outermost=True)
            self._undo.append(undo)

    def stop(self) -> None:
        """Take everything back."""
        self.searching = False
        self._patch(False)
        for undo in self._undo:
            undo()
        self._undo.clear()

    def forget(self) -> None:
        """A forked child: no module was called in it yet."""
        self._known.clear()
        self._thread = None

    def _make(self) -> Any:
        original = self._original
        hook = self

        def called(module: Module, args: tuple[Values, ...], kwargs: dict[str, Values]) -> Values:
            if dynamo.compiling() or not hook._is_outermost() or hook._has_no_parameters(module):
                return original(module, *args, **kwargs)
            return hook._call_root(module, args, kwargs)

        return called

    def _is_outermost(self) -> bool:
        """No root runs, on the thread that called the first one: replicas of DataParallel run in others."""
        if not self.searching or self._current is not None:
            return False
        return self._thread is None or self._thread == threading.get_ident()

    def _has_no_parameters(self, module: Module) -> bool:
        """Losses and image transforms are modules too, but no model."""
        try:
            empty = self._empty.get(module)
            if empty is None:
                empty = self._empty[module] = next(iter(module.parameters()), None) is None
        except Exception:  # a module may make its parameters as it likes
            return True
        return empty

    def _call_root(self, module: Module, args: tuple[Values, ...], kwargs: dict[str, Values]) -> Values:
        self._thread = threading.get_ident()
        self._current = weakref.ref(module)
        is_new = not any(reference() is module for reference in self._known)
        if is_new:
            self._known.append(weakref.ref(module))
        self._in_replacement = True
        self._patch(False)  # first of all: a profiler that starts now looks at the function's code
        try:
            if is_new and self._first is not None:
                self._first(module, args, kwargs)
            self._before(module, args)
            output = self._original(module, *args, **kwargs)
            self._after(module, output)
            return output
        finally:
            self._current = None
            self._in_replacement = False
            if self.searching:
                self._patch(True)

    def _patch(self, on: bool) -> None:
        self._function.__code__ = _entry.__code__ if on else self._code

    def _pre_hook(self, module: Module, args: tuple[Values, ...]) -> None:
        if dynamo.compiling() or threading.get_ident() != self._thread:
            return
        current = self._current() if self._current is not None else None
        if current is None or (current is module and not self.searching and not self._in_replacement):
            self._current = weakref.ref(module)
            self.entered = EnteredCall(module, args)
            try:
                self._before(module, args)
            finally:
                self.entered = None

    def _post_hook(self, module: Module, args: Values, output: Values) -> None:
        if dynamo.compiling() or threading.get_ident() != self._thread or self._in_replacement:
            return
        if self._current is not None and self._current() is module:
            self._current = None
            if output is not None:
                self._after(module, output)


def _exchangeable(owner: Any) -> FunctionType:
    """A class's function ``__call__``; where that cannot run other code, a new one that calls it."""
    found = owner.__call__
    if isinstance(found, FunctionType) and not found.__code__.co_freevars and not found.__defaults__:
        return found

    def __call__(self: Module, *args: Values, _profrun_found: Any = found, **kwargs: Values) -> Values:
        return _profrun_found(self, *args, **kwargs)

    owner.__call__ = __call__
    return __call__  # type: ignore[return-value]


def _copy(function: FunctionType) -> FunctionType:
    copy = FunctionType(function.__code__, function.__globals__, function.__name__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy
