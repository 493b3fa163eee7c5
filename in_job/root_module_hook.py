"""Finds root modules: rings when an outermost nn.Module is called, before and after its forward.

Global module hooks would run for every submodule (far more than 1 % of a 1 ms step), would be traced by
torch.compile and make it warn. So until the steps are settled, ``nn.Module.__call__`` is replaced, but only
while no module runs: the call of a root rings and puts torch's own ``__call__`` back for the time of its
forward, so submodules and torch.compile never see ours. Once settled, only the known roots keep a hook of
their own (module steps) or none at all (optimizer and explicit steps).
"""

from __future__ import annotations

import sys
import threading
import weakref
from typing import Any, Callable

from . import emit
from .modules import torch_version


class Doorbell:
    """Rings ``before(module, args)`` and ``after(module)`` for calls of outermost modules with parameters.

    Attributes:
        roots: weak references to the root modules seen so far, in order.
        wanted: whether it still looks for new ones.
    """

    def __init__(
        self, torch: Any, before: Callable[[Any, tuple[Any, ...]], None], after: Callable[[Any], None]
    ) -> None:
        self.torch = torch
        self.roots: list[weakref.ref[Any]] = []
        self._before = before
        self._after = after
        self._class = torch.nn.Module
        self._original = self._class.__call__
        self.wanted = False
        self._current: weakref.ref[Any] | None = None
        self._ringing = False  # in a call that came through the replacement
        self._thread: int | None = None
        self._hooks: list[Any] = []
        self._empty: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
        self._replacement = self._make()

    def listen(self) -> None:
        """Ring for every root from now on."""
        self.wanted = True
        self._patch(True)

    def settle(self, *, keep: bool) -> None:
        """Stop looking for roots. ``keep``: the known ones go on ringing through hooks of their own."""
        self.wanted = False
        self._patch(False)
        for reference in self.roots if keep else ():
            module = reference()
            if module is not None:
                self._hook(module)

    def stop(self) -> None:
        """Take everything back."""
        self.wanted = False
        self._patch(False)
        for hook in self._hooks:
            hook()
        self._hooks.clear()

    def _make(self) -> Any:
        original = self._original
        bell = self

        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            if emit._compiling() or not bell._mine() or bell._has_no_parameters(self):
                return original(self, *args, **kwargs)
            return bell._ring(self, args, kwargs)

        __call__.__wrapped__ = original  # type: ignore[attr-defined]
        return __call__

    def _mine(self) -> bool:
        """Only the thread that called the first root: replicas of DataParallel run in others."""
        if not self.wanted or self._current is not None:
            return False
        return self._thread is None or self._thread == threading.get_ident()

    def _has_no_parameters(self, module: Any) -> bool:
        """Losses and image transforms are modules too, but no model."""
        try:
            empty = self._empty.get(module)
            if empty is None:
                empty = self._empty[module] = next(iter(module.parameters()), None) is None
        except Exception:  # a module may make its parameters as it likes
            return True
        return empty

    def _ring(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._thread = threading.get_ident()
        self._current = weakref.ref(module)
        if not any(reference() is module for reference in self.roots):
            self.roots.append(weakref.ref(module))
        self._ringing = True
        self._before(module, args)
        self._patch(False)
        try:
            output = self._original(module, *args, **kwargs)
            self._after(module)
            return output
        finally:
            self._current = None
            self._ringing = False
            if self.wanted:
                self._patch(True)

    def _patch(self, on: bool) -> None:
        self._class.__call__ = self._replacement if on else self._original
        if on:
            return
        # torch.compile keeps what it believes to be torch's own __call__, taken when it is first imported.
        for name in ("torch._dynamo.utils", "torch._dynamo.variables.nn_module"):
            dynamo = sys.modules.get(name)
            if getattr(dynamo, "unpatched_nn_module_call", None) is self._replacement:
                dynamo.unpatched_nn_module_call = self._original  # type: ignore[union-attr]

    def _hook(self, module: Any) -> None:
        compiled = getattr(module, "_compiled_call_impl", None)
        if compiled is not None:  # module.compile(): hooks would become part of the compiled code
            self._wrap_compiled(module, compiled)
            return
        extra = {"always_call": True} if torch_version(self.torch) >= (2, 1) else {}
        before = module.register_forward_pre_hook(self._pre_hook)
        after = module.register_forward_hook(self._post_hook, **extra)
        self._hooks += [before.remove, after.remove]

    def _wrap_compiled(self, module: Any, compiled: Any) -> None:
        def call(*args: Any, **kwargs: Any) -> Any:
            self._pre_hook(module, args)
            output = None
            try:
                output = compiled(*args, **kwargs)
            finally:
                self._post_hook(module, args, output)
            return output

        module._compiled_call_impl = call
        self._hooks.append(lambda: setattr(module, "_compiled_call_impl", compiled))

    def _pre_hook(self, module: Any, args: tuple[Any, ...]) -> None:
        if emit._compiling() or threading.get_ident() != self._thread:
            return
        current = self._current() if self._current is not None else None
        if current is None or (current is module and not self.wanted and not self._ringing):
            self._current = weakref.ref(module)
            self._before(module, args)

    def _post_hook(self, module: Any, args: Any, output: Any) -> None:
        if emit._compiling() or threading.get_ident() != self._thread or self._ringing:
            return
        if self._current is not None and self._current() is module:
            self._current = None
            if output is not None:
                self._after(module)
