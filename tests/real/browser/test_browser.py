"""The report in a real browser: no errors, no requests, and everything that can be clicked works."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from profrun.cli import run as profrun
from tests.conftest import ROOT
from tests.real.browser.kit import Watched, drawn, exact
from tests.tracekit import make_trace

pytestmark = pytest.mark.browser
JOB = """\
name: tiny
command: python {root}/jobs/workloads/mlp.py --mode eager
collectors: [none, torch]
schedule: {{wait: 1, warmup: 1, active: 3}}
"""


@pytest.fixture(scope="module")
def cpu_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """report.html of a real run of a tiny job on this machine's CPU."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "job.yaml").write_text(JOB.format(root=ROOT))
    assert profrun(["submit", str(folder / "job.yaml"), "--runs", str(folder / "runs")]) == 0
    (report,) = folder.glob("runs/*/report.html")
    return report


def test_numbers_are_the_jsons_and_nothing_is_requested(
    chromium: Any, h200: tuple[Path, dict[str, Any]]
) -> None:
    path, summary = h200
    seen = Watched(chromium, path)
    assert exact(seen.page, "kernels", 7) == [row["total_ns"] for row in summary["kernels"]]
    assert exact(seen.page, "ops", 3) == [row["self_cpu_ns"] for row in summary["ops"]]
    utilization = seen.page.locator("[data-number='devices.utilization']")
    assert utilization.text_content() == f"{100 * summary['devices'][0]['utilization']:.1f} %"
    assert seen.quiet(path)


def test_a_click_sorts_and_a_second_turns_round(chromium: Any, h200: tuple[Path, dict[str, Any]]) -> None:
    path, summary = h200
    seen = Watched(chromium, path)
    head = seen.page.locator("table[data-table=kernels] thead th").nth(3)
    head.locator("button").click()
    calls = [row["calls"] for row in summary["kernels"]]
    assert exact(seen.page, "kernels", 3) == sorted(calls, reverse=True)
    assert head.get_attribute("aria-sort") == "descending"
    head.locator("button").press("Enter")
    assert exact(seen.page, "kernels", 3) == sorted(calls)
    seen.page.locator("table[data-table=kernels] thead th button").first.click()
    names = seen.page.locator("table[data-table=kernels] tbody .name").all_text_contents()
    assert names == seen.page.evaluate("names => [...names].sort((a, b) => a.localeCompare(b))", names)
    assert len(set(names)) == len(names)
    assert seen.quiet(path)


def test_the_filter_hides_rows_and_counts_them(chromium: Any, h200: tuple[Path, dict[str, Any]]) -> None:
    path, summary = h200
    seen = Watched(chromium, path)
    box = seen.page.locator(".tablebox", has=seen.page.locator("table[data-table=kernels]"))
    box.locator("input").fill("ELEMENTWISE")
    left = [row["total_ns"] for row in summary["kernels"] if "elementwise" in json.dumps(row).lower()]
    assert exact(seen.page, "kernels", 7) == left
    assert 0 < len(left) < len(summary["kernels"])
    assert box.locator(".matches").text_content() == f"{len(left)} of {len(summary['kernels'])} rows"
    box.locator("input").fill("")
    assert len(exact(seen.page, "kernels", 7)) == len(summary["kernels"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 800])
def test_light_and_dark_have_contrast_and_nothing_sticks_out(
    chromium: Any, h200: tuple[Path, dict[str, Any]], scheme: str, width: int
) -> None:
    path, _ = h200
    seen = Watched(chromium, path, color_scheme=scheme, viewport={"width": width, "height": 900})
    drawn(seen.page)
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    low = seen.page.evaluate(
        """() => {
          const light = text => {
            const parts = text.match(/[\\d.]+/g).slice(0, 3).map(Number).map(v => v / 255)
              .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
          };
          const behind = node => {
            while (node) {
              const colour = getComputedStyle(node).backgroundColor;
              if (!colour.endsWith(', 0)')) return colour;
              node = node.parentElement;
            }
            return 'rgb(255, 255, 255)';
          };
          const bad = new Set();
          for (const node of document.querySelectorAll('body *')) {
            const own = [...node.childNodes].some(one => one.nodeType === 3 && one.textContent.trim());
            if (!own || !node.getClientRects().length || node.closest('svg, canvas')) continue;
            const [a, b] = [light(getComputedStyle(node).color), light(behind(node))].sort((x, y) => y - x);
            if ((a + 0.05) / (b + 0.05) < 4.5) bad.add(`${node.tagName}.${node.className}`);
          }
          return [...bad];
        }"""
    )
    assert low == []  # WCAG AA for text
    shade = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (shade == "rgb(255, 255, 255)") == (scheme == "light")


def test_hostile_names_run_nothing(chromium: Any, tmp_path: Path) -> None:
    bad = "</script><img src=x onerror=\"document.title='owned'\"><b>k"
    rows = [
        ("step", "profrun.step#1", 0, 1000, "main"),
        ("api", bad, 10, 5, "main", {"parent": 0, "depth": 1}),
        ("kernel", bad, 100, 300, "stream 7", {"launch": 1}),
    ]
    make_trace(tmp_path / "t", rows).close()
    assert profrun(["report", str(tmp_path / "t"), "--out", str(tmp_path / "t.html")]) == 0
    seen = Watched(chromium, tmp_path / "t.html")
    seen.page.locator("canvas[data-drawn]").click(position={"x": 300, "y": 60})
    assert seen.page.title() == "t"
    assert seen.page.locator("img").count() == 0
    name = seen.page.locator("table[data-table=kernels] .name").first
    name.click()
    assert name.text_content() == bad
    assert seen.quiet(tmp_path / "t.html")


def test_the_tabs_of_a_run(chromium: Any, cpu_run: Path) -> None:
    seen = Watched(chromium, cpu_run)
    page = seen.page
    tabs = page.locator("[role=tab]")
    assert tabs.all_text_contents() == ["Overview", "torch"]
    trials, ops = page.locator("table[data-table=trials]"), page.locator("table[data-table=ops]")
    assert trials.is_visible()
    assert not ops.is_visible()
    tabs.nth(1).click()
    ops.wait_for(state="visible")
    trials.wait_for(state="hidden")
    page.locator("canvas[data-drawn]").wait_for()  # drawn once it is shown
    assert int(page.locator("canvas").get_attribute("data-drawn")) > 0
    tabs.nth(1).press("ArrowLeft")
    trials.wait_for(state="visible")
    ops.wait_for(state="hidden")
    document = json.loads((cpu_run.parent / "comparison.json").read_text())
    ratios = page.eval_on_selector_all(
        "table[data-table=comparisons-overhead] td[data-v]",
        "cells => cells.map(cell => Number(cell.dataset.v))",
    )
    assert ratios == [row["ratio"] for row in document["comparisons"] if row["kind"] == "overhead"]
    assert ratios
    assert seen.quiet(cpu_run)


def test_without_javascript_everything_is_there(chromium: Any, cpu_run: Path) -> None:
    seen = Watched(chromium, cpu_run, java_script_enabled=False)
    assert seen.page.locator("table[data-table=trials]").is_visible()
    assert seen.page.locator("table[data-table=ops]").is_visible()
