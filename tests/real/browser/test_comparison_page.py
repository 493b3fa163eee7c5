"""The page of a comparison in a real browser: quiet, sortable, never wider than the window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.real.browser.kit import Watched, exact

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(
    ("width", "scheme"), [(1280, "light"), (1280, "dark"), (800, "light"), (390, "dark")]
)
def test_the_page_is_quiet_and_not_wider_than_the_window(
    chromium: Any, comparison: Path, width: int, scheme: str
) -> None:
    seen = Watched(chromium, comparison, viewport={"width": width, "height": 900}, color_scheme=scheme)
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    bars = seen.page.locator("table[data-table=waterfall-step] svg rect")
    assert bars.count() == seen.page.locator("table[data-table=waterfall-step] tbody tr").count()
    assert seen.quiet(comparison)


def test_kernels_sort_and_filter(chromium: Any, comparison: Path) -> None:
    page = Watched(chromium, comparison).page
    before = exact(page, "kernel-changes", 3)
    page.locator("table[data-table=kernel-changes] thead button").nth(3).click()
    assert sorted(before) == sorted(exact(page, "kernel-changes", 3))
    assert exact(page, "kernel-changes", 3) in (sorted(before), sorted(before, reverse=True))
    page.locator("#c0-kernels input[type=search]").fill("norm")
    assert len(exact(page, "kernel-changes", 3)) < len(before)
