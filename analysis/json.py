"""From result dataclasses to plain JSON values: what every ``--json`` prints."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np


def to_json(value: Any) -> Any:
    """Plain dicts, lists, numbers and strings of a result: what ``--json`` prints.

    Dataclasses become dicts by field, tuples lists, numpy numbers Python's; NaN and infinities become None,
    for JSON has no such numbers.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: to_json(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_json(item) for item in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    if isinstance(value, np.generic):
        return to_json(value.item())
    if isinstance(value, float):
        return value if value - value == 0 else None
    return value
