"""The timeline in Chromium: what keys, pointer and links do; its words and numbers are those of the trace."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profrun.analysis.trace.timeline_slices import timeline_slices
from profrun.contract.units import count_text
from profrun.reports.page import report_html
from profrun.runner.report import trace_content
from profrun.traces.trace import Trace
from tests.real.browser.kit import Watched, becomes, eventually
from tests.tracekit import make_trace

pytestmark = pytest.mark.browser
BAD = "k</script><img src=x onerror=alert(1)>&\"'\x1b[31m"


def opened(chromium: Any, path: Path, address: str = "", **context: Any) -> tuple[Watched, Any]:
    """A page whose timeline is drawn, and its canvas."""
    seen = Watched(chromium, path, address, **context)
    seen.page.wait_for_selector("[data-timeline] canvas[data-drawn]", state="attached")
    canvas = seen.page.locator("[data-timeline] canvas").first
    canvas.scroll_into_view_if_needed()
    settle(seen.page)
    return seen, canvas


def settle(page: Any) -> None:
    """Wait until the next two frames are drawn."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def view(canvas: Any) -> tuple[float, float]:
    return tuple(json.loads(canvas.get_attribute(f"data-{key}")) for key in ("from", "to"))


def place(page: Any, slice_id: int) -> tuple[float, float]:
    """The middle of a slice on the screen."""
    script = """id => {
      const view = document.querySelector("[data-timeline]").view, box = view.canvas.getBoundingClientRect();
      const [x, y, width, height] = view.painter.box(view.data.withId(id));
      return [box.x + x + width / 2, box.y + y + height / 2];
    }"""
    return tuple(page.evaluate(script, slice_id))


def test_keys_buttons_and_the_wheel_move_the_view(chromium: Any, h200: tuple[Path, dict[str, Any]]) -> None:
    seen, canvas = opened(chromium, h200[0])
    page, home = seen.page, view(canvas)
    span = page.evaluate("document.querySelector('[data-timeline]').view.data.span")
    canvas.press("0")
    assert view(canvas) == (0, span)
    canvas.press("t")
    assert view(canvas) == home
    for keys, button in (("w", "in"), ("+", "in"), ("s", "out"), ("-", "out")):
        canvas.press("t")
        canvas.press(keys)
        pressed = view(canvas)
        canvas.press("t")
        page.mouse.move(5, 5)
        page.locator(f"[data-do={button}]").first.click()
        assert view(canvas) == pytest.approx(pressed, abs=1)
        wide = (home[1] - home[0]) * (0.5 if button == "in" else 2)
        assert pressed[1] - pressed[0] == pytest.approx(min(wide, span))
    canvas.press("t")
    canvas.press("w")
    before = view(canvas)
    for there, back in (("d", "a"), ("ArrowRight", "ArrowLeft")):
        canvas.press(there)
        assert view(canvas)[0] > before[0]
        canvas.press(back)
        assert view(canvas) == pytest.approx(before, abs=1)
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 600, box["y"] + 100)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    eventually(
        page,
        "most => (view => view.to - view.from < most)(document.querySelector('[data-timeline]').view)",
        before[1] - before[0],
    )
    page.keyboard.down("Shift")
    page.mouse.down()
    page.mouse.move(box["x"] + 500, box["y"] + 100, steps=3)
    page.mouse.up()
    page.keyboard.up("Shift")
    assert page.locator(".picked table").count() == 0  # it moved and measured nothing
    canvas.press("[")
    first = view(canvas)
    canvas.press("]")
    assert view(canvas)[0] > first[0]
    assert seen.quiet(h200[0])


def test_the_plain_wheel_scrolls_the_page(chromium: Any, h200: tuple[Path, dict[str, Any]]) -> None:
    seen, canvas = opened(chromium, h200[0])
    page, before, at = seen.page, view(canvas), seen.page.evaluate("scrollY")
    canvas.click(position={"x": 600, "y": 60})
    page.mouse.wheel(0, 300)
    eventually(page, "at => scrollY > at", at)
    assert view(canvas) == before


