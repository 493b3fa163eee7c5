"""The diagnosis in the terminal, word by word at 80 columns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profrun.analysis.rules.diagnose import diagnose
from profrun.collectors.normalize import normalize
from profrun.reports.diagnosis_text import diagnose_text
from profrun.reports.terminal_layout import Style
from profrun.traces.trace import Trace
from tests.conftest import ROOT
from tests.reports.findings import FINDINGS, FINE, HOST, IDLE, LOADER

H200 = ROOT / "tests/data/h200/transformer/baseline-torch-r1/rank0/pt.trace.json.gz"


def test_the_diagnosis_word_by_word() -> None:
    text = diagnose_text(FINDINGS, Style(80))
    assert text + "\n" == (Path(__file__).parent / "diagnose-80.txt").read_text()


def test_each_finding_has_a_line_with_its_gain_before_the_details() -> None:
    lines = diagnose_text(FINDINGS, Style(100)).splitlines()
    table = [line.split() for line in lines[2 : 2 + len(FINDINGS)]]
    assert [row[0] for row in table] == [one.severity for one in FINDINGS]
    assert [row[1:3] for row in table[:3]] == [["35.72", "ms"], ["3.22", "ms"], ["38.7", "ms"]]
    assert lines[3].endswith("    The host cannot keep the GPU busy")  # below the finding that explains it


def test_what_a_cause_explains_is_one_line_of_it() -> None:
    text = diagnose_text(FINDINGS, Style(200))
    assert "  explains: The GPU is idle most of the time: the GPU works 0.4 % of the step (91.7 %" in text
    assert "info: The GPU is idle" not in text
    alone = replace(IDLE, explained_by=None, because="")
    assert "info: The GPU is idle most of the time" in diagnose_text([alone], Style(200))


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
    assert "... and 2 more (--json shows all)" in diagnose_text([HOST], Style(200))


def test_nothing_found() -> None:
    assert diagnose_text([]) == "nothing found: no rule's threshold is exceeded"


@pytest.mark.parametrize("width", [80, 100, 132])
def test_real_recordings_keep_to_the_width(tmp_path: Path, width: int) -> None:
    normalize([H200], tmp_path / "t")
    with Trace(tmp_path / "t") as trace:
        text = diagnose_text(diagnose(trace), Style(width))
    assert max(map(len, text.splitlines())) <= width


def test_prose_stays_on_one_line_where_asked_and_colour_is_off_by_default() -> None:
    text = diagnose_text(FINDINGS, Style(80, wrap=False))
    assert "\x1b" not in text
    for finding in FINDINGS:
        assert any(finding.what in line for line in text.splitlines())
    assert "\x1b[" in diagnose_text(FINDINGS, Style(80, colour=True))
