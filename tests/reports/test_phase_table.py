"""The phases of a run in the page of a trace."""

from __future__ import annotations

from pathlib import Path

from profrun.analysis.trace.summary import summarize
from profrun.reports.phase_table import phase_bands
from tests.reports.documents import page, rows_of
from tests.tracekit import make_trace

STEP = ("step", "profrun.step#1", 0, 1_000_000, "main")


def side(*durs_us: int) -> dict[str, list[dict[str, object]]]:
    rows: list[dict[str, object]] = []
    at = 0
    for step, dur in enumerate(durs_us):
        row = {"process": 0, "step": step, "ts_ns": at, "dur_ns": 1000 * dur, "clock": "wall"}
        rows.append({**row, "part": "active" if step == 5 else "outside"})
        at += 1000 * dur
    return {"step_times": rows}


def test_a_row_per_phase(tmp_path: Path) -> None:
    trace = make_trace(tmp_path / "t", [STEP], side=side(60_000, *[2940] * 18, *[3420] * 200))
    (section,) = page(trace).every("section", id="t0-steps")
    (told,) = [one.text for one in section.every("p") if "phase" in one.text]
    assert told.startswith("The window lies in phase 2 of 3 (steps 1-18, 2.94 ms per step); the steady phase")
    rows = rows_of(section, "phases")
    assert [(row[0], row[1], row[-1]) for row in rows] == [
        ("1", "0 to 0", "warm-up"),
        ("2", "1 to 18", "the window"),
        ("3", "19 to 218", "the steady phase"),
    ]


def test_the_phases_are_bands_of_the_figure_over_the_run(tmp_path: Path) -> None:
    trace = make_trace(tmp_path / "t", [STEP], side=side(*[3000] * 20, *[4000] * 80))
    assert phase_bands(summarize(trace)) == [
        (0, 60_000_000, "phase 1: 3 ms, recorded"),
        (60_000_000, 380_000_000, "phase 2: 4 ms"),
    ]
    (figure,) = page(trace).every("section", id="t0-run")
    assert [band.text for band in figure.every("rect") if band.text.startswith("phase")] == [
        "phase 1: 3 ms, recorded",
        "phase 2: 4 ms",
    ]


def test_a_steady_run_has_no_such_table(tmp_path: Path) -> None:
    trace = make_trace(tmp_path / "t", [STEP], side=side(*[3000] * 50))
    assert "phase" not in page(trace).every("section", id="t0-steps")[0].text