def test_a_click_says_what_a_slice_is_and_follows_its_launch(
    chromium: Any, h200: tuple[Path, dict[str, Any]]
) -> None:
    with Trace(h200[0].with_suffix("")) as trace:
        timeline = timeline_slices(trace)
        assert timeline is not None
        window = (timeline.start_ns + timeline.window[0], timeline.start_ns + timeline.window[1])
        kernel, name, ts, dur, launch = trace.sql(
            "SELECT slice, name, ts_ns, dur_ns, launch FROM slices WHERE kind = 'kernel' "
            "AND launch IS NOT NULL AND ts_ns BETWEEN ? AND ? ORDER BY dur_ns DESC LIMIT 1",
            window,
        ).rows[0]
        call = trace.sql("SELECT name FROM slices WHERE slice = ?", (launch,)).scalar()
        siblings = trace.sql("SELECT count(*) FROM slices WHERE launch = ?", (launch,)).scalar()
    seen, canvas = opened(chromium, h200[0])
    page = seen.page
    x, y = place(page, kernel)
    page.mouse.move(x, y)
    tip = page.locator(".tip")
    becomes(page, lambda: f"launched by {call}" in tip.text_content(), True)
    assert name[:100] in tip.text_content()
    page.mouse.click(x, y)
    picked = page.locator(".picked")
    text = picked.text_content()
    assert picked.locator("code").text_content() == name
    assert f"{dur:,}".replace(",", " ") + " ns" in text
    assert f"{(ts - timeline.start_ns) / 1e6:.6f}".rstrip("0") in text
    assert page.evaluate("document.querySelector('[data-timeline]').view.linked.length") == 1
    picked.get_by_role("button", name=call).click()
    assert picked.locator("code").text_content() == call
    links = page.evaluate(
        "(() => { const view = document.querySelector('[data-timeline]').view;"
        " return view.linked.map(pair => pair.map(at => view.data.slice[at])); })()"
    )
    assert len(links) == siblings
    assert [launch, kernel] in links
    canvas.press("Escape")
    assert picked.locator("code").count() == 0
    assert seen.quiet(h200[0])


def test_a_name_can_be_copied(chromium: Any, h200: tuple[Path, dict[str, Any]]) -> None:
    seen, canvas = opened(chromium, h200[0], permissions=["clipboard-read", "clipboard-write"])
    canvas.focus()
    canvas.press(".")
    name = seen.page.locator(".picked code").text_content()
    seen.page.get_by_role("button", name="copy name").click()
    seen.page.get_by_role("button", name="copied").wait_for()
    assert seen.page.evaluate("navigator.clipboard.readText()") == name
    assert seen.quiet(h200[0])


def test_search_counts_and_goes_from_hit_to_hit(chromium: Any, h200: tuple[Path, dict[str, Any]]) -> None:
    with Trace(h200[0].with_suffix("")) as trace:
        hits = trace.sql(
            "SELECT slice FROM slices WHERE lower(name) LIKE '%launchkernel%' ORDER BY ts_ns, slice"
        )
        wanted = [row[0] for row in hits.rows]
    seen, canvas = opened(chromium, h200[0])
    page = seen.page
    canvas.press("/")
    page.keyboard.type("LaunchKernel")
    assert page.locator(".hits").text_content() == f"{len(wanted)} slices"

    def chosen() -> int:
        return int(
            page.evaluate(
                "(view => view.data.slice[view.chosen])(document.querySelector('[data-timeline]').view)"
            )
        )

    page.keyboard.press("Enter")
    assert chosen() == wanted[0]
    page.keyboard.press("Enter")
    assert chosen() == wanted[1]
    assert page.locator(".hits").text_content() == f"2 of {len(wanted)}"
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Shift+Enter")
    assert chosen() == wanted[-1]
    low, high = view(canvas)
    x, _ = place(page, wanted[-1])
    assert low < high
    assert 0 < x < 1280
    page.keyboard.press("Escape")
    assert page.locator(".hits").text_content() == ""
    canvas.press("/")
    page.keyboard.type("no such name")
    assert page.locator(".hits").text_content() == "0 slices"
    page.keyboard.press("Enter")
    assert seen.quiet(h200[0])


def test_a_dragged_stretch_is_summed_as_sql_sums_it(chromium: Any, h200: tuple[Path, dict[str, Any]]) -> None:
    seen, canvas = opened(chromium, h200[0])
    page, box = seen.page, canvas.bounding_box()
    page.mouse.move(box["x"] + 400, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + 700, box["y"] + 12, steps=4)
    page.mouse.up()
    low, high = page.evaluate(
        "(range => [range.from, range.to])(document.querySelector('[data-timeline]').view.range)"
    )
    shown = page.evaluate(
        "[...document.querySelectorAll('.sums tbody tr')].map(row => [row.querySelector('.name').title,"
        " Number(row.cells[2].dataset.v), Number(row.cells[3].dataset.v)])"
    )
    with Trace(h200[0].with_suffix("")) as trace:
        timeline = timeline_slices(trace)
        assert timeline is not None
        low, high = low + timeline.start_ns, high + timeline.start_ns
        inside = f"ts_ns < {high} AND (ts_ns + dur_ns > {low} OR dur_ns = 0 AND ts_ns >= {low})"
        time = f"sum(least(ts_ns + dur_ns, {high}) - greatest(ts_ns, {low}))::BIGINT"
        expected = trace.sql(
            f"SELECT name, count(*), {time} FROM slices WHERE {inside} GROUP BY name, kind"
        ).rows
    assert 5 < len(shown) <= 100
    assert {tuple(row) for row in shown} <= {*expected}
    counted = f"{count_text(sum(row[1] for row in expected))} slices of"
    assert counted in page.locator(".picked").text_content()
    assert seen.quiet(h200[0])


