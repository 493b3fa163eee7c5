"""A comparison and its gate as Markdown and as JUnit XML."""

from __future__ import annotations

from xml.etree import ElementTree

from profrun.analysis.compare import compare
from profrun.analysis.compare.gate import gate, parse_rule
from profrun.analysis.compare.model import Comparison
from profrun.analysis.compare.point_pairs import PointPair, PointPairs, Recorder
from profrun.reports.compare_files import junit, markdown
from profrun.reports.compare_text import gate_text
from tests.analysis.compare.conftest import Recorded
from tests.analysis.compare.trials import changed_comparison


def pairs(comparison: Comparison) -> PointPairs:
    """A comparison of sides of one point each."""
    return PointPairs((PointPair(("v", "v"), Recorder("torch"), comparison),))


def test_markdown_adds_up(recorded: Recorded) -> None:
    found = compare([recorded("h200/torch/mlp")], [recorded("h200/torch/mlp_compile")])
    result = gate(found, [parse_rule("slower > 3%")])
    text = markdown(pairs(found), result, top=2)
    assert text.startswith("### profrun compare: inconclusive\n")
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert "| `slower > 3%` | inconclusive |" in lines[-1]
    table = lines[:-3]
    assert table[-3].startswith("| 2 more |")
    assert table[-1] == "| **total** | | | | +5.876 us | |"
    widths = {line.count("|") - line.count("\\|") for line in table}
    assert widths == {7}


def test_junit_can_be_parsed() -> None:
    found = changed_comparison(ratio=1.1, ci95=(1.05, 1.15))
    result = gate(found, [parse_rule(text) for text in ("slower > 3%", "memory peak > 5%", "slower > 50%")])
    suite = ElementTree.fromstring(junit(pairs(found), result).split("\n", 1)[1])
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    assert [[child.tag for child in case] for case in suite.findall("testcase")] == [
        ["failure"],
        ["error"],
        [],
    ]
    assert gate_text(result).splitlines()[0].startswith("failed: slower > 3%: step time: 10.0 % slower [")
