"""Digests of lines: equal for the same text, whatever its indent; nothing for a blank."""

from __future__ import annotations

from profrun.contract.source_digests import digest, digests_of


def test_a_line_is_known_by_its_text() -> None:
    assert digest("    x = 1\n") == digest("x = 1  ") != digest("x = 2")
    assert len(digest("x = 1")) == 12
    assert digest(" \t\n") == ""


def test_a_file_has_a_digest_for_each_line() -> None:
    assert digests_of("a\n\n  a") == (digest("a"), "", digest("a"))
