"""Calls a constructor with other values of some of its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from inspect import Signature

    from .applied import Applied


def given(
    applied: Applied, signature: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any] | None:
    """The arguments by name, without those that have their default values.

    Args:
        applied: the change that asks.
        signature: of the constructor.
        args, kwargs: what the program gave, with the object itself as the first.

    Returns:
        None where the constructor does not take such arguments: it says so itself when it is called.
    """
    try:
        return dict(signature.bind(*args, **kwargs).arguments)
    except TypeError:
        return None
    except Exception as error:
        applied.failed(error)
        return None


def construct(
    applied: Applied,
    call: Callable[..., None],
    signature: Signature,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    values: dict[str, Any],
) -> bool:
    """Call a constructor with other values; with what the program gave where it refuses them.

    Args:
        applied: the change; it is told why the constructor refuses.
        call: the constructor, which must bear to be called again on the same object.
        signature: of the constructor.
        args, kwargs: what the program gave, with the object itself as the first.
        values: name of an argument -> the other value.

    Returns:
        Whether the object has the other values.

    Raises:
        Exception: what the constructor raises with the arguments that the program gave.
    """
    try:
        bound = signature.bind(*args, **kwargs)
        bound.arguments.update(values)
        call(*bound.args, **bound.kwargs)
        return True
    except Exception as error:
        applied.skip(f"{type(args[0]).__name__} does not take it: {error}")
    call(*args, **kwargs)  # outside of the except clause: its own error has nothing to do with ours
    return False
