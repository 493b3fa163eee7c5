"""Escaping: whatever a name holds, it stays text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.reports.html import Html, data_script, el, esc
from tests.reports.documents import parse

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "a & b < c > d \" e ' f",
    "<!--",
    "]]>",
    "void k<float, (A)1>(T&&, char const*)",
    "\x00\x1b[31m",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_stays_text_in_elements_and_attributes(name: str) -> None:
    root = parse(el("p", name, title=name))
    (node,) = root.children
    shown = name.replace("\x00", " ").replace("\x1b", " ")
    assert not isinstance(node, str)
    assert (node.text, node.attributes["title"]) == (shown, shown)
    assert root.every("script") == root.every("img") == []


@given(st.text(max_size=60))
def test_any_text_comes_back(text: str) -> None:
    clean = "".join(char if char >= " " or char in "\n\t" else " " for char in text)
    assert parse(el("p", text)).every("p")[0].text == clean


@given(
    st.recursive(st.none() | st.integers() | st.text(), lambda one: st.lists(one, max_size=4), max_leaves=8)
)
def test_data_of_the_script_comes_back_and_ends_no_element(value: object) -> None:
    (node,) = parse(data_script("d", value)).every("script")
    assert json.loads(node.text) == value
    assert not set("<>&") & set(node.text)


def test_what_is_markup_is_not_escaped_twice() -> None:
    assert el("p", el("b", "x"), Html("<i>y</i>"), "<", None, [1, el("u")]) == (
        "<p><b>x</b><i>y</i>&lt;1<u></u></p>"
    )
    assert el("input", type="text", hidden=True, name=None, value=0) == '<input type="text" hidden value="0">'
    assert esc('"') == "&quot;"
