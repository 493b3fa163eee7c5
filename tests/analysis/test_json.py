"""Results as plain JSON values."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import numpy as np
import pytest

from profrun.analysis.json import to_json


@dataclass(frozen=True)
class Row:
    """A result with a field of every kind."""

    name: str
    sizes: tuple[int, ...]
    share: float | None


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Row("a", (1, 2), 0.5), {"name": "a", "sizes": [1, 2], "share": 0.5}),
        ([Row("a", (), None)], [{"name": "a", "sizes": [], "share": None}]),
        ({1: np.int64(7)}, {"1": 7}),
        (np.float32(0.5), 0.5),
        (math.nan, None),
        ((math.inf, -math.inf, np.float64("nan")), [None, None, None]),
        (frozenset({"b", "a"}), ["a", "b"]),
    ],
)
def test_a_value_becomes_plain(value: object, plain: object) -> None:
    found = to_json(value)
    assert found == plain
    assert json.loads(json.dumps(found, allow_nan=False)) == plain
