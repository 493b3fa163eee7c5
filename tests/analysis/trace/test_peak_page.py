"""The page of peaks is made from the table."""

from __future__ import annotations

from profrun.analysis.trace.peak_page import page
from profrun.analysis.trace.peaks import NOT_CONFIRMED, table
from tests.conftest import ROOT


def test_the_page_of_peaks_is_made_from_the_table() -> None:
    assert page() == (ROOT / "docs/peaks.md").read_text(encoding="utf-8"), (
        "run `python -m profrun.analysis.trace.peak_page docs`"
    )
    assert all(gpu.confirmed for gpu in table().values())
    assert NOT_CONFIRMED in page()
