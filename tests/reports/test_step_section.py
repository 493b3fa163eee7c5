"""Steps in the page: a bar each for a few, a histogram and the outliers by name for many."""

from __future__ import annotations

from tests.analysis.kit import memory_trace, run, step
from tests.analysis.sampled import World, wandering
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


def test_a_run_without_steps_is_one_bar_and_no_table_of_steps() -> None:
    rows = [run(0, 1000), ("op", "aten::mm", 0, 600, "main")]
    (section,) = page(memory_trace(rows)).every("section", id="t0-steps")
    assert section.every("h3")[0].text == "The run"
    assert bars(section) == ["the run"]
    assert "step" not in section.text


def test_the_rest_of_the_page_of_a_run_says_of_the_run() -> None:
    launch = ("api", "cudaLaunchKernel", 10, 20, "main", {"parent": 0, "depth": 1})
    rows = [run(0, 1000), launch, ("kernel", "gemm", 100, 300, "stream 7", {"launch": 1})]
    document = page(memory_trace(rows))
    (verdict,) = document.every("p", class_="verdict")
    assert verdict.text.startswith(
        "The recorded run takes 1 us; what the profiler adds is not known; no steps were"
    )
    assert "of 1 us, the run with its GPU work" in document.every("section", id="t0-gpus")[0].text
    for name in ("gpus", "steps", "timeline", "kernels", "runtime"):
        (section,) = document.every("section", id=f"t0-{name}")
        assert "step" not in section.text.replace("profrun.step", ""), name
    assert "calls in the run" in document.every("section", id="t0-kernels")[0].text


def test_why_steps_vary_is_a_table_of_shares() -> None:
    """The clock wanders by 10 % and the steps with it."""
    side = World(clock=wandering(201, 900, 1000)).side()
    trace = memory_trace([step(0, 0, 1000)], meta={"collector": "none"}, side=side)
    (section,) = page(trace).every("section", id="t0-steps")
    table = section.every("table")[-1]
    cells = [[cell.text for cell in (*row.every("th"), *row.every("td"))] for row in table.every("tr")]
    assert cells[0][0] == "goes with"
    assert cells[0][1].endswith("steps after warm-up")
    assert cells[1][0] == "the SM clock"
    assert int(cells[1][1].split()[0]) > 90
    assert cells[-1][0] == "not explained"


def test_without_samples_there_is_no_such_table() -> None:
    assert "goes with" not in shown(*[1000] * 20).text
