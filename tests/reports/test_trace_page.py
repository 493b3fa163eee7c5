"""The HTML report of a trace: its numbers are the summary's, doubts come first, cuts are said."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from profrun.analysis.trace.summary import summarize
from profrun.collectors.normalize import normalize
from profrun.reports.page import report_html
from profrun.runner.report import trace_content
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
    return parse(report_html(name, [trace_content(trace, name=name)], made_by="a test"))


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
        text = report_html("t", [trace_content(trace, name="t")], made_by="a test")
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
        two = [trace_content(trace, name="a"), trace_content(trace, name="b")]
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


def test_an_empty_trace_has_a_report(tmp_path: Path) -> None:
    with make_trace(tmp_path / "t", []) as trace:
        document = page(trace)
    assert "Not in this recording: GPUs, Steps, Timeline, Kernels" in document.text
