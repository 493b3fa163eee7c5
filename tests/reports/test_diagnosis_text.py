"""The diagnosis in the terminal, word by word at 80 columns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profrun.analysis.rules.catalogue import all_rules
from profrun.analysis.rules.diagnose import diagnose
from profrun.analysis.rules.finding import RuleFinding
from profrun.collectors.normalize import normalize
from profrun.reports.diagnosis_text import diagnose_text, explain_text, slices_sql
from profrun.reports.terminal_layout import Style
from profrun.traces.trace import Trace
from tests.analysis.kit import memory_trace
from tests.conftest import ROOT
from tests.reports.findings import FINDINGS, FINE, HOST, IDLE, LOADER

H200 = ROOT / "tests/data/h200/transformer/baseline-torch-r1/rank0/pt.trace.json.gz"


def test_the_diagnosis_word_by_word() -> None:
    text = diagnose_text(FINDINGS, Style(80)) + "\n\n" + verbose(FINDINGS, 80)
    assert text + "\n" == (Path(__file__).parent / "diagnose-80.txt").read_text()


def verbose(findings: list[RuleFinding], width: int) -> str:
    return diagnose_text(findings, Style(width), verbose=True, trace="last/1")


def test_each_finding_has_one_line_with_its_gain_and_what_to_change() -> None:
    lines = diagnose_text(FINDINGS, Style(120)).splitlines()
    table = [line.split() for line in lines[2 : 2 + len(FINDINGS)]]
    assert [next(word for word in row if not word.isdigit()) for row in table] == [
        one.severity for one in FINDINGS
    ]
    assert [" ".join(row) for row in table[:1]] == [
        "1 critical 35.72 ms 91.9 % Steps wait for data more workers"
    ]
    assert "    The host cannot keep the GPU busy" in lines[3]  # below the finding that explains it
    assert lines[3].split()[0] == "warning", "only findings of their own are counted"


def test_what_to_change_has_a_line_of_its_own_below_the_title_where_it_does_not_fit() -> None:
    lines = diagnose_text(FINDINGS, Style(60)).splitlines()
    at = next(place for place, line in enumerate(lines) if "Steps wait for data" in line)
    assert lines[at + 1] == "    -> more workers"


def test_one_finding_by_its_rule_and_what_a_rule_looks_for_when_it_found_nothing() -> None:
    rules = {rule.id: rule for rule in all_rules()}
    found = explain_text(rules[LOADER.code], FINDINGS, Style(200), trace="last/1")
    assert LOADER.what in found
    assert HOST.what not in found.replace("explains", "")
    missing = explain_text(rules["fp32-gemm"], FINDINGS)
    assert missing.endswith("not found in this trace")
    assert rules["fp32-gemm"].threshold in missing


def test_the_printed_query_shows_the_slices_of_the_evidence() -> None:
    rows = [("kernel", f"k{number}", 10 * number, 5, "stream 7") for number in range(10)]
    assert "select * from slices where slice in (7, 9)" in verbose(FINDINGS, 200)
    answer = memory_trace(rows).sql(slices_sql([7, 9]))
    assert sorted(row["name"] for row in answer.dicts()) == ["k7", "k9"]


def test_what_a_cause_explains_is_one_line_of_it() -> None:
    text = verbose(FINDINGS, 200)
    assert "  explains: The GPU is idle most of the time: the GPU works 0.4 % of the step (91.7 %" in text
    assert "info: The GPU is idle" not in text
    alone = replace(IDLE, explained_by=None, because="")
    assert "info: The GPU is idle most of the time" in verbose([alone], 200)


@pytest.mark.parametrize(
    ("basis", "said"),
    [
        ("unprofiled", "a step takes 38.86 ms without a profiler"),
        ("profiled", "a step takes 38.86 ms in this recording, the profiler's cost included"),
        ("recording", "no steps are recorded; gains are of the whole recording, 38.86 ms"),
    ],
)
def test_the_first_line_says_what_gains_are_of(basis: str, said: str) -> None:
    assert diagnose_text([replace(LOADER, basis=basis)], Style(200)).startswith(said)  # type: ignore[arg-type]
    assert "gains are of" not in diagnose_text([FINE], Style(200))


def test_more_rows_than_are_shown_are_counted() -> None:
    assert "... and 2 more (--json shows all)" in verbose([HOST], 200)


def test_nothing_found() -> None:
    assert diagnose_text([]) == "nothing found: no rule's threshold is exceeded"


@pytest.mark.parametrize("width", [80, 100, 132])
def test_real_recordings_keep_to_the_width(tmp_path: Path, width: int) -> None:
    normalize([H200], tmp_path / "t")
    with Trace(tmp_path / "t") as trace:
        findings = diagnose(trace)
    assert max(map(len, diagnose_text(findings, Style(width)).splitlines())) <= width
    assert max(map(len, verbose(findings, width).splitlines())) <= width


def test_prose_stays_on_one_line_where_asked_and_colour_is_off_by_default() -> None:
    text = diagnose_text(FINDINGS, Style(80, wrap=False), verbose=True)
    assert "\x1b" not in text
    for finding in FINDINGS:
        assert any(finding.what in line for line in text.splitlines())
    assert "\x1b[" in diagnose_text(FINDINGS, Style(80, colour=True))
