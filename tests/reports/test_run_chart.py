"""The figure of the course of a run: what is drawn, and what its caption says."""

from __future__ import annotations

import numpy as np

from profrun.analysis.trace.readings import Readings
from profrun.analysis.trace.run_course import CourseLine, RunCourse, Slowed
from profrun.analysis.trace.run_steps import RunSteps
from profrun.reports.run_chart import STRETCHES, run_chart
from tests.reports.documents import Node, parse

MS = 1_000_000


def course(durs: list[int], recorded: range = range(0), **more: tuple[CourseLine | Slowed, ...]) -> RunCourse:
    """Steps of these durations, one after the other; those of ``recorded`` under a profiler."""
    length = np.array(durs, dtype=np.int64)
    window = np.isin(np.arange(len(durs)), recorded)
    numbers, starts = np.arange(len(durs), dtype=np.int64), np.cumsum(length) - length
    return RunCourse(RunSteps(numbers, starts, length, window, window), **more)  # type: ignore[arg-type]


def drawn(chart: Node) -> list[tuple[float, float]]:
    return [(float(one.attributes["cx"]), float(one.attributes["cy"])) for one in chart.every("circle")]


def test_a_jump_is_seen_and_the_slowest_step_is_told() -> None:
    """10 % more from the middle on is half of the axis; a first step of 1 s is at its edge."""
    chart = parse(run_chart(course([1000 * MS] + [10 * MS] * 50 + [11 * MS] * 50)))
    (caption,) = chart.every("figcaption")
    assert caption.text == (
        "Time of each of 101 steps over the run, median 11 ms; 1 step beyond the axis, drawn at its edge: "
        "the longest is step 0 with 1 s."
    )
    dots = drawn(chart)
    assert len(dots) == 101
    assert [x for x, _ in dots] == sorted(x for x, _ in dots)
    low, high = dots[10][1], dots[80][1]
    assert low - high > 75, "of 150 units"
    assert dots[0][1] < high, "beyond the axis: at its upper edge"


def test_thousands_of_steps_keep_their_outliers() -> None:
    durs = [10 * MS + n % 7 for n in range(10_000)]
    durs[6_543] = 30 * MS
    chart = parse(run_chart(course(durs)))
    assert len(drawn(chart)) <= 2 * STRETCHES + 2
    (caption,) = chart.every("figcaption")
    assert "of each stretch of about 10 steps the shortest and the longest are drawn" in caption.text
    assert "the longest is step 6543 with 30 ms" in caption.text
    assert min(y for _, y in drawn(chart)) < 30


def test_lines_reasons_and_bands_lie_where_their_times_are() -> None:
    """A reading holds until the next. Without other bands the recorded steps are marked."""
    clock = Readings(np.array([-5, 50 * MS]), np.array([1980.0, 1400.0]))
    lines = (CourseLine("GPU 0: SM clock", "MHz", clock),)
    slowed = (Slowed(50 * MS, 100 * MS, "power cap"),)
    whole = course([10 * MS] * 10, range(2, 5), lines=lines, slowed=slowed)
    chart = parse(run_chart(whole))
    (polyline,) = chart.every("polyline")
    corners = [tuple(map(float, one.split(","))) for one in polyline.attributes["points"].split()]
    left, middle, _, right = (x for x, _ in corners)
    assert middle == (left + right) / 2
    assert corners[0][1] == corners[1][1] < corners[2][1] == corners[3][1]
    band = {one.attributes["class"]: one.attributes for one in chart.every("rect")}
    assert float(band["reach"]["x"]) == middle
    assert float(band["band"]["x"]) == round(left + 0.2 * (right - left), 1)
    words = [one.text for one in chart.every("text")]
    assert {"recorded", "power cap", "GPU 0", "SM clock", "1400 to 1980 MHz", "100 ms"} <= set(words)
    (caption,) = chart.every("figcaption")
    assert caption.text.endswith("slowed by power cap in 50.0 % of the run.")
    named = parse(run_chart(whole, [(0, 30 * MS, "phase 1"), (30 * MS, 100 * MS, "phase 2")]))
    assert [one.attributes["class"] for one in named.every("rect")] == ["band", "band odd", "reach"]
    assert "recorded" not in [one.text for one in named.every("text")]
