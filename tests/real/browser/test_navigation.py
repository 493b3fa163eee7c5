"""Tabs, links and the address of the page; the flame graph by mouse and keyboard; copied tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profrun.runner.report import write_run_report
from profrun.store.state import read_state
from tests.real.browser.kit import Watched, becomes, eventually
from tests.reports.runs import finished_run

pytestmark = pytest.mark.browser


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """The report of a run with several tabs."""
    run, _ = finished_run(tmp_path)
    return write_run_report(read_state(run))


def shown(page: Any) -> tuple[str, str]:
    """(id of the tab that is shown, fragment of the address)."""
    (found,) = page.eval_on_selector_all(
        "[role=tabpanel]", "all => all.filter(one => !one.hidden).map(one => one.id)"
    )
    return str(found), str(page.evaluate("location.hash"))


def test_a_tab_changes_the_address_and_back_goes_back(chromium: Any, report: Path) -> None:
    seen = Watched(chromium, report)
    page = seen.page
    tabs = page.locator("[role=tab]")
    assert tabs.nth(0).text_content() == "Overview"
    assert shown(page) == ("run", "")
    page.locator("#tab-t1").click()
    becomes(page, lambda: shown(page), ("t1", "#t1"))
    page.locator("#t1 .sections a", has_text="Steps").click()
    becomes(page, lambda: shown(page), ("t1", "#t1-steps"))
    page.go_back()
    becomes(page, lambda: shown(page), ("t1", "#t1"))
    page.go_back()
    becomes(page, lambda: shown(page), ("run", ""))
    tabs.nth(0).press("ArrowRight")
    becomes(page, lambda: shown(page), ("c0", "#c0"))
    assert page.evaluate("document.activeElement.id") == "tab-c0"
    assert seen.quiet(report)


@pytest.mark.parametrize(
    ("link", "tab"),
    [("#t1", "t1"), ("#t1-steps", "t1"), ("#t1-slice-0", "t1"), ("#nowhere", "run"), ("#%E0%A4%A", "run")],
)
def test_a_link_opens_its_tab(chromium: Any, report: Path, link: str, tab: str) -> None:
    seen = Watched(chromium, report, link)
    assert shown(seen.page) == (tab, link)  # the script of the page has run before the page counts as loaded
    assert not seen.complaints


def test_the_links_stay_in_view_and_lead_to_the_top(chromium: Any, h200: tuple[Path, dict[str, Any]]) -> None:
    path, _ = h200
    page = (seen := Watched(chromium, path, "#t0-kernels")).page
    eventually(page, "document.querySelector('#t0-kernels h3').getBoundingClientRect().y < 300")
    links = page.locator(".sections").bounding_box()
    assert links["y"] >= 0
    heading = page.locator("#t0-kernels h3").bounding_box()
    assert links["y"] + links["height"] <= heading["y"]
    page.locator(".sections .totop").click()
    eventually(page, "scrollY === 0")
    assert seen.quiet(path)


def test_a_finding_opens_where_it_is_linked(chromium: Any, h200: tuple[Path, dict[str, Any]]) -> None:
    path, _ = h200
    page = (seen := Watched(chromium, path)).page
    link = page.locator(".verdict a")
    finding = page.locator(link.get_attribute("href"))
    assert finding.evaluate("one => one.open") is False
    link.click()
    eventually(page, f"document.querySelector('{link.get_attribute('href')}').open")
    assert finding.locator("a[href*='-slice-']").count() > 0
    assert seen.quiet(path)


def test_the_flame_graph_zooms_searches_and_adds_up(chromium: Any, h200: tuple[Path, dict[str, Any]]) -> None:
    path, _ = h200
    page = (seen := Watched(chromium, path)).page
    flame = page.locator(".flame")
    flame.get_by_role("button", name="by range and op").click() if flame.get_by_role(
        "button", name="by range and op"
    ).count() else None
    frames = flame.locator(".frame")
    whole = frames.count()
    assert whole > 10
    widths = page.evaluate(
        """() => {
          const rows = new Map();
          for (const one of document.querySelectorAll('.flame .frame')) {
            const top = one.style.top;
            rows.set(top, (rows.get(top) || 0) + parseFloat(one.style.width));
          }
          return [...rows.values()];
        }"""
    )
    assert all(width <= 100.001 for width in widths)
    assert widths[0] == pytest.approx(100)
    assert widths[1] > 90  # what is too narrow to be seen is not drawn
    wide = frames.nth(1)
    name = wide.text_content()
    wide.click()
    assert page.evaluate("document.activeElement.textContent") == name
    assert flame.locator(".frame.above").count() == 1
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent") != name
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.textContent") == name
    page.keyboard.press("Escape")
    assert frames.count() == whole
    flame.locator("input").fill("GEMM")
    assert "paths found" in flame.locator(".told").text_content()
    assert 0 < flame.locator(".frame:not(.miss)").count() < whole
    flame.get_by_role("button", name="CPU time").click()
    assert "CPU time" in flame.locator(".told").text_content()
    assert seen.quiet(path)


def test_a_table_is_copied_as_it_is_sorted_and_filtered(
    chromium: Any, h200: tuple[Path, dict[str, Any]]
) -> None:
    path, _ = h200
    page = (seen := Watched(chromium, path)).page
    box = page.locator(".tablebox", has=page.locator("table[data-table=categories]"))
    page.evaluate("document.addEventListener('copy', one => { window.copied = one.target.value; })")
    box.locator("button.copy").click()
    lines = page.evaluate("window.copied").strip().split("\n")
    rows = box.locator("tbody tr").count()
    assert len(lines) == rows + 2
    assert lines[0].startswith("| category | kernels |")
    assert lines[1] == "| --- | ---: | ---: | ---: | ---: |"
    assert seen.quiet(path)
