"""The history page: changes first, hostile names stay text, one trial proves nothing."""

from __future__ import annotations

from profrun.analysis.compare.history import Change
from profrun.reports.content import HistoryContent, HistoryRun, HistorySeries
from profrun.reports.history_page import history_html
from tests.reports.documents import parse, rows_of

BAD = "a</script><img src=x onerror=alert(1)>"


def run(name: str, step: int, change: Change | None = None, link: str | None = None) -> HistoryRun:
    return HistoryRun(name, 1_790_000_000_000_000_000, link, step, step - 1, step + 1, 3, 30, change)


def test_changes_come_first_and_names_stay_text() -> None:
    slower = Change("slower", 1.2, (1.1, 1.3), versions=("torch: 2.10 -> 2.11",))
    runs = [run("r1", 1000), run("r2", 1200, slower, "r2/report.html")]
    content = HistoryContent("runs", 3, [HistorySeries("train", BAD, "torch", runs)], [f"r3: {BAD}"])
    document = parse(history_html(content, made_by="a test"))
    assert not document.every("img")
    (first,) = document.every("ul", class_="quality")
    assert first.text == f"slower train, {BAD}: 1 us -> 1.2 us, +20.0 % (+10.0 to +30.0 %) in r2"
    assert first.every("a")[0].attributes["href"] == "r2/report.html"
    newest, oldest = rows_of(document, "runs-0-0")
    assert newest[7:] == ["slower +20.0 % (+10.0 to +30.0 %)", "torch: 2.10 -> 2.11"]
    assert oldest[7] == " first run"
    assert "timed under torch" in document.text
    assert document.every("circle", class_="dot slower")


def test_without_a_proven_change_the_page_says_so() -> None:
    single = Change("inconclusive", 1.2)
    content = HistoryContent(
        "runs", 2, [HistorySeries("train", "a", "none", [run("r1", 1000), run("r2", 1200, single)])]
    )
    document = parse(history_html(content, made_by="a test"))
    assert "No step time changed" in document.text
    assert rows_of(document, "runs-0-0")[0][7] == "inconclusive +20.0 %, one trial proves nothing"
