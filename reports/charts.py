"""Inline SVG charts. Colours come from the style sheet's classes, so that light and dark both work."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from profrun.contract.units import bytes_text, percent_text, time_text
from profrun.reports.html import Html, el

WIDTH = 760
POINTS = 600
"""Most points of a line; the largest value of each stretch is kept."""


def stacked_bar(parts: Mapping[str, float], scale: float, label: str) -> Html:
    """One horizontal bar of parts side by side; ``scale`` is the value that the full width stands for."""
    left, rects = 0.0, []
    for role, value in parts.items():
        width = 1000 * value / scale if scale else 0.0
        if width > 0:
            rects.append(
                el("rect", x=f"{left:.1f}", y="0", width=f"{width:.1f}", height="10", class_=f"role-{role}")
            )
        left += width
    return el(
        "svg", *rects, viewBox="0 0 1000 10", preserveAspectRatio="none", class_="bar", role="img",
        aria_label=label,
    )  # fmt: skip


def legend(items: Iterable[tuple[str, str]]) -> Html:
    """(class suffix, text) of each colour."""
    return el(
        "ul", (el("li", el("i", class_=f"swatch role-{key}"), text) for key, text in items), class_="legend"
    )


def memory_chart(
    times: Sequence[int], values: Sequence[int], label: str, *, capacity: int | None = None
) -> Html:
    """Bytes over time as steps. The axis starts at 0; the device's capacity is not drawn but said."""
    x, y = thin(np.asarray(times), np.asarray(values))
    high = max(float(y.max()), 1.0)
    low_t, span = int(x[0]), max(int(x[-1] - x[0]), 1)
    height, left, bottom = 180, 80, 24
    across = left + (x - low_t) * (WIDTH - left - 10) / span
    down = 10 + (1 - np.maximum(y, 0) / high) * (height - 10 - bottom)
    points = [f"{across[0]:.1f},{down[0]:.1f}"]
    for place in range(1, len(x)):
        points.append(f"{across[place]:.1f},{down[place - 1]:.1f} {across[place]:.1f},{down[place]:.1f}")
    share = f", {percent_text(high / capacity)} of {bytes_text(capacity)}" if capacity else ""
    base = height - bottom
    return el(
        "svg",
        [
            (
                el("line", x1=left, x2=WIDTH - 10, y1=f"{at:.1f}", y2=f"{at:.1f}", class_="grid"),
                _text(left - 6, at + 4, bytes_text(high * part), "end"),
            )
            for part in (0, 0.5, 1)
            for at in [10 + (1 - part) * (base - 10)]
        ],
        el("polyline", points=" ".join(points), class_="line"),
        _text(left, height - 6, "0"),
        _text(WIDTH - 10, height - 6, time_text(span), "end"),
        viewBox=f"0 0 {WIDTH} {height}", class_="chart", role="img",
        aria_label=f"{label}: peak {bytes_text(high)}{share} within {time_text(span)}",
    )  # fmt: skip


def thin(times: Any, values: Any, most: int = POINTS) -> tuple[Any, Any]:
    """About 2 x ``most`` points of a series at most: smallest and largest of each stretch, in order."""
    if len(times) <= 2 * most:
        return times, values
    keep = {0, len(times) - 1}
    for stretch in np.array_split(np.arange(len(times)), most):
        keep |= {int(stretch[values[stretch].argmin()]), int(stretch[values[stretch].argmax()])}
    chosen = np.array(sorted(keep))
    return times[chosen], values[chosen]


def roofline_chart(
    points: Sequence[tuple[float, float, float, str]],
    roofs: Sequence[tuple[str, float]],
    memory_tb_s: float | None,
) -> Html:
    """Log-log roofline.

    Args:
        points: (FLOP a byte, TFLOP/s, share of GPU time, label).
        roofs: (dtype, peak TFLOP/s).
        memory_tb_s: TB/s, the slope: intensity x TB/s is TFLOP/s.
    """
    height, left, bottom = 300, 60, 34
    xs = [point[0] for point in points]
    ys = [point[1] for point in points] + [roof[1] for roof in roofs]
    x0, x1 = _decades(min(xs), max([*xs, *(roof / memory_tb_s for _, roof in roofs)] if memory_tb_s else xs))
    y0, y1 = _decades(min(ys), max(ys))

    def across(value: float) -> float:
        return left + (math.log10(value) - x0) / (x1 - x0) * (WIDTH - left - 20)

    def down(value: float) -> float:
        return 20 + (y1 - math.log10(value)) / (y1 - y0) * (height - 20 - bottom)

    parts: list[Any] = []
    for power in range(x0, x1 + 1):
        at = across(10.0**power)
        parts.append(el("line", x1=f"{at:.1f}", x2=f"{at:.1f}", y1=20, y2=height - bottom, class_="grid"))
        parts.append(_text(at, height - bottom + 14, f"{10.0**power:g}", "middle"))
    for power in range(y0, y1 + 1):
        at = down(10.0**power)
        parts.append(el("line", x1=left, x2=WIDTH - 20, y1=f"{at:.1f}", y2=f"{at:.1f}", class_="grid"))
        parts.append(_text(left - 6, at + 4, f"{10.0**power:g}", "end"))
    for dtype, peak in roofs:
        ridge = max(peak / memory_tb_s, 10.0**x0) if memory_tb_s else 10.0**x0
        ends = {"x1": f"{across(ridge):.1f}", "x2": WIDTH - 20, "y1": f"{down(peak):.1f}"}
        parts.append(el("line", **ends, y2=f"{down(peak):.1f}", class_="roof"))
        parts.append(_text(WIDTH - 24, down(peak) - 4, f"{dtype} peak {peak:g} TFLOP/s", "end"))
    if memory_tb_s:
        start = max(10.0**x0, 10.0**y0 / memory_tb_s)
        stop = min(10.0**x1, max((peak for _, peak in roofs), default=10.0**y1) / memory_tb_s)
        if start < stop:
            parts.append(
                el("line", x1=f"{across(start):.1f}", y1=f"{down(start * memory_tb_s):.1f}",
                   x2=f"{across(stop):.1f}", y2=f"{down(stop * memory_tb_s):.1f}", class_="roof")
            )  # fmt: skip
    for intensity, rate, share, label in points:
        radius = 3 + 9 * math.sqrt(max(share, 0))
        dot = {"cx": f"{across(intensity):.1f}", "cy": f"{down(rate):.1f}", "r": f"{radius:.1f}"}
        parts.append(el("circle", el("title", label), **dot, class_="dot"))
    parts.append(_text(WIDTH - 20, height - 4, "FLOP a byte", "end"))
    parts.append(_text(6, height - 4, "TFLOP/s against FLOP a byte, both logarithmic"))
    return el(
        "svg", *parts, viewBox=f"0 0 {WIDTH} {height}", class_="chart", role="img",
        aria_label=f"roofline of {len(points)} ops; the table below holds the same numbers",
    )  # fmt: skip


