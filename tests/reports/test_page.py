"""The whole report: nothing is asked of the network, links lead somewhere, names stay text."""

from __future__ import annotations

from pathlib import Path

from profrun.reports.page import report_html
from profrun.runner.report import trace_content
from profrun.traces.trace import Trace
from tests.reports.documents import page, parse
from tests.tracekit import make_trace

BAD = "k</script><img src=x onerror=alert(1)>&\"'"


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
    nodes = [node for tag in ("div", "section", "script", "a", "details") for node in document.every(tag)]
    every = [node.attributes["id"] for node in nodes if "id" in node.attributes]
    assert len(every) == len(set(every))
    targets = [node.attributes["href"] for node in document.every("a")]
    targets += ["#" + node.attributes["aria-controls"] for node in document.every("a", role="tab")]
    elsewhere = {target for target in targets if "-slice-" in target}  # the timeline's script follows these
    assert elsewhere
    assert {target.removeprefix("#") for target in set(targets) - elsewhere} <= set(every)
    assert len(document.every("div", role="tabpanel")) == 3  # two traces, and both step on step


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
