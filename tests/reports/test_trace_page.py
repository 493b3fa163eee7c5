"""The HTML report of a trace: its numbers are the summary's, doubts come first, cuts are said."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from profrun.analysis.trace.summary import summarize
from profrun.collectors.normalize import normalize
from profrun.reports.content import content_of
from profrun.reports.html_table import Column, table
from profrun.reports.page import report_html
from profrun.reports.timeline import timeline_of
from profrun.traces.trace import Trace
from tests.conftest import ROOT
from tests.reports.documents import Node, parse
from tests.tracekit import make_trace

H200 = ROOT / "tests/data/h200/transformer/baseline-torch-r1/rank0/pt.trace.json.gz"
BAD = "k</script><img src=x onerror=alert(1)>&\"'"


@pytest.fixture(scope="module")
def h200(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A transformer layer on an H200 under torch.profiler."""
    out = tmp_path_factory.mktemp("trace") / "t"
    normalize([H200], out)
    return out


def page(trace: Trace, name: str = "t") -> Node:
    return parse(report_html(name, [content_of(trace, name=name)], made_by="a test"))


def numbers(document: Node, name: str) -> list[list[str]]:
    """Exact values (or texts) of a table's rows."""
    (found,) = document.every("table", data_table=name)
    (body,) = found.every("tbody")
    return [
        [cell.attributes.get("data-v", cell.text) for cell in row.every("td")] for row in body.every("tr")
    ]


def test_every_number_of_the_tables_is_the_summarys(h200: Path) -> None:
    with Trace(h200) as trace:
        summary = summarize(trace)
        document = page(trace)
    kernels = [[row[3], row[4], row[5], row[7], row[8]] for row in numbers(document, "kernels")]
    assert kernels == [
        [str(value) for value in (row.calls, row.share, row.total_ns, row.p50_ns, row.p99_ns)]
        for row in summary.kernels
    ]
    steps = [row[:4] for row in numbers(document, "steps")]
    assert steps == [[str(v) for v in (s.step, s.dur_ns, s.kernels, s.kernel_ns)] for s in summary.steps]
    ops = {row[0]: row[2:7] for row in numbers(document, "ops")}
    for op in summary.ops:
        values = (op.calls, op.self_cpu_ns, op.cpu_ns, op.self_device_ns, op.device_ns)
        assert ops[op.name] == [str(value) for value in values]
    tiles = {
        dd.attributes["data-number"]: dd.attributes["data-v"] for dd in document.every("dd", class_="big")
    }
    assert tiles["devices.utilization"] == str(summary.devices[0].utilization)
    assert tiles["devices.busy_ns"] == str(summary.devices[0].busy_ns)
    assert re.search(r"any kernel running; of [\d.]+ ms, first to last step", document.text)


def test_nothing_is_asked_of_the_network(h200: Path) -> None:
    with Trace(h200) as trace:
        text = report_html("t", [content_of(trace, name="t")], made_by="a test")
    document = parse(text)
    for tag, attribute in (("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src")):
        for node in document.every(tag):
            assert node.attributes.get(attribute, "data:,") == "data:,"
    outside = [style for style in document.every("style") if "url(" in style.text or "@import" in style.text]
    assert not outside
    (policy,) = document.every("meta", http_equiv="Content-Security-Policy")
    assert policy.attributes["content"].startswith("default-src 'none';")
    assert len(text.encode()) < 2_000_000


def test_ids_are_unique_and_links_lead_somewhere(h200: Path) -> None:
    with Trace(h200) as trace:
        two = [content_of(trace, name="a"), content_of(trace, name="b")]
    document = parse(report_html("two", two, made_by="a test"))
    every = [node.attributes["id"] for tag in ("div", "section", "script", "button")
             for node in document.every(tag) if "id" in node.attributes]  # fmt: skip
    assert len(every) == len(set(every))
    targets = [node.attributes["href"] for node in document.every("a")]
    targets += ["#" + node.attributes["aria-controls"] for node in document.every("button", role="tab")]
    assert {target.removeprefix("#") for target in targets} <= set(every)
    assert len(document.every("div", role="tabpanel")) == 2


