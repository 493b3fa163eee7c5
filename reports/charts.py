"""Charts of one trace in the HTML report: bars of parts, memory, how times are spread, a roofline."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from profrun.contract.units import bytes_text, percent_text, time_text
from profrun.reports.html import Html, el
from profrun.reports.svg import WIDTH, dot, line, svg, text

Ints = NDArray[np.int64]
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
    return svg(rects, 1000, 10, label, class_="bar", preserveAspectRatio="none")


def legend(items: Iterable[tuple[str, str]]) -> Html:
    """The colours of a chart, as (role, text) of each."""
    rows = (el("li", el("i", class_=f"swatch role-{role}"), meaning) for role, meaning in items)
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
        parts += [line(left, WIDTH - 10, at, at), text(left - 6, at + 4, bytes_text(high * part), "end")]
    parts += [
        el("polyline", points=" ".join(points), class_="line"),
        text(left, height - 6, "0"),
        text(WIDTH - 10, height - 6, time_text(span), "end"),
    ]
    return svg(parts, WIDTH, height, f"{label}: peak {bytes_text(high)}{share} within {time_text(span)}")


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
        line(left, right, base, base),
        text(left - 6, top + 4, str(most), "end"),
        text(left - 6, base, "0", "end"),
    ]
    for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
        size = (base - top) * int(count) / most
        box = {"x": f"{across(low) + 0.5:.1f}", "y": f"{base - size:.1f}", "height": f"{size:.1f}"}
        width = max(across(high) - across(low) - 1, 0.5)
        title = f"{int(count)} of {time_text(low)} to {time_text(high)}"
        if count:
            parts.append(el("rect", el("title", title), **box, width=f"{width:.1f}", class_="role-kernel"))
    parts += [
        line(across(middle), across(middle), top - 6, base, "median"),
        text(left, base + 16, time_text(first)),
    ]
    parts += [text(right, base + 16, time_text(last), "end")]
    return svg(parts, WIDTH, height, label)


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
        parts += [line(at, at, top, base), text(at, base + 14, label, "middle")]
    for at, label in y.ticks():
        parts += [line(left, right, at, at), text(left - 6, at + 4, label, "end")]
    for dtype, peak in roofs:
        ridge = max(peak / memory_tb_s, x.low) if memory_tb_s else x.low
        parts.append(line(x.at(ridge), right, y.at(peak), y.at(peak), "roof"))
        parts.append(text(WIDTH - 24, y.at(peak) - 4, f"{dtype} peak {peak:g} TFLOP/s", "end"))
    if memory_tb_s:
        start = max(x.low, y.low / memory_tb_s)
        stop = min(x.high, max((peak for _, peak in roofs), default=y.high) / memory_tb_s)
        if start < stop:
            ends = (y.at(start * memory_tb_s), y.at(stop * memory_tb_s))
            parts.append(line(x.at(start), x.at(stop), *ends, "roof"))
    for intensity, rate, share, label in points:
        parts.append(dot(x.at(intensity), y.at(rate), 3 + 9 * math.sqrt(max(share, 0)), title=label))
    parts.append(text(right, height - 4, "FLOP per byte", "end"))
    parts.append(text(6, height - 4, "TFLOP/s against FLOP per byte, both logarithmic"))
    label = f"roofline of {len(points)} ops; the table below holds the same numbers"
    return svg(parts, WIDTH, height, label)
