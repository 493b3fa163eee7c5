"""Charts of step times in the HTML report: of points, of variants, of runs; and how a time changed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from profrun.contract.units import interval_text, ratio_text, time_text
from profrun.reports.html import Html, el, join
from profrun.reports.svg import WIDTH, dot, line, svg, text

MOST_DOTS = 200
"""Steps of a trial that are drawn."""
THINNED_NOTE = f" At most {MOST_DOTS} steps of a trial are drawn, evenly by time."


def strip_chart(rows: Sequence[tuple[str, Sequence[Sequence[int]]]], label: str) -> Html:
    """Step times of several points: one dot per step (``thinned``), and a tick at the median of each trial.

    The axis starts at 0, or is logarithmic (with a note) when the largest is over 20 times the smallest.

    Args:
        rows: (name, step times of each of its trials in ns) of each point.
        label: what the chart shows.
    """
    every = [value for _, trials in rows for trial in trials for value in trial if value > 0]
    low, high = min(every), max(every)
    logarithmic = high > 20 * low
    x0, x1 = (math.log10(low) - 0.05, math.log10(high) + 0.05) if logarithmic else (0.0, high * 1.03)
    left, row_height = 210, 34
    height = row_height * len(rows) + 30

    def across(value: float) -> float:
        at = math.log10(value) if logarithmic else value
        return left + (at - x0) / (x1 - x0) * (WIDTH - left - 20)

    parts = []
    for value in _ticks(low, high, logarithmic):
        at = across(value) if value else left
        parts.append(line(at, at, 4, height - 24))
        parts.append(text(at, height - 10, time_text(value) if value else "0", "middle"))
    for number, (name, trials) in enumerate(rows):
        middle = 4 + row_height * number + row_height / 2
        parts.append(text(left - 8, middle + 4, _cut(name, 32), "end"))
        spread = (row_height - 12) / max(len(trials), 1)
        for place, trial in enumerate(trials):
            y = middle + (place - (len(trials) - 1) / 2) * spread
            parts += [dot(across(value), y, 2.5) for value in thinned(trial) if value > 0]
            if trial:
                at = across(float(np.median(trial)))
                parts.append(line(at, at, y - 5, y + 5, "median"))
    if logarithmic:
        parts.append(text(6, height - 10, "logarithmic axis"))
    return svg(parts, WIDTH, height, label)


def thinned(trial: Sequence[int]) -> Sequence[int]:
    """At most ``MOST_DOTS`` of the step times of a trial, evenly by time."""
    if len(trial) <= MOST_DOTS:
        return trial
    return sorted(trial)[:: math.ceil(len(trial) / MOST_DOTS)]


def _ticks(low: float, high: float, logarithmic: bool) -> list[float]:
    if logarithmic:
        found = [10.0**power for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
        return found if len(found) > 1 else [float(low), float(high)]
    step = 10 ** math.floor(math.log10(high))
    step = next(size for size in (step / 5, step / 2, step, 2 * step) if high / size <= 6)
    return [step * place for place in range(int(high / step) + 1)]


@dataclass(frozen=True)
class IntervalRow:
    """A row of an interval chart; times in ns.

    Attributes:
        name: at the left.
        value: the dot.
        range: the wide bar: least and largest value.
        interval: the thin line; None for none.
        text: at the right.
    """

    name: str
    value: float
    range: tuple[float, float]
    interval: tuple[float, float] | None
    text: str


def interval_chart(rows: Sequence[IntervalRow], label: str, *, base: float | None = None) -> Html:
    """Times with ranges and intervals, one row each, on an axis from 0.

    Args:
        rows: from the top.
        label: what the chart shows.
        base: a time that is drawn as a dashed line through all rows.
    """
    high = max(max(row.value, *row.range, *(row.interval or ())) for row in rows)
    left, right, row_height = 170, WIDTH - 150, 26
    height = row_height * len(rows) + 30

    def across(value: float) -> float:
        return left + value / high * (right - left)

    parts = []
    for value in _ticks(high / 2, high, logarithmic=False):
        parts += [
            line(across(value), across(value), 4, height - 24),
            text(across(value), height - 10, time_text(value) if value else "0", "middle"),
        ]
    if base is not None:
        parts.append(line(across(base), across(base), 4, height - 24, "base"))
    for number, row in enumerate(rows):
        y = 4 + row_height * (number + 0.5)
        low, top = across(row.range[0]), across(row.range[1])
        box = {"x": f"{low:.1f}", "y": f"{y - 5:.1f}", "width": f"{max(top - low, 1):.1f}", "height": "10"}
        parts += [text(left - 8, y + 4, _cut(row.name, 26), "end"), el("rect", **box, class_="reach")]
        if row.interval is not None:
            parts.append(line(across(row.interval[0]), across(row.interval[1]), y, y, "interval"))
        parts += [dot(across(row.value), y, 4), text(right + 10, y + 4, row.text)]
    told = "; ".join(f"{row.name} {row.text}" for row in rows)
    return svg(parts, WIDTH, height, f"{label}: {told}")


@dataclass(frozen=True)
class HistoryDot:
    """A run in a history chart; times in ns.

    Attributes:
        value: the dot. range: the line through it.
        title: its tooltip. link: where a click leads.
        verdict: faster or slower than the dot before, where that is proven; else empty.
        broken: it is not comparable with the dot before.
    """

    value: float
    range: tuple[float, float]
    title: str
    link: str | None = None
    verdict: str = ""
    broken: bool = False


def history_chart(dots: Sequence[HistoryDot], label: str, ends: tuple[str, str]) -> Html:
    """Values of runs from left to right, oldest first, on an axis from 0.

    Args:
        dots: of the runs.
        label: what the chart shows.
        ends: dates of the first and the last run.
    """
    height, left, right, top, base = 190, 70, WIDTH - 20, 12, 150
    high = max(max(one.value, *one.range) for one in dots) * 1.05
    pace = (right - left) / max(len(dots), 1)

    def down(value: float) -> float:
        return base - value / high * (base - top)

    parts = []
    for value in _ticks(high / 2, high, logarithmic=False):
        at = down(value)
        parts += [
            line(left, right, at, at),
            text(left - 6, at + 4, time_text(value) if value else "0", "end"),
        ]
    for place, one in enumerate(dots):
        x = left + pace * (place + 0.5)
        if one.broken:
            parts.append(line(x - pace / 2, x - pace / 2, top, base, "base"))
        ends_of = (down(one.range[0]), down(one.range[1]))
        shape = [line(x, x, *ends_of, "interval thin"), _mark(x, down(one.value), one)]
        parts.append(el("a", shape, href=one.link, aria_label=one.title) if one.link else join(shape))
    parts += [text(left, height - 18, ends[0]), text(right, height - 18, ends[1], "end")]
    return svg(parts, WIDTH, height, label, role="group")


def _mark(x: float, y: float, one: HistoryDot) -> Html:
    """A dot; larger and coloured where a change is proven."""
    place = {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": "5" if one.verdict else "3"}
    return el("circle", el("title", one.title), **place, class_=f"dot {one.verdict}".rstrip())


def _cut(name: str, most: int) -> str:
    return name if len(name) <= most else name[: most - 3] + "..."


def bars_span(ends: Iterable[float]) -> float:
    """The ratio at the right end of the bars of a table: a little past the end that is furthest from 1.

    Args:
        ends: ratios and ends of intervals, of all bars of the table; those above 0 count.
    """
    return math.exp(1.05 * max([abs(math.log(end)) for end in ends if end > 0] + [math.log(1.1)]))


def interval_bar(ratio: float, low: float, high: float, *, span: float) -> Html:
    """A ratio with its interval around 1, on a logarithmic axis.

    Args:
        ratio: the ratio.
        low, high: the ends of its interval.
        span: the ratio at the right end of the bar; 1 / span is at the left.
    """

    def across(value: float) -> float:
        return 60 + 58 * max(-1.0, min(1.0, math.log(value) / math.log(span)))

    parts = [
        line(60, 60, 0, 16),
        line(across(low), across(high), 8, 8, "interval"),
        dot(across(ratio), 8, 3.5),
    ]
    label = f"ratio {ratio_text(ratio)}, interval {interval_text((low, high))}"
    return svg(parts, 120, 16, label, class_="forest")
