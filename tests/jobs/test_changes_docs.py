"""The page of changes is up to date."""

from __future__ import annotations

from profrun.contract.changes import CHANGES
from profrun.jobs import changes_docs


def test_the_page_is_fresh() -> None:
    page = changes_docs.PAGE.read_text(encoding="utf-8")
    assert page == changes_docs.renewed(page), "stale: run python -m profrun.jobs.changes_docs"
    lines = page.splitlines()
    for name in CHANGES:
        assert any(line.startswith((f"| `{name}` ", f"| `{name}=")) for line in lines), name


def test_what_stands_outside_the_markers_stays() -> None:
    page = changes_docs.renewed("before\n<!-- changes -->\nold\n<!-- end -->\nafter\n")
    assert page.startswith("before\n<!-- changes -->\n| change |")
    assert page.endswith("|\n<!-- end -->\nafter\n")
    assert "\nold\n" not in page
    assert r"| `loader-workers=4` | DataLoaders get 4 persistent worker processes" in page
