"""JSON that is walked a value at a time."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.collectors.json_stream import JsonStream, Malformed, Truncated


def stream(text: str) -> JsonStream:
    """A cursor at the beginning of a text."""
    return JsonStream(io.BytesIO(text.encode()))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_a_value_comes_back(value: object) -> None:
    assert stream(json.dumps(value)).value() == value


def test_integers_stay_exact() -> None:
    assert stream(" 123456789012345678901234567890 ").value() == 123456789012345678901234567890


@pytest.mark.parametrize("text", ["", "  ", "[1, 2", '{"a": ', '"abc'])
def test_a_text_that_is_cut(text: str) -> None:
    with pytest.raises(Truncated):
        stream(text).value()


@pytest.mark.parametrize(
    "text", ["] and more behind it", "{1: 2, more behind it}", "[1 2, and more behind it]"]
)
def test_a_text_that_is_no_json(text: str) -> None:
    with pytest.raises(Malformed):
        stream(text).value()


def test_an_object_is_walked_key_by_key() -> None:
    cursor = stream('{"a": 1, "skipped": {"x": [1, 2]}, "list": [3, 4]}')
    found: dict[str, object] = {}
    for key in cursor.items():
        if key == "list":
            found[key] = [cursor.value() for _ in cursor.elements()]
        elif key == "skipped":
            cursor.skip()
        else:
            found[key] = cursor.value()
    assert found == {"a": 1, "list": [3, 4]}
