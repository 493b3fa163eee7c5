"""Inline SVG charts of the HTML report. Colours come from classes of the style sheet, for light and dark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profrun.contract.units import bytes_text, interval_text, percent_text, ratio_text, time_text
from profrun.reports.html import Html, el, join

Ints = NDArray[np.int64]
WIDTH = 760
"""Width of the charts in their own units."""
POINTS = 600
"""Stretches of a line, each drawn with its smallest and largest value."""


def stacked_bar(parts: Mapping[str, float], scale: float, label: str) -> Html:
    """One horizontal bar of parts side by side.

    Args:
        parts: role (a class of the style sheet) -> value, from the left.
        scale: the value that the full width stands for.
        label: what the bar shows, for those who do not see it.
    """
    left, rects = 0.0, []
    for role, value in parts.items():
        width = 1000 * value / scale if scale else 0.0
        if width > 0:
            place = {"x": f"{left:.1f}", "y": "0", "width": f"{width:.1f}", "height": "10"}
            rects.append(el("rect", **place, class_=f"role-{role}"))
        left += width
    return _svg(rects, 1000, 10, label, class_="bar", preserveAspectRatio="none")


def legend(items: Iterable[tuple[str, str]]) -> Html:
    """The colours of a chart, as (role, text) of each."""
    rows = (el("li", el("i", class_=f"swatch role-{role}"), text) for role, text in items)
    return el("ul", rows, class_="legend")


def memory_chart(times: Ints, values: Ints, label: str, *, capacity: int | None = None) -> Html:
    """Bytes over time as steps, on an axis from 0.

    Args:
        times: ns, in order.
        values: bytes at these times.
        label: what the chart shows.
        capacity: memory of the device in bytes; it is not drawn, but the label states the share of the peak.
    """
    x, y = thin(times, values)
    high = max(float(y.max()), 1.0)
    start, span = int(x[0]), max(int(x[-1] - x[0]), 1)
    height, left, base = 180, 80, 156
    across = left + (x - start) * (WIDTH - left - 10) / span
    down = 10 + (1 - np.maximum(y, 0) / high) * (base - 10)
    points = [f"{across[0]:.1f},{down[0]:.1f}"]
    for place in range(1, len(x)):
        points.append(f"{across[place]:.1f},{down[place - 1]:.1f} {across[place]:.1f},{down[place]:.1f}")
    share = f", {percent_text(high / capacity)} of {bytes_text(capacity)}" if capacity else ""
    parts = []
    for part in (0, 0.5, 1):
        at = 10 + (1 - part) * (base - 10)
        parts += [_line(left, WIDTH - 10, at, at), _text(left - 6, at + 4, bytes_text(high * part), "end")]
    parts += [
        el("polyline", points=" ".join(points), class_="line"),
        _text(left, height - 6, "0"),
        _text(WIDTH - 10, height - 6, time_text(span), "end"),
    ]
    return _svg(parts, WIDTH, height, f"{label}: peak {bytes_text(high)}{share} within {time_text(span)}")


def thin(times: Ints, values: Ints, stretches: int = POINTS) -> tuple[Ints, Ints]:
    """A series with about 2 x ``stretches`` points at most: of each stretch the smallest and the largest."""
    if len(times) <= 2 * stretches:
        return times, values
    keep = {0, len(times) - 1}
    for stretch in np.array_split(np.arange(len(times)), stretches):
        keep |= {int(stretch[values[stretch].argmin()]), int(stretch[values[stretch].argmax()])}
    chosen = np.array(sorted(keep))
    return times[chosen], values[chosen]


def histogram(edges: Ints, counts: Ints, middle: float, label: str) -> Html:
    """How often values lie in each bin.

    Args:
        edges: ends of the bins in ns, shape (bins + 1,).
        counts: of each bin, shape (bins,).
        middle: a value that is marked, ns.
        label: what the chart shows.
    """
    height, left, right, top, base = 150, 44, WIDTH - 10, 14, 122
    first, last, most = int(edges[0]), int(edges[-1]), max(int(counts.max()), 1)

    def across(value: float) -> float:
        return left + (value - first) / max(last - first, 1) * (right - left)

    parts = [
        _line(left, right, base, base),
        _text(left - 6, top + 4, str(most), "end"),
        _text(left - 6, base, "0", "end"),
    ]
    for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
        size = (base - top) * int(count) / most
        box = {"x": f"{across(low) + 0.5:.1f}", "y": f"{base - size:.1f}", "height": f"{size:.1f}"}
        width = max(across(high) - across(low) - 1, 0.5)
        title = f"{int(count)} of {time_text(low)} to {time_text(high)}"
        if count:
            parts.append(el("rect", el("title", title), **box, width=f"{width:.1f}", class_="role-kernel"))
    parts += [
        _line(across(middle), across(middle), top - 6, base, "median"),
        _text(left, base + 16, time_text(first)),
    ]
    parts += [_text(right, base + 16, time_text(last), "end")]
    return _svg(parts, WIDTH, height, label)


class _LogAxis:
    """A logarithmic axis of whole decades.

    Args:
        low, high: the smallest and the largest value to show.
        start, stop: where the ends of the axis are drawn.
    """

    def __init__(self, low: float, high: float, start: float, stop: float) -> None:
        self.first = math.floor(math.log10(low))
        self.last = max(math.ceil(math.log10(high)), self.first + 1)
        self.low, self.high = 10.0**self.first, 10.0**self.last
        self.start, self.stop = start, stop

    def at(self, value: float) -> float:
        """Where a value is drawn."""
        share = (math.log10(value) - self.first) / (self.last - self.first)
        return self.start + share * (self.stop - self.start)

    def ticks(self) -> list[tuple[float, str]]:
        """(place, label) of each power of ten."""
        return [(self.at(10.0**power), f"{10.0**power:g}") for power in range(self.first, self.last + 1)]


def roofline_chart(
    points: Sequence[tuple[float, float, float, str]],
    roofs: Sequence[tuple[str, float]],
    memory_tb_s: float | None,
) -> Html:
    """A roofline, both axes logarithmic.

    Args:
        points: (FLOP/byte, TFLOP/s, share of GPU time, label) of each op.
        roofs: (dtype, peak in TFLOP/s).
        memory_tb_s: peak rate of the memory in TB/s, the slope of the roof: FLOP/byte x TB/s is TFLOP/s.
    """
    height, left, right, top, base = 300, 60, WIDTH - 20, 20, 266
    ridges = [roof / memory_tb_s for _, roof in roofs] if memory_tb_s else []
    intensities = [point[0] for point in points]
    rates = [point[1] for point in points] + [roof for _, roof in roofs]
    x = _LogAxis(min(intensities), max(intensities + ridges), left, right)
    y = _LogAxis(min(rates), max(rates), base, top)
    parts = []
    for at, label in x.ticks():
        parts += [_line(at, at, top, base), _text(at, base + 14, label, "middle")]
    for at, label in y.ticks():
        parts += [_line(left, right, at, at), _text(left - 6, at + 4, label, "end")]
    for dtype, peak in roofs:
        ridge = max(peak / memory_tb_s, x.low) if memory_tb_s else x.low
        parts.append(_line(x.at(ridge), right, y.at(peak), y.at(peak), "roof"))
        parts.append(_text(WIDTH - 24, y.at(peak) - 4, f"{dtype} peak {peak:g} TFLOP/s", "end"))
    if memory_tb_s:
        start = max(x.low, y.low / memory_tb_s)
        stop = min(x.high, max((peak for _, peak in roofs), default=y.high) / memory_tb_s)
        if start < stop:
            ends = (y.at(start * memory_tb_s), y.at(stop * memory_tb_s))
            parts.append(_line(x.at(start), x.at(stop), *ends, "roof"))
    for intensity, rate, share, label in points:
        parts.append(_dot(x.at(intensity), y.at(rate), 3 + 9 * math.sqrt(max(share, 0)), title=label))
    parts.append(_text(right, height - 4, "FLOP per byte", "end"))
    parts.append(_text(6, height - 4, "TFLOP/s against FLOP per byte, both logarithmic"))
    label = f"roofline of {len(points)} ops; the table below holds the same numbers"
    return _svg(parts, WIDTH, height, label)


def strip_chart(rows: Sequence[tuple[str, Sequence[Sequence[int]]]], label: str) -> Html:
    """Step times of several points: one dot per step, and a tick at the median of each trial.

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
        parts.append(_line(at, at, 4, height - 24))
        parts.append(_text(at, height - 10, time_text(value) if value else "0", "middle"))
    for number, (name, trials) in enumerate(rows):
        middle = 4 + row_height * number + row_height / 2
        parts.append(_text(left - 8, middle + 4, _cut(name, 32), "end"))
        spread = (row_height - 12) / max(len(trials), 1)
        for place, trial in enumerate(trials):
            y = middle + (place - (len(trials) - 1) / 2) * spread
            parts += [_dot(across(value), y, 2.5) for value in trial if value > 0]
            if trial:
                at = across(float(np.median(trial)))
                parts.append(_line(at, at, y - 5, y + 5, "median"))
    if logarithmic:
        parts.append(_text(6, height - 10, "logarithmic axis"))
    return _svg(parts, WIDTH, height, label)


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
            _line(across(value), across(value), 4, height - 24),
            _text(across(value), height - 10, time_text(value) if value else "0", "middle"),
        ]
    if base is not None:
        parts.append(_line(across(base), across(base), 4, height - 24, "base"))
    for number, row in enumerate(rows):
        y = 4 + row_height * (number + 0.5)
        low, top = across(row.range[0]), across(row.range[1])
        box = {"x": f"{low:.1f}", "y": f"{y - 5:.1f}", "width": f"{max(top - low, 1):.1f}", "height": "10"}
        parts += [_text(left - 8, y + 4, _cut(row.name, 26), "end"), el("rect", **box, class_="reach")]
        if row.interval is not None:
            parts.append(_line(across(row.interval[0]), across(row.interval[1]), y, y, "interval"))
        parts += [_dot(across(row.value), y, 4), _text(right + 10, y + 4, row.text)]
    told = "; ".join(f"{row.name} {row.text}" for row in rows)
    return _svg(parts, WIDTH, height, f"{label}: {told}")


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
    high = max(max(dot.value, *dot.range) for dot in dots) * 1.05
    pace = (right - left) / max(len(dots), 1)

    def down(value: float) -> float:
        return base - value / high * (base - top)

    parts = []
    for value in _ticks(high / 2, high, logarithmic=False):
        at = down(value)
        parts += [
            _line(left, right, at, at),
            _text(left - 6, at + 4, time_text(value) if value else "0", "end"),
        ]
    for place, dot in enumerate(dots):
        x = left + pace * (place + 0.5)
        if dot.broken:
            parts.append(_line(x - pace / 2, x - pace / 2, top, base, "base"))
        ends_of = (down(dot.range[0]), down(dot.range[1]))
        shape = [_line(x, x, *ends_of, "interval thin"), _mark(x, down(dot.value), dot)]
        parts.append(el("a", shape, href=dot.link, aria_label=dot.title) if dot.link else join(shape))
    parts += [_text(left, height - 18, ends[0]), _text(right, height - 18, ends[1], "end")]
    return _svg(parts, WIDTH, height, label, role="group")


