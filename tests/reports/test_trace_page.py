"""The HTML report of a trace: its numbers are the summary's, doubts come first, cuts are said."""

from __future__ import annotations

from pathlib import Path

from tests.reports.documents import page
from tests.tracekit import make_trace


def test_an_empty_trace_has_a_report(tmp_path: Path) -> None:
    with make_trace(tmp_path / "t", []) as trace:
        document = page(trace)
    assert (
        "Not in this recording: GPUs, Course of the run, Steps, Timeline, Call tree, Kernels" in document.text
    )
