"""The flame graph by line: kernels of a path, search, source; by mouse and by keyboard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.real.browser.kit import Watched, becomes, eventually

pytestmark = pytest.mark.browser
GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x256x64"
FUSED = "triton_poi_fused_gelu_mul_0"


def listed(page: Any) -> list[list[str]]:
    """The rows of the list of kernels below the graph."""
    return list(
        page.evaluate(
            "[...document.querySelectorAll('table[data-table=path-kernels] tbody tr')]"
            ".map(row => [...row.cells].map(cell => cell.textContent))"
        )
    )


def frame(page: Any, text: str) -> Any:
    return page.locator(".flame .frame").filter(has_text=text).first


def test_a_click_lists_the_kernels_of_a_line(chromium: Any, lines: Path) -> None:
    page = (seen := Watched(chromium, lines)).page
    assert page.locator(".flame button[aria-pressed=true]").all_text_contents() == ["by line", "GPU time"]
    assert listed(page) == []
    frame(page, "model.py:20 forward").click()
    assert listed(page) == [
        [f"{GEMM}_bwd", "backward", "4", "96 us", "66.7 %", "15.6 %"],
        [GEMM, "forward", "4", "48 us", "33.3 %", "7.8 %"],
    ]
    said = page.locator(".flame .told").text_content()
    assert said.endswith(": 144 us per step of GPU time = 23.4 % of all, 48.0 % of what called it; "
                         "backward 66.7 % of it; 8 launches per step")  # fmt: skip
    assert page.locator(".flame .frame.backward").count() == 1
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    assert listed(page) == []
    assert seen.quiet(lines)


def test_a_kernel_that_lines_share_is_launched_once_in_what_holds_them_all(
    chromium: Any, lines: Path
) -> None:
    page = (seen := Watched(chromium, lines)).page
    frame(page, "mlp").click()
    row = next(one for one in listed(page) if one[0] == FUSED)
    assert row[1:4] == ["forward", "4", "12 us"]
    frame(page, "model.py:21 forward").click()
    assert [one[:4] for one in listed(page)] == [[FUSED, "forward", "4", "6.003 us"]]
    assert seen.quiet(lines)


def test_the_keyboard_alone_does_it_all(chromium: Any, lines: Path) -> None:
    page = (seen := Watched(chromium, lines)).page
    page.locator(".flame .frame").first.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.textContent") == "model.py:20 forward"
    assert [row[0] for row in listed(page)] == [f"{GEMM}_bwd", GEMM]
    page.keyboard.press("Tab")  # the list is a region that scrolls
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == (
        "GPU work of model.py:20 forward"
    )
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("source: model.py")
    assert seen.quiet(lines)


def test_a_search_marks_what_it_finds_and_says_its_share(chromium: Any, lines: Path) -> None:
    page = (seen := Watched(chromium, lines)).page
    search = page.locator(".flame input")
    search.fill("GELU")
    told = page.locator(".flame .told")
    assert told.text_content().startswith("4 paths found: 12 us per step = 2.0 % of all GPU time. ")
    marked = page.locator(".flame .frame.hit")
    assert {text.partition(":")[0] for text in marked.all_text_contents()} == {FUSED}
    search.fill("program/train.py")  # the path of the file, of which the graph shows the end only
    assert marked.all_text_contents() != []
    assert all(text.startswith("train.py:") for text in marked.all_text_contents())
    search.fill("")
    assert marked.count() == 0
    assert seen.quiet(lines)


def test_the_other_trees_list_kernels_too_and_that_of_lines_has_no_time_of_the_cpu(
    chromium: Any, lines: Path
) -> None:
    page = (seen := Watched(chromium, lines)).page
    cpu = page.get_by_role("button", name="CPU time", exact=True)
    assert cpu.is_disabled()
    page.get_by_role("button", name="by range and op").click()
    assert cpu.is_enabled()
    frame(page, "aten::softmax").click()
    assert [row[:3] for row in listed(page)] == [
        ["at::native::softmax_warp_forward<c10::BFloat16>", "4", "10 us"]
    ]
    cpu.click()
    page.get_by_role("button", name="by line").click()
    assert page.locator(".flame button[aria-pressed=true]").all_text_contents() == ["by line", "GPU time"]
    page.get_by_role("button", name="by module").click()
    frame(page, "layers.*").click()
    assert "does not have the kernels" in page.locator(".flame .panel").text_content()
    assert seen.quiet(lines)


def test_the_source_of_a_line_shows_below_the_graph_and_from_the_table(chromium: Any, lines: Path) -> None:
    page = (seen := Watched(chromium, lines)).page
    frame(page, "model.py:20 forward").click()
    chosen = page.locator(".flame .panel .src.chosen")
    assert chosen.text_content().split() == ["20", "23.4", "%", "hidden", "=", "self.up(x)"]
    link = page.locator("table[data-table=by-line] a", has_text="model.py:12 forward")
    assert page.locator("#t0-source-0-12").is_hidden()
    link.click()
    becomes(page, lambda: page.evaluate("location.hash"), "#t0-source-0-12")
    page.locator("#t0-source-0-12").wait_for(state="visible")
    eventually(
        page,
        "(() => { const box = document.querySelector('#t0-source-0-12').getBoundingClientRect();"
        "return box.top > 60 && box.bottom < innerHeight; })()",
    )
    assert link.text_content() == "model.py:12 forward"
    assert seen.quiet(lines)


def test_frames_stay_under_the_pointer_on_a_narrow_screen(chromium: Any, lines: Path) -> None:
    """What is said of a frame takes several lines there, and must not move the frames."""
    page = (seen := Watched(chromium, lines, viewport={"width": 400, "height": 900})).page
    one = frame(page, "model.py:20")
    one.scroll_into_view_if_needed()
    before = one.bounding_box()
    one.hover()
    eventually(page, "document.querySelector('.told').textContent.includes('backward')")
    assert one.bounding_box() == before
    assert seen.quiet(lines)