def _mark(x: float, y: float, dot: HistoryDot) -> Html:
    """A dot; larger and coloured where a change is proven."""
    place = {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": "5" if dot.verdict else "3"}
    return el("circle", el("title", dot.title), **place, class_=f"dot {dot.verdict}".rstrip())


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
        _line(60, 60, 0, 16),
        _line(across(low), across(high), 8, 8, "interval"),
        _dot(across(ratio), 8, 3.5),
    ]
    label = f"ratio {ratio_text(ratio)}, interval {interval_text((low, high))}"
    return _svg(parts, 120, 16, label, class_="forest")


def _svg(
    parts: Sequence[Html],
    width: int,
    height: int,
    label: str,
    *,
    class_: str = "chart",
    role: str = "img",
    **more: str,
) -> Html:
    box = f"0 0 {width} {height}"
    found = el("svg", parts, viewBox=box, class_=class_, role=role, aria_label=label, **more)
    if class_ != "chart":
        return found
    return el("div", found, class_="chartbox", tabindex="0", role="group", aria_label="chart")


def _line(x1: float, x2: float, y1: float, y2: float, class_: str = "grid") -> Html:
    ends = {"x1": f"{x1:.1f}", "x2": f"{x2:.1f}", "y1": f"{y1:.1f}", "y2": f"{y2:.1f}"}
    return el("line", **ends, class_=class_)


def _dot(x: float, y: float, radius: float, *, title: str | None = None) -> Html:
    place = {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": f"{radius:.1f}"}
    return el("circle", el("title", title) if title else None, **place, class_="dot")


def _text(x: float, y: float, text: str, anchor: str = "start") -> Html:
    return el("text", text, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor)
