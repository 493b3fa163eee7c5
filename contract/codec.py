"""Dataclasses to JSON values and back, driven by the annotations of their fields. Standard library, Python
3.9.

The documents that pass between the runner and the job (``command.json``, ``exit.json``, ``steps.json``,
``provenance.json``, the hook's orders) are dataclasses of this room; these two functions are their only
spelling. A field may be: str, int, float, bool, None, ``object`` (any JSON value), a Literal, a dataclass,
``tuple[X, ...]``, ``list[X]``, ``dict[str, X]`` or ``Mapping[str, X]`` of these, or several with ``|``.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, Callable, TypeVar

T = TypeVar("T")
Reader = Callable[[Any], Any]
"""From a JSON value to the value of a field; raises ``DocumentError`` for one of another type."""

_SCALARS = frozenset({str, int, float, bool, type(None)})
INT64 = 1 << 63
"""Whole numbers of documents (times in ns, counts, bytes) are of 64 bits: from -INT64 to INT64 - 1."""


class DocumentError(ValueError):
    """A JSON document is not what its dataclass says; the message names the field.

    Args:
        what: what is wrong, like ``is missing``.
        at: the field, like ``steps[3].dur_ns``.
    """

    def __init__(self, what: str, at: str = "") -> None:
        super().__init__(f"{at} {what}".strip())
        self.what = what
        self.at = at

    def inside(self, outer: str) -> DocumentError:
        """The same error, seen from the field ``outer`` that holds this one."""
        dot = "." if self.at and not self.at.startswith("[") else ""
        return DocumentError(self.what, f"{outer}{dot}{self.at}")


def to_json(value: object, *, given: bool = False) -> Any:
    """JSON-safe values: dataclasses become dicts by field, tuples become lists; the rest stays as it is.

    Args:
        given: leave out the fields of dataclasses that are None: keep what somebody has really set.
    """
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is list or kind is tuple:
        return [to_json(item, given=given) for item in value]  # type: ignore[attr-defined]
    if dataclasses.is_dataclass(kind):
        items = [(name, getattr(value, name)) for name in _names(kind)]
        return {
            _key(name): to_json(item, given=given) for name, item in items if not (given and item is None)
        }
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
        DocumentError: ``data`` is no object, a field without default is missing, or a value has another type
            or is no int64.
    """
    try:
        found: T = _dataclass_reader(typing.cast("Any", cls))(data)
    except DocumentError as error:
        raise (error.inside(at) if at else error) from None
    return found


@cache
def _names(cls: type) -> tuple[str, ...]:
    return tuple(item.name for item in dataclasses.fields(cls))


def _key(name: str) -> str:
    """The key of a field: ``as_`` is spelled so only because ``as`` is a word of Python's."""
    return name.rstrip("_")


@cache
def _dataclass_reader(cls: Any) -> Reader:
    readers = {name: _field_reader(cls, name) for name in _names(cls)}
    required = [
        item.name
        for item in dataclasses.fields(cls)
        if item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
    ]

    def read(data: Any) -> Any:
        if not isinstance(data, Mapping):
            raise DocumentError(f"{cls.__name__} is no JSON object")
        values = {}
        for name, reader in readers.items():
            key = _key(name)
            if key in data:
                try:
                    values[name] = reader(data[key])
                except DocumentError as error:
                    raise error.inside(key) from None
        for name in required:
            if name not in values:
                raise DocumentError("is missing", name)
        return cls(**values)

    return read


def _field_reader(cls: Any, name: str) -> Reader:
    """Reads a field. Its type ``X | Y`` is split as text: Python 3.9 cannot evaluate it. Inside of another
    type, as in a tuple of numbers or None, write a name for ``Optional[X]``."""
    for parent in cls.__mro__:
        type_ = own_annotations(parent).get(name)  # inherited fields keep their own module
        if isinstance(type_, str):
            space = {**vars(typing), **vars(sys.modules[parent.__module__]), "Mapping": Mapping}
            return _any_of([eval(part, space) for part in type_.split(" | ")])
        if type_ is not None:
            return _reader(type_)
    raise TypeError(f"{cls.__name__} has no field {name}")


_UNIONS = (typing.Union, getattr(types, "UnionType", typing.Union))  # Python 3.9 has no X | Y


def own_annotations(cls: type) -> dict[str, Any]:
    """The annotations that a class itself has, without those of its parents.

    Python 3.14 makes them only when they are asked for (PEP 649): the class's dictionary need not have them.
    """
    if sys.version_info >= (3, 10):
        return inspect.get_annotations(cls)
    return dict(vars(cls).get("__annotations__", {}))


def _any_of(kinds: list[Any]) -> Reader:
    readers = [_reader(kind) for kind in kinds if kind is not None]
    if len(readers) == len(kinds) == 1:
        return readers[0]

    def read(value: Any) -> Any:
        if value is None and None in kinds:
            return None
        for reader in readers[:-1]:
            try:
                return reader(value)
            except DocumentError:
                continue
        return readers[-1](value)

    return read


def _reader(kind: Any) -> Reader:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind in (object, Any):
        return lambda value: value
    if origin in _UNIONS:
        return _any_of([None if one is type(None) else one for one in inner])
    if dataclasses.is_dataclass(kind):
        return _dataclass_reader(typing.cast("Any", kind))
    if origin in (tuple, list):
        return _list_reader(origin, _reader(inner[0]))
    if origin in (dict, Mapping):
        return _mapping_reader(_reader(inner[1]))
    if origin is typing.Literal:
        return _checked(lambda value: value in inner)
    if kind is float:
        number = _checked(lambda value: isinstance(value, (int, float)) and not isinstance(value, bool))
        return lambda value: value if type(value) is float else _as_float(number(value))
    if kind is int:
        return _checked(lambda value: type(value) is int and -INT64 <= value < INT64)
    if kind in _SCALARS:
        return _checked(lambda value: type(value) is kind)
    return _checked(lambda value: isinstance(value, kind))


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise DocumentError(f"is {_shown(value)}") from None


def _shown(value: object) -> str:
    """A value in at most 60 characters. Of one of millions of items only the first few are looked at."""
    import reprlib  # only now: every Python process of a job loads this module

    try:
        return f"{reprlib.repr(value):.60}"
    except (RecursionError, ValueError):  # an integer of more digits than Python prints
        return f"a {type(value).__name__}"


def _checked(fits: Callable[[Any], bool]) -> Reader:
    def read(value: Any) -> Any:
        if not fits(value):
            raise DocumentError(f"is {_shown(value)}")
        return value

    return read


def _list_reader(make: Callable[[list[Any]], Any], item_reader: Reader) -> Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            raise DocumentError("is no list")
        found: list[Any] = []
        try:
            for item in value:
                found.append(item_reader(item))
        except DocumentError as error:
            raise error.inside(f"[{len(found)}]") from None
        return make(found)

    return read


def _mapping_reader(value_reader: Reader) -> Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise DocumentError("is no JSON object")
        found = {}
        for key, item in value.items():
            try:
                found[str(key)] = value_reader(item)
            except DocumentError as error:
                raise error.inside(str(key)) from None
        return found

    return read
