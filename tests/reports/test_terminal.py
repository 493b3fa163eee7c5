"""What the terminal shows, word by word, at 80 columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.analysis.rules.diagnose import RuleFinding, diagnose
from profrun.analysis.trace.summary import summarize
from profrun.collectors.normalize import normalize
from profrun.reports.terminal import diagnose_text, summary_text
from profrun.reports.terminal_layout import Style
from profrun.traces.trace import Trace
from tests.conftest import ROOT
from tests.tracekit import make_trace

H200 = ROOT / "tests/data/h200/transformer/baseline-torch-r1/rank0/pt.trace.json.gz"
GRID = {"kernels.grid_y": 1, "kernels.grid_z": 1}
LAUNCH = {"parent": 0, "depth": 1}
ROWS = [
    ("step", "profrun.step#1", 0, 1_000_000, "main"),
    ("op", "aten::mm", 10_000, 50_000, "main", LAUNCH),
    ("api", "cudaLaunchKernel", 20_000, 5_000, "main", {"parent": 1, "depth": 2}),
    ("api", "cudaLaunchKernel", 30_000, 5_000, "main", {"parent": 1, "depth": 2}),
    (
        "kernel",
        "sgemm_64x64_nn",
        100_000,
        300_000,
        "stream 7",
        {"launch": 2, **GRID, "kernels.grid_x": 4, "kernels.est_occupancy": 0.5},
    ),
    (
        "kernel",
        "a_kernel_with_a_name_that_no_terminal_line_could_ever_hold",
        500_000,
        200_000,
        "stream 7",
        {"launch": 3, **GRID, "kernels.grid_x": 2, "kernels.est_occupancy": 0.25},
    ),
]

FINDINGS = [
    RuleFinding(
        code="overhead-bound",
        severity="critical",
        what="a step takes 20.82 ms on the host for 3.55 ms of GPU work",
        why="The GPU waits for work most of the time because launches take longer than kernels.",
        fix="Do more work per launch.",
        title="The host cannot keep the GPU busy",
        threshold="GPU work covers under 50 % of the steps",
        evidence={
            "gpu_busy_share": 0.1703,
            "gpu_busy_of": "time of steps",
            "step_ns": 20818933.6,
            "gpu_ns_per_step": 3546013.3,
            "launches_per_step": 362.0,
            "bytes": 98304,
            "names": [],
            "slices": [1, 2, 3, 4, 5],
            "same": True,
            "kernels": {"gemm": 51, "norm": 24},
        },
        quality=("window_edge",),
    ),
    RuleFinding("fine", "info", "nothing to see", "Nothing.", "None.", "All is well", "never"),
]


def test_the_summary_word_by_word(tmp_path: Path) -> None:
    with make_trace(tmp_path / "t", ROWS) as trace:
        text = summary_text(summarize(trace), Style(80))
    assert text + "\n" == (Path(__file__).parent / "summary-80.txt").read_text()


def test_the_diagnosis_word_by_word() -> None:
    text = diagnose_text(FINDINGS, Style(80))
    assert text + "\n" == (Path(__file__).parent / "diagnose-80.txt").read_text()


@pytest.mark.parametrize("width", [80, 100, 132])
def test_real_recordings_keep_to_the_width(tmp_path: Path, width: int) -> None:
    normalize([H200], tmp_path / "t")
    with Trace(tmp_path / "t") as trace:
        texts = [
            summary_text(summarize(trace, top=15), Style(width)),
            diagnose_text(diagnose(trace), Style(width)),
        ]
    for text in texts:
        assert max(map(len, text.splitlines())) <= width


def test_prose_stays_on_one_line_where_asked_and_colour_is_off_by_default() -> None:
    text = diagnose_text(FINDINGS, Style(80, wrap=False))
    assert "\x1b" not in text
    for finding in FINDINGS:
        assert any(finding.what in line for line in text.splitlines())
    assert "\x1b[" in diagnose_text(FINDINGS, Style(80, colour=True))
