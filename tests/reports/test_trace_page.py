"""The HTML report of a trace: its numbers are the summary's, doubts come first, cuts are said."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.analysis.sampled_runs import piecewise, read_counter, sampled_run
from tests.reports.documents import page
from tests.tracekit import make_trace


def test_an_empty_trace_has_a_report(tmp_path: Path) -> None:
    with make_trace(tmp_path / "t", []) as trace:
        document = page(trace)
    assert (
        "Not in this recording: GPUs, Course of the run, Steps, Timeline, Call tree, Kernels" in document.text
    )


def test_the_gpus_of_a_run_without_a_profiler_have_their_energy(tmp_path: Path) -> None:
    counter = read_counter(piecewise((-2000, 120), (0, 700), (10_000, 120)), np.arange(-1000, 12_000, 100.0))
    with sampled_run(tmp_path / "t", {0: {"energy": counter}}) as trace:
        text = page(trace).text
    assert "energy 70 J per step: 700 W over 100 steady steps" in text
    assert "Not in this recording: GPUs" not in text
