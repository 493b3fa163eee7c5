"""The evidence of a finding as text."""

from __future__ import annotations

import pytest

from profrun.reports.evidence import evidence_lines, evidence_text


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [("chains", 480, "480"), ("total_ns", 480, "480 ns"), ("gpu_ns_per_step", 480, "480 ns")],
)
def test_a_count_is_no_time(name: str, value: int, text: str) -> None:
    assert evidence_text(name, value) == text


def test_evidence_has_its_unit() -> None:
    assert evidence_lines({"gb_s": 23.966, "total_ns": 9_391_000, "share": 0.5, "share_of": "all"}) == [
        ("rate", "24 GB/s"),
        ("total", "9.391 ms"),
        ("share", "50.0 % of all"),
    ]