def test_hostile_kernel_names_stay_text(tmp_path: Path) -> None:
    rows = [
        ("step", "profrun.step#1", 0, 1000, "main"),
        ("api", BAD, 10, 5, "main", {"parent": 0, "depth": 1}),
        ("kernel", BAD, 100, 300, "stream 7", {"launch": 1, "kernels.grid_x": 4}),
        ("op", BAD, 20, 5, "main", {"parent": 0, "depth": 1}),
    ]
    with make_trace(tmp_path / "t", rows) as trace:
        document = page(trace, BAD)
    assert document.every("img") == []
    assert {name.attributes["title"] for name in document.every("span", class_="name")} >= {BAD}
    (title,) = document.every("title")
    assert title.text == BAD


def test_doubtful_numbers_are_marked_and_wrong_ones_withheld(tmp_path: Path) -> None:
    rows = [
        ("step", "profrun.step#1", 0, 1000, "main"),
        ("api", "cudaLaunchKernel", 10, 5, "main", {"parent": 0, "depth": 1}),
        ("kernel", "k", 100, 300, "stream 7", {"launch": 1}),
    ]
    with make_trace(tmp_path / "wrong", rows) as trace:  # no grid: no SM efficiency
        document = page(trace)
    tiles = {dd.attributes["data-number"]: dd.text for dd in document.every("dd", class_="big")}
    assert tiles["devices.est_sm_efficiency"] == "withheld"
    assert tiles["devices.utilization"] != "withheld"
    titles = [heading.text for heading in document.every("h3")]
    assert titles[0] == "Can these numbers be trusted?"
    with make_trace(tmp_path / "replayed", rows, meta={"replayed": True}) as trace:
        document = page(trace)
    tiles = {dd.attributes["data-number"]: dd.text for dd in document.every("dd", class_="big")}
    assert tiles["devices.utilization"] == "withheld"
    assert "16.7" not in document.text


def test_cut_tables_say_how_much_is_shown() -> None:
    columns = [Column("n", lambda row: row, "count"), Column("t", lambda row: row * 1000.0, "ns")]
    (found,) = parse(table("x", columns, list(range(1, 31)), caption="rows", limit=10)).every("table")
    assert found.every("caption")[0].text == "rows, 10 shown of 30"
    assert len(found.every("tbody")[0].every("tr")) == 10
    assert [button.text for button in found.every("button")] == ["n", "t us"]  # one unit a column
    assert found.every("tbody")[0].every("td")[1].text == "1.000"


def test_the_timeline_keeps_gpu_work_first_and_counts_the_rest(tmp_path: Path) -> None:
    rows: list[tuple[object, ...]] = [("step", "profrun.step#1", 0, 10_000, "main")]
    rows += [("op", f"op{n}", 10 + 20 * n, n + 1, "main", {"parent": 0, "depth": 1}) for n in range(40)]
    rows += [("kernel", "k", 5000, 10, "stream 7", {"launch": 1})]
    rows += [("python", "f.py(1): f", 0, 10_000, "main")]
    with make_trace(tmp_path / "t", rows) as trace:
        found = timeline_of(trace, most=12)
        everything = timeline_of(trace)
    assert found is not None
    assert everything is not None
    kept = [found.names[one[4]] for one in found.slices]
    assert kept[0] == "profrun.step#1"
    assert kept[-1] == "k"
    assert set(kept[1:-1]) == {f"op{n}" for n in range(30, 40)}  # the longest
    assert (found.total, found.python, len(everything.slices)) == (43, 1, 42)
    assert found.slices[-1][:4] == (1, 0, 5000, 10)
    assert everything.slices[-1][6] == everything.slices.index(
        next(one for one in everything.slices if everything.names[one[4]] == "op0")
    )


def test_slices_that_overlap_on_a_stream_get_rows_of_their_own(tmp_path: Path) -> None:
    rows = [
        ("kernel", "a", 0, 100, "stream 7"),
        ("kernel", "b", 50, 100, "stream 7"),
        ("kernel", "c", 100, 10, "stream 7"),
    ]
    with make_trace(tmp_path / "t", rows) as trace:
        found = timeline_of(trace)
    assert found is not None
    assert [one[1] for one in found.slices] == [0, 1, 0]
    assert found.tracks == [("GPU 0 stream 7", 2)]


def test_an_empty_trace_has_a_report(tmp_path: Path) -> None:
    with make_trace(tmp_path / "t", []) as trace:
        document = page(trace)
    assert "Not in this recording: GPUs, Steps, Timeline, Kernels" in document.text
