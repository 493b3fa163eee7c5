"""What the charts of a trace draw."""

from __future__ import annotations

import numpy as np

from profrun.reports.charts import (
    histogram,
    memory_chart,
    roofline_chart,
    stacked_bar,
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


def test_the_bars_of_a_histogram_are_as_high_as_their_counts() -> None:
    chart = parse(histogram(np.array([0, 10, 20, 30]), np.array([2, 0, 4]), 25.0, "steps"))
    bars = chart.every("rect")
    assert [one.text for one in bars] == ["2 of 0 ns to 10 ns", "4 of 20 ns to 30 ns"]
    low, high = (float(one.attributes["height"]) for one in bars)
    assert high == 2 * low
