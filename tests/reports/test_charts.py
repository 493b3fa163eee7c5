"""What the charts draw."""

from __future__ import annotations

import numpy as np

from profrun.reports.charts import (
    HistoryDot,
    IntervalRow,
    histogram,
    history_chart,
    interval_bar,
    interval_chart,
    memory_chart,
    roofline_chart,
    stacked_bar,
    strip_chart,
    thin,
)
from tests.reports.documents import parse


def test_a_long_series_keeps_its_extremes_and_its_ends() -> None:
    times = np.arange(10_000)
    values = np.zeros(10_000, dtype=np.int64)
    values[[1234, 7777]] = 99, -5
    x, y = thin(times, values)
    assert len(x) <= 1202
    assert (x[0], x[-1], y.max(), y.min()) == (0, 9999, 99, -5)
    assert (np.diff(x) > 0).all()
    assert thin(times[:5], values[:5])[0].tolist() == [0, 1, 2, 3, 4]


def test_the_parts_of_a_bar_lie_side_by_side() -> None:
    rects = parse(stacked_bar({"kernel": 25, "none": 0, "other": 50}, 100, "step 1")).every("rect")
    assert [(one.attributes["x"], one.attributes["width"]) for one in rects] == [
        ("0.0", "250.0"),
        ("250.0", "500.0"),
    ]


def test_memory_is_labelled_with_its_peak() -> None:
    chart = memory_chart(np.array([0, 1000]), np.array([0, 2048]), "allocated", capacity=4096)
    (svg,) = parse(chart).every("svg")
    assert svg.attributes["aria-label"] == "allocated: peak 2 KiB, 50.0 % of 4 KiB within 1 us"
    assert [text.text for text in svg.every("text")] == ["0 B", "1 KiB", "2 KiB", "0", "1 us"]


def test_a_roofline_has_whole_decades_and_a_dot_per_op() -> None:
    chart = parse(roofline_chart([(100.0, 50.0, 0.25, "mm")], [("bf16", 989.0)], 4.8))
    labels = [text.text for text in chart.every("text")]
    assert labels[:3] == ["100", "1000", "10"]
    assert "bf16 peak 989 TFLOP/s" in labels
    (dot,) = chart.every("circle")
    assert (dot.attributes["r"], dot.text) == ("7.5", "mm")
    assert len(chart.every("line", class_="roof")) == 2


def test_step_times_far_apart_lie_on_a_logarithmic_axis() -> None:
    near = parse(strip_chart([("a", [[1000, 1200], [1100]])], "steps"))
    assert len(near.every("circle")) == 3
    assert len(near.every("line", class_="median")) == 2
    assert near.every("text")[0].text == "0"
    far = parse(strip_chart([("a", [[1000, 50_000]])], "steps"))
    assert "logarithmic axis" in [text.text for text in far.every("text")]


def test_a_ratio_of_one_lies_in_the_middle() -> None:
    (dot,) = parse(interval_bar(1.0, 0.9, 1.1, span=2.0)).every("circle")
    assert dot.attributes["cx"] == "60.0"


def test_a_row_of_an_interval_chart_has_its_range_and_interval_on_one_scale() -> None:
    rows = [
        IntervalRow("a", 100.0, (80.0, 120.0), None, "100 ns"),
        IntervalRow("b", 50.0, (40.0, 60.0), (30.0, 70.0), "50 ns"),
    ]
    chart = parse(interval_chart(rows, "step time", base=100.0))
    (interval,) = chart.every("line", class_="interval")
    (base,) = chart.every("line", class_="base")
    first, second = chart.every("rect", class_="reach")
    zero = 2 * float(chart.every("circle")[1].attributes["cx"]) - float(base.attributes["x1"])
    per_ns = (float(base.attributes["x1"]) - zero) / 100

    def at(value: str) -> float:
        return round((float(value) - zero) / per_ns)

    assert [at(interval.attributes["x1"]), at(interval.attributes["x2"])] == [30, 70]
    assert [at(first.attributes["x"]), at(second.attributes["x"])] == [80, 40]
    assert chart.every("svg")[0].attributes["aria-label"] == "step time: a 100 ns; b 50 ns"


def test_the_bars_of_a_histogram_are_as_high_as_their_counts() -> None:
    chart = parse(histogram(np.array([0, 10, 20, 30]), np.array([2, 0, 4]), 25.0, "steps"))
    bars = chart.every("rect")
    assert [one.text for one in bars] == ["2 of 0 ns to 10 ns", "4 of 20 ns to 30 ns"]
    low, high = (float(one.attributes["height"]) for one in bars)
    assert high == 2 * low


def test_a_history_links_runs_and_marks_changes_and_other_machines() -> None:
    dots = [
        HistoryDot(100, (90, 110), "r1", "r1/report.html"),
        HistoryDot(200, (190, 210), "r2", verdict="slower"),
        HistoryDot(200, (190, 210), "r3", broken=True),
    ]
    chart = parse(history_chart(dots, "history", ("first", "last")))
    assert [one.attributes["href"] for one in chart.every("a")] == ["r1/report.html"]
    assert [one.text for one in chart.every("circle", class_="dot slower")] == ["r2"]
    (line,) = chart.every("line", class_="base")
    left, right = (float(one.attributes["cx"]) for one in chart.every("circle")[1:])
    assert left < float(line.attributes["x1"]) < right
