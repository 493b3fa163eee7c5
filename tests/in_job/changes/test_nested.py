"""Values in nests: containers keep their type, and what does not change is the same object."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

from profrun.in_job.changes.nested import mapped


class Pair(NamedTuple):
    left: Any
    right: Any


class Output(OrderedDict[str, Any]):
    """As the outputs of transformers."""


def doubled(value: Any) -> Any:
    return value * 2 if isinstance(value, float) else value


def test_containers_keep_their_type() -> None:
    value = Output(a=1.0, b=[Pair(2.0, "x"), (3.0, None)])
    found = mapped(value, doubled)
    assert type(found) is Output
    assert found == {"a": 2.0, "b": [(4.0, "x"), (6.0, None)]}
    assert type(found["b"][0]) is Pair
    assert value["a"] == 1.0


def test_what_does_not_change_is_the_same_object() -> None:
    value = {"a": [1, (2, "x")], "b": 1.5}
    found = mapped(value, doubled)
    assert found["a"] is value["a"]
    assert mapped(value["a"], doubled) is value["a"]
