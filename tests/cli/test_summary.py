"""`summary --json` is for programs: nothing is cut unless it is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.reports.evidence import evidence_text
from tests.cli.running import call
from tests.tracekit import make_trace


def test_json_has_every_row_and_the_text_says_what_it_leaves_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_trace(tmp_path / "t", [("kernel", f"k{n:02}", 10 * n, 5, "stream 7") for n in range(20)])
    found = call(capsys, "summary", tmp_path / "t", "--json").json
    assert (len(found["kernels"]), found["omitted"]) == (20, {})
    assert sum(row["total_ns"] for row in found["kernels"]) == found["devices"][0]["total_kernel_ns"] == 100
    cut = call(capsys, "summary", tmp_path / "t", "--json", "--top", 3).json
    assert (len(cut["kernels"]), cut["omitted"]) == (3, {"kernels": 17})
    assert "5 more" in call(capsys, "summary", tmp_path / "t").out


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [("chains", 480, "480"), ("total_ns", 480, "480 ns"), ("gpu_ns_per_step", 480, "480 ns")],
)
def test_a_count_is_no_time(name: str, value: int, text: str) -> None:
    assert evidence_text(name, value) == text
