"""Doubtful numbers are marked, wrong ones withheld."""

from __future__ import annotations

from pathlib import Path

from tests.reports.documents import page
from tests.tracekit import make_trace


def test_doubtful_numbers_are_marked_and_wrong_ones_withheld(tmp_path: Path) -> None:
    rows = [
        ("step", "profrun.step#1", 0, 1000, "main"),
        ("api", "cudaLaunchKernel", 10, 5, "main", {"parent": 0, "depth": 1}),
        ("kernel", "k", 100, 300, "stream 7", {"launch": 1}),
    ]
    with make_trace(tmp_path / "wrong", rows) as trace:  # no grid: no SM efficiency
        document = page(trace)
    tiles = {dd.attributes["data-number"]: dd.text for dd in document.every("dd", class_="big")}
    assert tiles["devices.est_sm_efficiency"] == "withheld"
    assert tiles["devices.utilization"] != "withheld"
    (trust,) = document.every("div", id="t0-integrity")
    assert trust.every("b")[0].text == "critical"
    assert "withheld: " in trust.text
    with make_trace(tmp_path / "replayed", rows, meta={"replayed": True}) as trace:
        document = page(trace)
    tiles = {dd.attributes["data-number"]: dd.text for dd in document.every("dd", class_="big")}
    assert tiles["devices.utilization"] == "withheld"
    assert "16.7" not in document.text
