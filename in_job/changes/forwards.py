"""Puts code round the forward of a module: ``Around``, and ``RootChange``, a change of root modules."""

from __future__ import annotations

import copy
import functools
import weakref
from typing import TYPE_CHECKING, Any, Callable

from ...contract.units import counted
from .applied import Applied

if TYPE_CHECKING:
    from ...contract.changes import Change
    from ..hook_process import HookProcess
    from ..torch_types import Module, Values


class Around:
    """Stands in the place of a module's ``forward``, or of its compiled call, and calls that.

    It has the signature of what it calls. A copy of the module, and a module that is saved and loaded, have
    what it calls and not this: they are modules of their own, and a saved one must not need profrun.

    Attributes:
        inner: what it calls.
    """

    def __init__(self, inner: Callable[..., Values]) -> None:
        functools.update_wrapper(self, inner)
        self.inner = inner

    def __call__(self, *args: Values, **kwargs: Values) -> Values:
        """Call what stood here before."""
        return self.inner(*args, **kwargs)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return copy.deepcopy(self.inner, memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.inner.__reduce_ex__(protocol)


def put_around(module: Module, make: Callable[[Callable[..., Values]], Around]) -> None:
    """Put code round each call of a module: round its compiled call, where ``module.compile()`` made one.

    Args:
        module: a torch.nn.Module.
        make: makes the code of what stands there.
    """
    is_compiled = getattr(module, "_compiled_call_impl", None) is not None
    name = "_compiled_call_impl" if is_compiled else "forward"
    # Not setattr: the module of torch.compile passes it on to the module inside.
    module.__dict__[name] = make(getattr(module, name))


class RootChange(Applied):
    """A change of root modules: each is changed once, before its first call."""

    nothing = "the program called no module with parameters"
    verb = ""
    """What was done, behind "1 root module (Net)"."""

    def __init__(self, change: Change, process: HookProcess) -> None:
        super().__init__(change, process)
        self._seen: list[weakref.ref[Module]] = []
        self._names: dict[str, None] = {}

    def root_called(self, module: Module, args: tuple[Values, ...], kwargs: dict[str, Values]) -> None:
        """See ``Applied.root_called``."""
        if any(reference() is module for reference in self._seen):
            return
        self._seen.append(weakref.ref(module))
        why = self.make(module, args, kwargs)
        if why is None:
            self.count += 1
            self._names[type(module).__name__] = None
        else:
            self.skip(f"{type(module).__name__}: {why}")

    def make(self, module: Module, args: tuple[Values, ...], kwargs: dict[str, Values]) -> str | None:
        """Change a root module.

        Args:
            module: the root module.
            args, kwargs: of its first call.

        Returns:
            None, or why it was left as it is.
        """
        raise NotImplementedError

    def told(self) -> str:
        """See ``Applied.told``."""
        return f"{counted(self.count, 'root module')} ({', '.join(self._names)}) {self.verb}"
