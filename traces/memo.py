"""``memoised``: a function computes its result once for an object, and the object keeps it.

Many questions about a trace need the same columns and indices. A memoised function stores its result in the
``memo`` of its first argument, so the result lives exactly as long as the trace, and no table of traces
exists.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Concatenate, ParamSpec, Protocol, TypeVar, cast


class Memo:
    """Results of memoised functions for one object, by function and arguments."""

    def __init__(self) -> None:
        self.results: dict[tuple[object, ...], object] = {}


class HasMemo(Protocol):
    """An object that keeps results of memoised functions."""

    @property
    def memo(self) -> Memo:
        """Where the results are kept."""


Owner = TypeVar("Owner", bound=HasMemo)
Rest = ParamSpec("Rest")
Result = TypeVar("Result")


def memoised(
    compute: Callable[Concatenate[Owner, Rest], Result],
) -> Callable[Concatenate[Owner, Rest], Result]:
    """Decorate a function or method so that it runs once for each first argument and set of other arguments.

    Args:
        compute: its first argument keeps the results; all other arguments are hashable. Every caller gets the
            same result object and must not change it.
    """

    form = signature(compute)

    @wraps(compute)
    def answer(owner: Owner, /, *args: Rest.args, **kwargs: Rest.kwargs) -> Result:
        asked = form.bind(owner, *args, **kwargs)
        asked.apply_defaults()  # f(x) and f(x, "the default") are one question
        key = (compute, *tuple(asked.arguments.values())[1:])
        results = owner.memo.results
        if key not in results:
            results[key] = compute(owner, *args, **kwargs)
        return cast("Result", results[key])

    return answer


def seeded(function: Callable[[Owner], Result], owner: Owner, result: Result) -> None:
    """Give an object the result of a memoised function, so that it is not computed.

    Args:
        function: memoised, without further arguments.
    """
    owner.memo.results[(function.__wrapped__,)] = result  # type: ignore[attr-defined]
