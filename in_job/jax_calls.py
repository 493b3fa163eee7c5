"""Tells when functions of ``jax.jit`` are called.

A call of a jitted function that is compiled already runs no Python: jax has no hook, no callback and no
event there, and the type of these functions can be neither subclassed nor patched. So ``jax.jit`` hands out
the function in a cover that passes everything on: attributes (``lower``, ``trace``), binding as a method,
pickling, signature. Functions that jax jits for its own use are not covered.
"""

from __future__ import annotations

import functools
import sys
from types import MethodType
from typing import TYPE_CHECKING, Any, Callable

from .calls import same_thing

if TYPE_CHECKING:
    from types import ModuleType

    from .calls import CallWatch

Jitted = Any
"""What jax.jit returns for a function, ``jaxlib``'s PjitFunction."""


def watch_jit(jax: ModuleType, watch: CallWatch) -> None:
    """Tell of each call of a function that the program jits from now on, except while jax traces."""
    original: Any = getattr(jax, "jit", None)
    if original is None:
        return
    jitted = type(original(_nothing))
    tracing = _tracing()

    def cover(made: Any) -> Any:
        return _Cover(made, watch, tracing) if type(made) is jitted and not _is_jax_own(made) else made

    @functools.wraps(original)
    def jit(*args: Any, **kwargs: Any) -> Any:
        made = original(*args, **kwargs)
        if args or "fun" in kwargs:
            return cover(made)
        return lambda fun: cover(made(fun))  # jax.jit(static_argnums=0) is a decorator

    jax.jit = jit  # type: ignore[attr-defined]


class _Cover:
    """A jitted function that tells of its calls, and is the jitted function in everything else."""

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_profrun_inner",
        "_profrun_of",
        "_profrun_tracing",
        "_profrun_watch",
    )

    def __init__(self, inner: Jitted, watch: CallWatch, tracing: Callable[[], bool]) -> None:
        self.__dict__.update(inner.__dict__)  # __name__, __doc__, __module__, __wrapped__: inspect reads them
        self._profrun_inner = inner
        self._profrun_of = same_thing(inner, "__wrapped__", self)
        self._profrun_watch = watch
        self._profrun_tracing = tracing

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._profrun_tracing() or not self._profrun_watch.before("jit", self._profrun_of):
            return self._profrun_inner(*args, **kwargs)
        try:
            return self._profrun_inner(*args, **kwargs)
        finally:
            self._profrun_watch.after()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._profrun_inner, name)

    def __get__(self, instance: object, owner: object = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._profrun_inner)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._profrun_inner.__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return repr(self._profrun_inner)


def _nothing() -> None:
    """Is jitted to learn the type of jitted functions; never called."""


def _is_jax_own(made: Jitted) -> bool:
    return str(vars(made).get("__module__")).partition(".")[0] in ("jax", "jaxlib")


def _tracing() -> Callable[[], bool]:
    """Gives what tells whether jax makes a program of the calls now, rather than running them.

    Under ``grad`` and ``vmap`` outside of a jitted function the calls do run.
    """
    core = sys.modules.get("jax._src.core")
    context = getattr(core, "trace_ctx", None)
    staging = getattr(sys.modules.get("jax._src.interpreters.partial_eval"), "DynamicJaxprTrace", None)
    if context is not None and staging is not None and hasattr(context, "trace"):
        return lambda: isinstance(context.trace, staging)
    clean = getattr(core, "trace_state_clean", None)  # jax before 0.4.36
    return (lambda: not clean()) if clean is not None else (lambda: False)
