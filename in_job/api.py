"""``profrun.range`` and ``profrun.step`` as user code sees them: nothing at all while nobody records.

``import profrun`` and the shim of a job both hand out these functions; inside a job the hook plugs in
``_sink`` (where ranges go) and ``_on_step``. A range object holds only its name, so one object a name is
made and reused, by any thread and nested in itself; what is open lives on the sink's stacks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, TypeVar

if TYPE_CHECKING:
    from typing import Protocol

    class Sink(Protocol):
        """Where ranges go: one stack a thread."""

        def push(self, name: str) -> None: ...
        def pop(self, name: str) -> None: ...


F = TypeVar("F", bound=Callable[..., Any])

_CACHED = 4096  # names; a program that makes new names for ever must not make us grow
_cache: dict[str, Range] = {}
_sink: Sink | None = None
_on_step: Callable[[], None] | None = None
_on_import: Callable[[], None] | None = None


class Range:
    """A named region: ``with range("forward"): ...`` or ``@range("forward")``. Reusable and re-entrant."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> Range:
        if _sink is not None:
            _sink.push(self.name)
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if _sink is not None:
            _sink.pop(self.name)

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
    found = _cache.get(name)
    if found is None:
        if len(_cache) >= _CACHED:
            _cache.clear()
        found = _cache[name] = Range(str(name))
    return found


def step() -> None:
    """Say that one step (iteration) of the program has ended. Wins over every other way to find steps."""
    if _on_step is not None:
        _on_step()


def imported() -> None:
    """Called when user code imports profrun or the shim: inside a job, the hook wakes up."""
    if _on_import is not None:
        _on_import()
