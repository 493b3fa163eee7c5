"""docs/trace-format.md is what the code says."""

from __future__ import annotations

from profrun.traces.docs import page
from profrun.traces.schema import TABLES
from profrun.traces.views import VIEWS
from tests.conftest import ROOT


def test_the_page_is_fresh() -> None:
    written = (ROOT / "docs" / "trace-format.md").read_text(encoding="utf-8")
    assert written == page(), "run: python -m profrun.traces.docs docs/trace-format.md"


def test_every_table_column_and_view_is_on_the_page() -> None:
    text = page()
    for table in TABLES.values():
        assert f"### {table.name}\n" in text
        for column in table.columns:
            assert f"| {column.name} |" in text or f"| **{column.name}** |" in text
    for view in VIEWS:
        assert f"### {view.name}\n" in text
