"""The timeline of 10^4, 10^5 and 10^6 slices in Chromium: size of the file, first draw, and zooming.

``pytest -m browser tests/real/browser/test_timeline_speed.py -s`` prints the figures of docs/performance.md.
The limits are on CPU seconds of the page's main thread, and the best of several tries counts. What the clock
says is printed and not judged, because the machine may be busy.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.enlarge import kineto

from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.timeline_slices import Timeline
from profrun.collectors.normalize import normalize
from profrun.reports.page import report_html
from profrun.runner.report import trace_content
from profrun.traces.trace import Trace
from tests.real.browser.kit import H200

pytestmark = [pytest.mark.browser, pytest.mark.timeout(1200)]
IN_H200 = 543
"""Slices of the recording that is enlarged."""
FRAMES = 100
LIMITS = {  # slices: (MB of the page, CPU seconds to the first draw, CPU milliseconds of a frame)
    10_000: (0.5, 1.0, 20.0),
    100_000: (1.2, 1.0, 20.0),
    1_000_000: (12.0, 1.0, 20.0),
}


def varied(timeline: Timeline) -> Timeline:
    """The timeline with a speed of time that changes at random every 2 us, by a factor from 0.6 to 1.4.

    Copies of one recording have equal times, and would be packed far smaller than a recording of that length.
    Order and nesting of the slices stay as they are.
    """
    edges = np.arange(0, timeline.span_ns + 2000, 2000)
    speed = np.random.default_rng(1).integers(1200, 2800, len(edges) - 1)
    onto = np.concatenate([[0], np.cumsum(speed)])

    def moved(times: Ints | list[int]) -> Ints:
        return np.asarray(np.interp(times, edges, onto), dtype=np.int64)

    start, end = moved(timeline.start), moved(timeline.start + timeline.dur)
    low, high = moved(list(timeline.window[:2])).tolist()
    bounds = moved([one.start_ns for one in timeline.steps]), moved([one.end_ns for one in timeline.steps])
    steps = [
        one._replace(start_ns=int(begin), end_ns=int(stop))
        for one, begin, stop in zip(timeline.steps, *bounds, strict=True)
    ]
    return replace(
        timeline,
        start=start,
        dur=end - start,
        span_ns=int(end.max()),
        steps=steps,
        window=(low, high, timeline.window[2]),
    )


@pytest.fixture(scope="module", params=list(LIMITS), ids=lambda count: f"{count:.0e}")
def large(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Path]:
    """(slices, report) of a recording of an H200 that is repeated until it has that many."""
    folder = tmp_path_factory.mktemp("large")
    kineto(H200, folder / "large.json", math.ceil(request.param / IN_H200), "source", packed=False)
    normalize([folder / "large.json"], folder / "t")
    (folder / "large.json").unlink()
    with Trace(folder / "t") as trace:
        content = trace_content(trace, name="large")
        assert content.timeline is not None
        assert len(content.timeline) == content.timeline.total >= request.param
        content = replace(content, timeline=varied(content.timeline))
    (folder / "large.html").write_text(report_html("large", [content], made_by="a test"))
    return request.param, folder / "large.html"


class Timed:
    """A page whose main thread's CPU seconds are counted."""

    def __init__(self, chromium: Any, path: Path) -> None:
        self.page = chromium.new_page(viewport={"width": 1280, "height": 900})
        self.session = self.page.context.new_cdp_session(self.page)
        self.session.send("Performance.enable", {"timeDomain": "threadTicks"})
        self.page.goto(path.absolute().as_uri(), wait_until="commit")

    def seconds(self) -> float:
        """CPU seconds of the tasks of the page so far."""
        found = {one["name"]: one["value"] for one in self.session.send("Performance.getMetrics")["metrics"]}
        return float(found["TaskDuration"])


def test_the_file_is_small(large: tuple[int, Path]) -> None:
    count, path = large
    size = path.stat().st_size / 1e6
    print(f"\n{count} slices: {size:.2f} MB")
    assert size < LIMITS[count][0]


def test_the_first_draw_is_quick(chromium: Any, large: tuple[int, Path]) -> None:
    count, path = large
    cpu, wall = [], []
    for _ in range(4):
        timed = Timed(chromium, path)
        timed.page.wait_for_selector("canvas[data-drawn]", state="attached", timeout=60_000)
        cpu.append(timed.seconds())
        wall.append(timed.page.evaluate("performance.measure('x', undefined, 'timeline drawn').duration"))
        timed.page.close()
    load = os.getloadavg()[0]
    print(f"\n{count} slices: first draw after {min(wall):.0f} ms, {min(cpu):.2f} CPU s, load {load:.1f}")
    assert min(cpu) < LIMITS[count][1]


ZOOM = """async ([whole, frames]) => {
  const { view } = document.querySelector("[data-timeline]"), { canvas } = view;
  view.act(whole ? "whole" : "typical");
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  const box = canvas.getBoundingClientRect(), began = performance.now();
  for (let frame = 0; frame < frames; frame += 1) {
    canvas.dispatchEvent(new WheelEvent("wheel", { ctrlKey: true, deltaY: frame < frames / 2 ? -80 : 80,
      cancelable: true, clientX: box.x + 700, clientY: box.y + 100 }));
    await new Promise(requestAnimationFrame);
  }
  return performance.now() - began;
}"""


def test_zooming_is_smooth(chromium: Any, large: tuple[int, Path]) -> None:
    """50 frames per second are 20 ms per frame."""
    count, path = large
    timed = Timed(chromium, path)
    timed.page.wait_for_selector("canvas[data-drawn]", state="attached", timeout=60_000)
    timed.page.locator("canvas").scroll_into_view_if_needed()
    for whole in (True, False):
        cpu, wall = [], []
        for _ in range(5):
            before = timed.seconds()
            wall.append(timed.page.evaluate(ZOOM, [whole, FRAMES]))
            cpu.append(1000 * (timed.seconds() - before) / FRAMES)
        print(
            f"\n{count} slices, from the {'whole trace' if whole else 'typical steps'}: "
            f"{1000 * FRAMES / min(wall):.0f} frames per second, {min(cpu):.1f} CPU ms per frame, "
            f"load {os.getloadavg()[0]:.1f}"
        )
        assert min(cpu) < LIMITS[count][2]
