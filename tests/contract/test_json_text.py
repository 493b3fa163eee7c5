"""JSON of anybody: a value, or one kind of error."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.contract.json_text import MOST_DEPTH, JsonError, parse, read
from profrun.contract.safe_files import OddFileError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@pytest.mark.parametrize("text", ["[" * 200_000, "[" * 900 + "]" * 900, '{"a":' * 200_000])
def test_deep_nesting_is_an_error_like_any_other(text: str) -> None:
    with pytest.raises(JsonError, match="nested too deeply"):
        parse(text)


@pytest.mark.parametrize(
    "text", ["", "{", "NaN", "[-Infinity]", "1e999", b"\xff\xfe\x00", "9" * 5000, "\ud800"]
)
def test_what_is_no_document_is_refused(text: str | bytes) -> None:
    with pytest.raises(JsonError):
        parse(text)


@given(VALUES)
def test_what_json_writes_is_read(value: object) -> None:
    assert parse(json.dumps(value)) == value


@given(st.text() | st.binary())
def test_no_text_raises_another_error(text: str | bytes) -> None:
    with contextlib.suppress(JsonError):
        parse(text)


def test_a_document_of_the_deepest_nesting_is_read() -> None:
    assert parse("[" * MOST_DEPTH + "]" * MOST_DEPTH)
    with pytest.raises(JsonError):
        parse("[" * (MOST_DEPTH + 1) + "]" * (MOST_DEPTH + 1))


def test_a_file_has_a_bound(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("[1, 2]")
    assert read(tmp_path / "a") == [1, 2]
    with pytest.raises(OddFileError):
        read(tmp_path / "a", most=5)
