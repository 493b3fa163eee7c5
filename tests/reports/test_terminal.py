"""What the terminal shows, word by word, at 80 columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.diagnose import UnprofiledStep
from profrun.analysis.trace.summary import summarize
from profrun.collectors.normalize import normalize
from profrun.reports.terminal import summary_text
from profrun.reports.terminal_layout import Style
from profrun.traces.trace import Trace
from tests.analysis.kit import memory_trace
from tests.analysis.sampled import World, wandering
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


def test_the_summary_word_by_word(tmp_path: Path) -> None:
    with make_trace(tmp_path / "t", ROWS) as trace:
        text = summary_text(summarize(trace), Style(80))
    assert text + "\n" == (Path(__file__).parent / "summary-80.txt").read_text()


@pytest.mark.parametrize("width", [80, 100, 132])
def test_real_recordings_keep_to_the_width(tmp_path: Path, width: int) -> None:
    normalize([H200], tmp_path / "t")
    with Trace(tmp_path / "t") as trace:
        text = summary_text(summarize(trace, top=15), Style(width))
    assert max(map(len, text.splitlines())) <= width


def test_the_summary_of_a_run_without_steps(tmp_path: Path) -> None:
    """The same work inside of one run: counts and times are of the run, and there is no table of steps."""
    run = ("step", "profrun.run", 0, 1_000_000, "main")
    with make_trace(tmp_path / "t", [run, *ROWS[1:]]) as trace:
        found, cost = summarize(trace), Context(trace).cost
        text = summary_text(found, Style(80), cost=cost)
    assert found.to_json()["denominator"] == {"of": "run", "cut_ns": None}
    assert "run 1 ms under torch; no steps were found, so the whole run counts as one" in text
    assert "kernels run 50.0 % of 1 ms (the run)" in text
    assert "kernels of the run" in text
    assert "operators of the run" in text
    assert "step" not in text.replace("no steps were found", "")


def test_the_summary_of_a_run_whose_recording_was_cut(tmp_path: Path) -> None:
    run = ("step", "profrun.run", 0, 1_000_000, "main")
    with make_trace(tmp_path / "t", [run, *ROWS[1:]], meta={"job": {"cut": True}}) as trace:
        text = summary_text(summarize(trace), Style(80), cost=Context(trace).cost)
    assert "first 1 ms of the run 1 ms under torch" in text
    assert "kernels of the first 1 ms of the run" in text


@pytest.mark.parametrize(
    ("median_us", "mean_us", "said"),
    [
        (800, 800, "GPU work 500 us per step: about 62.5 % of the unprofiled 800 us step"),
        (450, 700, "GPU work 500 us per step: longer than the unprofiled 450 us step (a median; 700 us on "),
        (450, 450, "GPU work 500 us per step: longer than the unprofiled 450 us step\n"),
    ],
)
def test_gpu_work_is_no_more_than_all_of_a_step(
    tmp_path: Path, median_us: int, mean_us: int, said: str
) -> None:
    median, mean = 1000 * median_us, 1000 * mean_us
    step = UnprofiledStep(median, median, median, trials=3, steps=15, clock="cuda_event", mean_ns=mean)
    with make_trace(tmp_path / "t", ROWS) as trace:
        text = summary_text(summarize(trace), Style(100), cost=Context(trace, unprofiled=step).cost)
    assert said in text


def sampled_summary(world: World, *, verbose: bool = False) -> str:
    trace = memory_trace([], meta={"collector": "none"}, side=world.side())
    return summary_text(summarize(trace), verbose=verbose)


def test_a_scatter_that_somebody_would_ask_about_has_a_line() -> None:
    text = sampled_summary(World(clock=wandering(201, 900, 1000)))
    (line,) = [line for line in text.splitlines() if line.startswith("step times vary by ")]
    assert "steps after warm-up): 9" in line
    assert "of the variance goes with the SM clock" in line


def test_a_small_scatter_has_none_and_a_refusal_is_told_on_request() -> None:
    assert "vary" not in sampled_summary(World(noise=0.001))
    assert "vary" not in sampled_summary(World(seconds=0.5))
    assert "why steps after warm-up vary is not told: at least 50 steps" in sampled_summary(
        World(seconds=0.5), verbose=True
    )


def run_steps(*durs_us: int) -> dict[str, list[dict[str, object]]]:
    """Steps of a whole run, without gaps; step 1 is recorded."""
    rows: list[dict[str, object]] = []
    at = 0
    for step, dur in enumerate(durs_us):
        row = {"process": 0, "step": step, "ts_ns": at, "dur_ns": 1000 * dur, "clock": "wall"}
        rows.append({**row, "part": "active" if step == 1 else "outside"})
        at += 1000 * dur
    return {"step_times": rows}


def test_the_summary_says_where_the_window_lies(tmp_path: Path) -> None:
    side = run_steps(*[2940] * 18, *[3420] * 200)
    with make_trace(tmp_path / "t", ROWS, side=side) as trace:
        found = summarize(trace)
        lines = summary_text(found, Style(80)).splitlines()
    place = lines.index("the window lies in phase 1 of 2 (steps 0-17, 2.94 ms per step); the steady phase")
    assert lines[place + 1].strip() == "is phase 2 (steps 18-217, 3.42 ms per step, 16.3 % slower)"
    document = found.to_json()
    assert [(phase["first_step"], phase["last_step"]) for phase in document["phases"]] == [(0, 17), (18, 217)]
    assert document["window"]["steady"] == 2


def test_the_summary_of_a_steady_run_has_no_word_on_phases(tmp_path: Path) -> None:
    with make_trace(tmp_path / "t", ROWS, side=run_steps(*[3000] * 100)) as trace:
        found = summarize(trace)
        assert "phase" not in summary_text(found, Style(80))
    assert (len(found.phases), found.window) == (1, None)