def test_a_link_shows_its_slice(chromium: Any, h200: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    with Trace(h200[0].with_suffix("")) as trace:
        wanted, name = trace.sql(
            "SELECT slice, name FROM slices WHERE kind = 'kernel' ORDER BY slice LIMIT 1"
        ).rows[0]
        pages = [trace_content(trace, name=name) for name in ("one", "two")]
    path = tmp_path / "two.html"
    path.write_text(report_html("two", pages, made_by="a test"))
    seen = Watched(chromium, path, f"#t1-slice-{wanted}")
    page = seen.page
    page.wait_for_selector("[data-timeline=t1][data-followed]")
    assert page.locator("#t1 .picked code").text_content() == name
    assert page.locator("#tab-t1").get_attribute("aria-selected") == "true"
    assert page.evaluate("location.hash") == f"#t1-slice-{wanted}"
    page.evaluate("location.hash = '#t0-slice-987654321'")
    page.wait_for_selector("[data-timeline=t0][data-followed]")
    assert "987654321 is not on the timeline" in page.locator("#t0 .picked").text_content()
    assert not seen.complaints


def test_hostile_names_stay_text(chromium: Any, tmp_path: Path) -> None:
    rows = [
        ("step", "profrun.step#1", 0, 1000, "main"),
        ("api", BAD, 10, 5, "main", {"parent": 0, "depth": 1}),
        ("kernel", BAD, 100, 300, "stream 7", {"launch": 1, "kernels.grid_x": 4}),
        ("kernel", "over", 200, 300, "stream 7", {"launch": 1}),
        ("op", "instant", 500, 0, "main", {"parent": 0, "depth": 1}),
    ]
    samples = [
        {"track": 0, "ts_ns": 100 * n, "name": BAD, "value": 1e9 * n, "unit": "byte"} for n in range(9)
    ]
    path = tmp_path / "bad.html"
    with make_trace(tmp_path / "t", rows, side={"counters": samples}) as trace:
        path.write_text(report_html(BAD, [trace_content(trace, name=BAD)], made_by="a test"))
    seen, _ = opened(chromium, path)
    page = seen.page
    x, y = place(page, 2)
    page.mouse.move(x, y)
    becomes(page, lambda: BAD in page.locator(".tip").text_content(), True)
    page.mouse.click(x, y)
    assert page.locator(".picked code").text_content() == BAD
    assert page.locator("img").count() == 0
    assert seen.quiet(path)


def test_slices_are_chosen_with_keys_alone(chromium: Any, h200: tuple[Path, dict[str, Any]]) -> None:
    seen, canvas = opened(chromium, h200[0])
    chosen = "(view => view.data.slice[view.chosen])(document.querySelector('[data-timeline]').view)"
    canvas.focus()
    canvas.press(".")
    first = seen.page.evaluate(chosen)
    canvas.press(".")
    assert seen.page.evaluate(chosen) > first
    canvas.press(",")
    assert seen.page.evaluate(chosen) == first
    assert seen.page.locator(".picked code").text_content()
    assert seen.quiet(h200[0])


def test_a_trace_of_one_instant_is_drawn(chromium: Any, tmp_path: Path) -> None:
    path = tmp_path / "one.html"
    with make_trace(tmp_path / "t", [("op", "mark", 5, 0, "main")]) as trace:
        path.write_text(report_html("one", [trace_content(trace, name="one")], made_by="a test"))
    seen, canvas = opened(chromium, path)
    assert canvas.get_attribute("data-drawn") == "1"
    canvas.press("w")
    canvas.press(".")
    assert seen.page.locator(".picked code").text_content() == "mark"
    assert seen.quiet(path)


def test_a_browser_that_cannot_unpack_says_so(chromium: Any, h200: tuple[Path, dict[str, Any]]) -> None:
    page = chromium.new_page()
    page.add_init_script("delete window.DecompressionStream")
    page.goto(h200[0].as_uri())
    said = page.locator(".timeline .note", has_text="cannot be shown")
    said.wait_for()
    assert "DecompressionStream" in said.text_content()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_are_those_of_the_theme(
    chromium: Any, h200: tuple[Path, dict[str, Any]], scheme: str
) -> None:
    seen, _ = opened(chromium, h200[0], color_scheme=scheme)
    page = seen.page
    kernel = page.evaluate(
        """() => {
          const { painter, data, canvas } = document.querySelector("[data-timeline]").view, boxes = [];
          for (let at = 0; at < data.count; at += 1) {
            if (data.categories[data.category[at]] === "kernel") boxes.push(painter.box(at));
          }
          const inside = box => box[0] > painter.left && box[0] + box[2] < painter.width;
          const [x, y, width] = boxes.filter(inside).sort((a, b) => b[2] - a[2])[0], ratio = devicePixelRatio;
          const image = canvas.getContext("2d").getImageData((x + width - 4) * ratio, (y + 2) * ratio, 1, 1);
          const named = getComputedStyle(document.documentElement).getPropertyValue("--kernel");
          return [[...image.data.slice(0, 3)], named.trim()];
        }"""
    )
    assert kernel[0] == [int(kernel[1][at : at + 2], 16) for at in (1, 3, 5)]
    other = "dark" if scheme == "light" else "light"
    page.emulate_media(color_scheme=other)
    ground = "(document.querySelector('[data-timeline]').view.painter.ground & 255)"
    eventually(page, f"{ground} < 60" if other == "dark" else f"{ground} >= 60")
    assert seen.quiet(h200[0])


def test_without_javascript_a_sentence_stands_there(chromium: Any, h200: tuple[Path, dict[str, Any]]) -> None:
    page = Watched(chromium, h200[0], java_script_enabled=False).page
    assert "needs a browser with JavaScript" in page.locator(".timeline noscript").inner_text()
    assert page.locator("canvas").count() == 0


def test_print_shows_the_picture_and_no_buttons(chromium: Any, h200: tuple[Path, dict[str, Any]]) -> None:
    seen, canvas = opened(chromium, h200[0])
    seen.page.emulate_media(media="print")
    assert canvas.is_visible()
    assert not seen.page.locator(".timeline .tools").is_visible()
    assert len(seen.page.pdf()) > 20_000


def test_two_typical_steps_move_together(
    chromium: Any, h200: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    with Trace(h200[0].with_suffix("")) as trace:
        pages = [trace_content(trace, name=name) for name in ("one", "two", "three")]
    timeline = pages[0].timeline
    assert timeline is not None
    later = next(one for one in timeline.steps if one.start_ns != timeline.window[0])
    pages[1] = replace(pages[1], timeline=replace(timeline, window=(later.start_ns, later.end_ns, "another")))
    path = tmp_path / "three.html"
    path.write_text(report_html("three", pages, made_by="a test"))
    seen = Watched(chromium, path, "#t0-timeline")
    page = seen.page
    page.locator("#tab-aligned").click()
    page.wait_for_selector(".aligned[data-ready='t0 t1']")
    becomes(page, page.locator(".aligned canvas[data-drawn]").count, 2)
    above, below = (page.locator(".aligned canvas").nth(number) for number in (0, 1))
    first = next(one for one in timeline.steps if one.start_ns == timeline.window[0])
    longest = max(one.end_ns - one.start_ns for one in (first, later))
    assert view(above) == (first.start_ns, first.start_ns + longest)
    assert view(below) == (later.start_ns, later.start_ns + longest)
    above.press("w")
    above.press("a")
    shift = later.start_ns - first.start_ns
    assert view(below) == pytest.approx([one + shift for one in view(above)], abs=1)
    assert view(below)[1] - view(below)[0] < longest
    page.locator(".aligned input").nth(1).fill("gemm")
    assert page.locator(".aligned input").nth(0).input_value() == "gemm"
    page.locator("select[data-place=below]").select_option("t2")
    page.wait_for_selector(".aligned[data-ready='t0 t2']")
    assert not seen.complaints


@pytest.mark.parametrize("width", [390, 800])
def test_a_narrow_page_holds_the_timeline(
    chromium: Any, h200: tuple[Path, dict[str, Any]], width: int
) -> None:
    seen, canvas = opened(chromium, h200[0], viewport={"width": width, "height": 800})
    assert seen.page.evaluate("document.querySelector('.timeline').scrollWidth") <= width
    assert canvas.bounding_box()["width"] > width - 60
