"""Tensors in any nest of tuples, lists and mappings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Callable

if TYPE_CHECKING:
    from ..torch_types import Values


def mapped(value: Values, change: Callable[[Values], Values]) -> Values:
    """The same nest with other values in it; the very same object where none of them changes.

    Containers keep their type: named tuples, and classes that are mappings, such as the outputs of models of
    ``transformers``. What is in objects of other classes is left as it is.

    Args:
        value: anything.
        change: gives for what is no container the value that takes its place.
    """
    if isinstance(value, (tuple, list)):
        items = [mapped(item, change) for item in value]
        if all(new is old for new, old in zip(items, value)):
            return value
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, Mapping):
        pairs = {key: mapped(item, change) for key, item in value.items()}
        if all(pairs[key] is value[key] for key in pairs):
            return value
        return type(value)(pairs)  # type: ignore[call-arg]
    return change(value)
