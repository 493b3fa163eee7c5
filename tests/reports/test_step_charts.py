"""What the charts of step times draw."""

from __future__ import annotations

from profrun.reports.step_charts import (
    HistoryDot,
    IntervalRow,
    history_chart,
    interval_bar,
    interval_chart,
    strip_chart,
)
from tests.reports.documents import parse


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
