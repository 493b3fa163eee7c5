"""Dataclasses to JSON values and back, driven by the annotations of their fields. Standard library, Python
3.9.

The documents that pass between the runner and the job (``command.json``, ``exit.json``, ``steps.json``,
``provenance.json``, the hook's orders) are dataclasses of this room; these two functions are their only
spelling. A field may be: str, int, float, bool, None, ``object`` (any JSON value), a Literal, a dataclass,
``tuple[X, ...]``, ``list[X]``, ``dict[str, X]`` or ``Mapping[str, X]`` of these, or several with ``|``.
"""

from __future__ import annotations

import dataclasses
import sys
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


class DocumentError(ValueError):
    """A JSON document is not what its dataclass says; the message names the field."""


def to_json(value: object, *, given: bool = False) -> Any:
    """JSON-safe values: dataclasses become dicts by field, tuples become lists; the rest stays as it is.

    Args:
        given: leave out the fields of dataclasses that are None: keep what somebody has really set.
    """
    if dataclasses.is_dataclass(value):
        items = ((item.name, getattr(value, item.name)) for item in dataclasses.fields(value))
        return {name: to_json(item, given=given) for name, item in items if not (given and item is None)}
    if isinstance(value, Mapping):
        return {str(key): to_json(item, given=given) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item, given=given) for item in value]
    return value


def given_json(value: object) -> dict[str, Any]:
    """As ``to_json`` of a dataclass, without the fields that are None: what somebody has really set."""
    found: dict[str, Any] = to_json(value, given=True)
    return found


def from_json(cls: type[T], data: object, at: str = "") -> T:
    """A dataclass from what ``to_json`` gave. Unknown keys are ignored: a newer profrun may have written
    them.

    Args:
        cls: the dataclass.
        data: parsed JSON.
        at: where in the document this is, for messages.

    Raises:
        DocumentError: ``data`` is no object, a field without default is missing, or a value has another type.
    """
    if not isinstance(data, Mapping):
        raise DocumentError(f"{at or cls.__name__} is no JSON object")
    values: dict[str, Any] = {}
    kind: Any = cls
    for item in dataclasses.fields(cls):  # type: ignore[arg-type]
        where = f"{at}.{item.name}" if at else item.name
        if item.name in data:
            values[item.name] = _read(_alternatives(kind, item.name), data[item.name], where)
        elif item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING:
            raise DocumentError(f"{where} is missing")
    return cls(**values)


@cache
def _alternatives(cls: Any, name: str) -> tuple[Any, ...]:
    """The types that a field may have. ``X | Y`` is split as text: Python 3.9 cannot evaluate it."""
    for parent in cls.__mro__:
        text = vars(parent).get("__annotations__", {}).get(name)  # inherited fields keep their own module
        if text is not None:
            space = {**vars(typing), **vars(sys.modules[parent.__module__]), "Mapping": Mapping}
            return tuple(eval(part, space) for part in str(text).split(" | "))
    raise TypeError(f"{cls.__name__} has no field {name}")


def _read(wanted: tuple[Any, ...], value: Any, at: str) -> Any:
    problem: DocumentError | None = None
    for kind in wanted:
        try:
            return _read_one(kind, value, at)
        except DocumentError as error:
            problem = error
    raise problem or DocumentError(f"{at} has no type")


def _read_one(kind: Any, value: Any, at: str) -> Any:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind in (object, Any):
        return value
    if kind is None:
        fits = value is None
    elif origin is typing.Literal:
        fits = value in inner
    elif dataclasses.is_dataclass(kind):
        return from_json(kind, value, at)  # type: ignore[arg-type]
    elif origin in (tuple, list):
        if not isinstance(value, (list, tuple)):
            raise DocumentError(f"{at} is no list")
        return origin(_read((inner[0],), item, f"{at}[{place}]") for place, item in enumerate(value))
    elif origin in (dict, Mapping):
        if not isinstance(value, Mapping):
            raise DocumentError(f"{at} is no JSON object")
        return {str(key): _read((inner[1],), item, f"{at}.{key}") for key, item in value.items()}
    elif kind is float:
        fits = isinstance(value, (int, float)) and not isinstance(value, bool)
        value = float(value) if fits else value
    elif kind is int:
        fits = isinstance(value, int) and not isinstance(value, bool)
    else:
        fits = isinstance(value, kind)
    if not fits:
        raise DocumentError(f"{at} is {value!r:.60}")
    return value
