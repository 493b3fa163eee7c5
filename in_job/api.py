"""``profrun.range`` and ``profrun.step`` as user code sees them: they do nothing while nobody records.

``import profrun`` and the shim of a job both hand out these functions; inside a job the hook sets ``hook``.
A range object holds only its name, so one object per name is made and reused, by any thread and nested in
itself; what is open lies on the sink's stacks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, TypeVar

if TYPE_CHECKING:
    from typing import Protocol

    class Sink(Protocol):
        """Where ranges go: one stack per thread."""

        def push(self, name: str) -> None: ...
        def pop(self, name: str) -> None: ...


F = TypeVar("F", bound=Callable[..., Any])

_CACHED = 4096  # names; a program that makes new names for ever must not make us grow
_cache: dict[str, Range] = {}


class Hook:
    """What the hook of this process does behind these functions; all None where there is no hook.

    The object ``hook`` is the only state of the in-job part that is global to a process: user code calls
    functions, and they must find the hook.

    Attributes:
        sink: where ranges go; None while nothing records ranges.
        on_step: called by ``step``.
        on_import: called when user code imports profrun.
    """

    __slots__ = ("on_import", "on_step", "sink")

    def __init__(self) -> None:
        self.sink: Sink | None = None
        self.on_step: Callable[[], None] | None = None
        self.on_import: Callable[[], None] | None = None


hook = Hook()


class Range:
    """A named region: ``with range("forward"): ...`` or ``@range("forward")``. Reusable and re-entrant."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> Range:
        sink = hook.sink
        if sink is not None:
            sink.push(self.name)
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        sink = hook.sink
        if sink is not None:
            sink.pop(self.name)

    def __call__(self, function: F) -> F:
        """Decorate a function (or coroutine function): each call is one range."""
        import functools
        import inspect

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def wrapped(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return await function(*args, **kwargs)

        else:

            @functools.wraps(function)
            def wrapped(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]


def range(name: str) -> Range:
    """A named region of the program, as context manager or decorator.

    In a profrun trial it reaches NVTX, ROCTX or torch.profiler, whichever records; elsewhere it does
    nothing (docs/in-job.md has the cost, below 200 ns). It needs neither torch nor a GPU.
    """
    try:
        return _cache[name]
    except KeyError:
        if len(_cache) >= _CACHED:
            _cache.clear()
        found = _cache[name] = Range(str(name))
        return found


def step() -> None:
    """Say that one step (iteration) of the program has ended. Wins over every other way to find steps."""
    if hook.on_step is not None:
        hook.on_step()


def imported() -> None:
    """Called when user code imports profrun or the shim: inside a job, the hook starts."""
    if hook.on_import is not None:
        hook.on_import()
