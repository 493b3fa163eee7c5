"""The course of a run as a figure: a dot per step over time, and beneath what was read of GPU or host."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from profrun.contract.units import counted, percent_text, time_text
from profrun.reports.charts import thin
from profrun.reports.html import Html, el
from profrun.reports.svg import WIDTH, dot, line, svg, text

if TYPE_CHECKING:
    from profrun.analysis.trace.run_course import CourseLine, RunCourse, Slowed

STRETCHES = 1000
"""A run with more than twice as many steps is cut into so many stretches.

The shortest and the longest step of each are drawn.
"""

_BEYOND = 0.02
"""The axis need not reach this share of the steps at each end: the fastest and the slowest."""

Band = tuple[int, int, str]
"""A stretch of the run that is marked: begin and end in ns on the axis of the trace, and its name."""

_LEFT, _RIGHT, _TOP, _BASE = 124, WIDTH - 10, 22, 172
_LINE, _GAP = 46, 14


@dataclass(frozen=True)
class _Heights:
    """The axis of the step times, ns: ``low`` at the bottom, ``high`` at the top."""

    low: float
    high: float

    def at(self, value: float) -> float:
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return _BASE - share * (_BASE - _TOP)


def run_chart(course: RunCourse, bands: Sequence[Band] = ()) -> Html:
    """The figure with its caption.

    The axis of the step times does not begin at 0: it reaches from the fast to the slow steps, so that a
    change of some per cent is seen. Steps beyond it are drawn at its edge, and the caption counts them.

    Args:
        course: of the run.
        bands: stretches to mark, such as phases; without any, what a profiler recorded is marked.
    """
    steps = course.steps
    if not bands and steps.disturbed.any() and steps.window.any():
        first, last = np.flatnonzero(steps.window)[[0, -1]].tolist()
        bands = [(int(steps.starts[first]), int(steps.ends[last]), "recorded")]
    start, end = int(steps.starts[0]), int(steps.ends.max())
    heights = _heights(course)

    def across(ns: float) -> float:
        return _LEFT + (min(max(ns, start), end) - start) / (end - start) * (_RIGHT - _LEFT)

    parts = [*_bands(bands, across), *_grid(heights)]
    places, durs = thin(np.arange(len(steps), dtype=np.int64), steps.durs, STRETCHES)
    for place, dur in zip(places.tolist(), durs.tolist(), strict=True):
        parts.append(dot(across(int(steps.starts[place]) + dur / 2), heights.at(dur), 1.8))
    base = _BASE + _GAP
    if course.slowed:
        parts += _slowed(course.slowed, base, across)
        base += 16 + _GAP
    for one in course.lines:
        parts += _line(one, base, across, end)
        base += _LINE + _GAP
    parts += [text(_LEFT, base + 4, "0"), text(_RIGHT, base + 4, time_text(end - start), "end")]
    caption = _caption(course, heights, drawn=len(places))
    drawing = svg(parts, WIDTH, base + 12, f"step times over the run: {caption}")
    return el("figure", el("figcaption", caption), drawing)


def _heights(course: RunCourse) -> _Heights:
    """From the fast to the slow steps, with room on both sides. A few fast steps may be a phase: a boost."""
    durs = np.sort(course.steps.durs)
    cut = math.ceil(len(durs) * _BEYOND)
    low, middle, high = (float(durs[place]) for place in (cut, len(durs) // 2, -1 - cut))
    low = float(durs[0]) if 2 * durs[0] > middle else low
    room = max(0.35 * (high - low), 0.02 * middle)
    return _Heights(max(low - room, 0.0), high + room)


def _grid(heights: _Heights) -> Iterator[Html]:
    for share in (0, 0.5, 1):
        value = heights.low + share * (heights.high - heights.low)
        at = heights.at(value)
        yield line(_LEFT, _RIGHT, at, at)
        yield text(_LEFT - 6, at + 4, time_text(value), "end")


def _bands(bands: Sequence[Band], across: Callable[[float], float]) -> Iterator[Html]:
    """Every other band is shaded; each has its name above, where there is room for it beside wider bands."""
    named = _named([(across(begin), across(stop), name) for begin, stop, name in bands])
    for place, (begin, stop, name) in enumerate(bands):
        left, right = across(begin), across(stop)
        box = {"x": f"{left:.1f}", "y": str(_TOP), "width": f"{max(right - left, 1):.1f}"}
        shade = "band odd" if place % 2 else "band"
        yield el("rect", el("title", name), **box, height=str(_BASE - _TOP), class_=shade)
        if place in named:
            yield text(left + 2, _TOP - 6, name)


def _named(bands: Sequence[tuple[float, float, str]]) -> set[int]:
    """Places of the bands whose names do not overlap, the widest bands first."""
    found: dict[int, tuple[float, float]] = {}
    for place in sorted(range(len(bands)), key=lambda place: bands[place][0] - bands[place][1]):
        left, _, name = bands[place]
        right = left + 6.2 * len(name) + 6
        if right <= WIDTH and all(right < other or left > end for other, end in found.values()):
            found[place] = (left, right)
    return set(found)


def _slowed(stretches: Sequence[Slowed], top: float, across: Callable[[float], float]) -> Iterator[Html]:
    """A band with the reasons in words."""
    yield text(_LEFT - 6, top + 12, "slowed by", "end")
    for one in stretches:
        left, right = across(one.start_ns), across(one.end_ns)
        box = {"x": f"{left:.1f}", "y": f"{top}", "width": f"{max(right - left, 1):.1f}", "height": "16"}
        yield el("rect", el("title", one.why), **box, class_="reach")
        if 6.2 * len(one.why) < right - left:
            yield text(left + 3, top + 12, one.why)


def _line(one: CourseLine, top: float, across: Callable[[float], float], end: int) -> Iterator[Html]:
    """A quantity as steps: each reading holds until the next. The axis is from its least to its largest."""
    times, values = one.readings.times, one.readings.values
    low, high = float(values.min()), float(values.max())
    kept, _ = thin(np.arange(len(times), dtype=np.int64), (values * 1000).astype(np.int64), STRETCHES)
    scale = (_LINE - 6) / (high - low) if high > low else 0.0
    points: list[str] = []
    before = ""
    for place in kept.tolist():
        x = f"{across(int(times[place])):.1f}"
        y = f"{top + _LINE - 3 - (float(values[place]) - low) * scale:.1f}"
        points += [f"{x},{before}"] if before else []
        points.append(f"{x},{y}")
        before = y
    points.append(f"{across(end):.1f},{before}")
    owner, _, name = one.name.rpartition(": ")
    yield line(_LEFT, _RIGHT, top + _LINE, top + _LINE)
    yield text(_LEFT - 6, top + 11, owner or name, "end")
    yield text(_LEFT - 6, top + 25, name if owner else "", "end")
    told = f"{low:.4g} to {high:.4g}" if high > low else f"{low:.4g}"
    yield text(_LEFT - 6, top + 39, f"{told} {one.unit}", "end")
    yield el("polyline", points=" ".join(points), class_="line")


def _caption(course: RunCourse, heights: _Heights, *, drawn: int) -> str:
    steps = course.steps
    start, end = int(steps.starts[0]), int(steps.ends.max())
    middle = time_text(float(np.median(steps.durs)))
    said = [f"Time of each of {counted(len(steps), 'step')} over the run, median {middle}"]
    if drawn < len(steps):
        stretch = counted(round(len(steps) / STRETCHES), "step")
        said.append(f"of each stretch of about {stretch} the shortest and the longest are drawn")
    beyond = np.flatnonzero((steps.durs > heights.high) | (steps.durs < heights.low))
    if len(beyond):
        worst = int(steps.durs.argmax())
        said.append(
            f"{counted(len(beyond), 'step')} beyond the axis, drawn at its edge: the longest is step "
            f"{int(steps.numbers[worst])} with {time_text(int(steps.durs[worst]))}"
        )
    for why in dict.fromkeys(one.why for one in course.slowed):
        share = sum(one.end_ns - one.start_ns for one in course.slowed if one.why == why) / (end - start)
        said.append(f"slowed by {why} in {percent_text(share)} of the run")
    return "; ".join(said) + "."
