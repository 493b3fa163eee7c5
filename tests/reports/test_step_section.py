"""Steps in the page: a bar each for a few, a histogram and the outliers by name for many."""

from __future__ import annotations

from tests.analysis.kit import memory_trace, step
from tests.reports.documents import Node, page, rows_of


def shown(*times: int) -> Node:
    """The section on steps of these times."""
    rows, at = [], 0
    for number, time in enumerate(times):
        rows.append(step(number, at, time))
        at += time
    (section,) = page(memory_trace(rows)).every("section", id="t0-steps")
    return section


def bars(section: Node) -> list[str]:
    (table,) = section.every("table", class_="bars")
    return [row.every("th")[0].text for row in table.every("tbody")[0].every("tr")]


def test_a_few_steps_have_a_bar_each() -> None:
    assert bars(shown(*[1000] * 20)) == [str(number) for number in range(20)]


def test_many_steps_are_a_histogram_with_the_outliers_by_name() -> None:
    section = shown(*range(1000, 1030), 9000)
    assert bars(section) == ["15", "30"]  # a typical one, and the one that stands out
    (caption, *_) = section.every("figcaption")
    assert caption.text == (
        "31 steps: median 1.015 us, half of them 1.008 us to 1.022 us. "
        "1 step far outside of that and not in the chart: step 30: 9 us."
    )
    counted = sum(int(bar.text.split()[0]) for bar in section.every("svg", class_="chart")[0].every("rect"))
    assert counted == 30
    assert len(rows_of(section, "steps")) == 31
