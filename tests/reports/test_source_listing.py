"""Source in a page: each line with its number and share, text stays text, and what is missing is said."""

from __future__ import annotations

from profrun.analysis.trace.line_table import PlaceRow, PlaceTable
from profrun.contract.line_names import Line
from profrun.reports.content import Source, SourceBlock
from profrun.reports.source_listing import SourceIds, source_html
from tests.reports.documents import parse

LINES = (
    PlaceRow("f", "/me/a.py", 8, 300, 0, 0, 1, ("k",), 0.3),
    PlaceRow("<lambda>", "/me/a.py", 8, 200, 0, 0, 1, ("k",), 0.2),
)
TABLE = PlaceTable("line", 1, 1000, LINES, {})
SOURCE = Source((SourceBlock("/me/a.py", 7, ("a = 1", "b = '</pre><script>'")),), ("b.py is not shown: x",))


def test_lines_have_their_numbers_and_shares_and_stay_text() -> None:
    document = parse(source_html(SOURCE, TABLE, SourceIds(SOURCE, "t1")))
    (listing,) = document.every("pre")
    assert listing.text.splitlines() == ["    7          a = 1", "    8   50.0 % b = '</pre><script>'"]
    assert [one.attributes["class"] for one in listing.every("span") if "id" in one.attributes] == [
        "src",
        "src hot",
    ]
    assert [one.text for one in document.every("summary")] == ["a.py, lines 7 to 8: 50.0 % of the GPU time"]
    assert [one.text for one in document.every("li")] == ["b.py is not shown: x"]
    assert not document.every("script")


def test_ids_are_of_lines_that_are_in_the_page() -> None:
    ids = SourceIds(SOURCE, "t1")
    assert ids.of(Line("/me/a.py", 8, "f")) == "t1-source-0-8"
    assert ids.of(Line("/me/a.py", 9, "f")) is None
    assert SourceIds(None, "t1").of(Line("/me/a.py", 8, "f")) is None