def strip_chart(rows: Sequence[tuple[str, Sequence[Sequence[int]]]], label: str) -> Html:
    """Step times of several points: a dot a step, a tick at each trial's median.

    The axis starts at 0, or is logarithmic (said on it) when the largest is over 20 times the smallest.
    """
    every = [value for _, trials in rows for trial in trials for value in trial if value > 0]
    low, high = min(every), max(every)
    logarithmic = high > 20 * low
    x0, x1 = (math.log10(low) - 0.05, math.log10(high) + 0.05) if logarithmic else (0.0, high * 1.03)
    left, line = 210, 34
    height = line * len(rows) + 30

    def across(value: float) -> float:
        at = math.log10(value) if logarithmic else value
        return left + (at - x0) / (x1 - x0) * (WIDTH - left - 20)

    parts: list[Any] = []
    for value in _ticks(low, high, logarithmic):
        at = across(value) if value else left
        parts.append(el("line", x1=f"{at:.1f}", x2=f"{at:.1f}", y1=4, y2=height - 24, class_="grid"))
        parts.append(_text(at, height - 10, time_text(value) if value else "0", "middle"))
    for number, (name, trials) in enumerate(rows):
        middle = 4 + line * number + line / 2
        parts.append(_text(left - 8, middle + 4, name if len(name) <= 32 else name[:29] + "...", "end"))
        spread = (line - 12) / max(len(trials), 1)
        for place, trial in enumerate(trials):
            y = middle + (place - (len(trials) - 1) / 2) * spread
            for value in trial:
                if value > 0:
                    parts.append(
                        el("circle", cx=f"{across(value):.1f}", cy=f"{y:.1f}", r="2.5", class_="dot")
                    )
            if trial:
                at = across(float(np.median(trial)))
                parts.append(
                    el("line", x1=f"{at:.1f}", x2=f"{at:.1f}", y1=f"{y - 5:.1f}", y2=f"{y + 5:.1f}",
                       class_="median")
                )  # fmt: skip
    if logarithmic:
        parts.append(_text(6, height - 10, "logarithmic axis"))
    return el("svg", *parts, viewBox=f"0 0 {WIDTH} {height}", class_="chart", role="img", aria_label=label)


def interval_bar(ratio: float, low: float, high: float, *, span: float) -> Html:
    """A ratio with its interval around 1; ``span`` is the ratio at the right end, 1 / span at the left."""

    def across(value: float) -> float:
        return 60 + 58 * max(-1.0, min(1.0, math.log(value) / math.log(span)))

    return el(
        "svg",
        el("line", x1=60, x2=60, y1=0, y2=16, class_="grid"),
        el("line", x1=f"{across(low):.1f}", x2=f"{across(high):.1f}", y1=8, y2=8, class_="interval"),
        el("circle", cx=f"{across(ratio):.1f}", cy=8, r=3.5, class_="dot"),
        viewBox="0 0 120 16", class_="forest", role="img",
        aria_label=f"ratio {ratio:.3f}, interval {low:.3f} to {high:.3f}",
    )  # fmt: skip


def _text(x: float, y: float, text: str, anchor: str = "start") -> Html:
    return el("text", text, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor)


def _decades(low: float, high: float) -> tuple[int, int]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return first, max(last, first + 1)


def _ticks(low: float, high: float, logarithmic: bool) -> list[float]:
    if logarithmic:
        first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
        found = [10.0**power for power in range(first, last + 1)]
        return found if len(found) > 1 else [float(low), float(high)]
    step = 10 ** math.floor(math.log10(high))
    step = next(size for size in (step / 5, step / 2, step, 2 * step) if high / size <= 6)
    return [step * place for place in range(int(high / step) + 1)]
