"""A finding in one line, and findings by severity."""

from __future__ import annotations

import pytest

from profrun.contract.finding import Finding, gravest_first


@pytest.mark.parametrize(
    ("why", "fix", "line"),
    [
        ("", "", "the disk is full"),
        ("1 GB is left", "", "the disk is full: 1 GB is left"),
        ("", "free some space", "the disk is full; free some space"),
        ("1 GB is left", "free some space", "the disk is full: 1 GB is left; free some space"),
    ],
)
def test_a_finding_is_one_line(why: str, fix: str, line: str) -> None:
    assert str(Finding("disk-full", "critical", "the disk is full", why, fix)) == line


def test_equally_grave_findings_keep_their_order() -> None:
    found = [
        Finding("a", "info", ""),
        Finding("b", "warning", ""),
        Finding("c", "critical", ""),
        Finding("d", "warning", ""),
    ]
    assert [one.code for one in gravest_first(found)] == ["c", "b", "d", "a"]
