"""Nothing that a terminal obeys comes out of the layout, wherever a name stands."""

from __future__ import annotations

import re

import pytest

from profrun.reports.controls import visible, visible_lines
from profrun.reports.terminal_layout import Command, Part, Prose, Style, Table, Toned, lay_out

EVIL = "k_\x1b]0;pwn\x07\x1b[2J\r\n\t\x9b31m\u202e\u2066\ud800\x7f"
SEEN = "k_\\x1b]0;pwn\\x07\\x1b[2J\\r\\n\\t\\x9b31m\\u202e\\u2066\\ud800\\x7f"
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.mark.parametrize("text", ["gemm", "ü, ×, 名", "a\N{NO-BREAK SPACE}b", ""])
def test_text_stays_as_it_is(text: str) -> None:
    assert visible(text) == text
    assert visible_lines(text) == text


def test_controls_are_shown_as_escapes() -> None:
    assert visible(EVIL) == SEEN


def test_lines_of_a_program_keep_breaks_tabs_and_colours() -> None:
    assert visible_lines("a\tb\n\x1b[1;31mred\x1b[0m") == "a\tb\n\x1b[1;31mred\x1b[0m"
    assert visible_lines("\x1b]0;pwn\x07\x1b[2J\r") == "\\x1b]0;pwn\\x07\\x1b[2J\\r"


@pytest.mark.parametrize("width", [None, 40])
def test_every_part_of_a_layout_shows_them(width: int | None) -> None:
    toned = Toned(EVIL, "bad")
    parts: list[Part] = [
        EVIL,
        Prose(EVIL, EVIL, toned=(toned,)),
        Command(EVIL, EVIL),
        Table((EVIL, "n"), [(toned, 1)]),
    ]
    plain, coloured = (lay_out(parts, Style(width, colour=colour)) for colour in (False, True))
    assert not OBEYED.search(plain)
    assert not OBEYED.search(re.sub(r"\x1b\[[0-9;]*m", "", coloured))
    assert len(plain.splitlines()) == len(coloured.splitlines())
