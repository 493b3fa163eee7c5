"""The findings in the HTML report."""

from __future__ import annotations

from profrun.reports.findings_section import findings_html
from tests.reports.findings import FINDINGS, FINE, LOADER


def test_a_finding_that_another_explains_is_inside_of_it() -> None:
    text = str(findings_html(FINDINGS, "t0"))
    assert text.count("<details") == len(FINDINGS)
    outer = text.index("Steps wait for data")
    inner = text.index("The host cannot keep the GPU busy")
    assert outer < text.index("It explains:") < inner
    assert "</details>" not in text[outer:inner]
    assert "Why it is here: </b>91.7 % of the time in which the GPU waits for the host" in text


def test_the_gain_its_bound_and_the_rows() -> None:
    text = str(findings_html(FINDINGS, "t0"))
    assert "at most 35.72 ms of 38.86 ms per step. The time of the fetches." in text
    assert "<td>aten::op6</td><td>6</td><td>6 us</td><td>waited for</td>" in text


def test_a_finding_without_a_gain_has_no_line_of_it() -> None:
    assert "Gain" not in str(findings_html([FINE], "t0"))
    assert "Gain" in str(findings_html([LOADER], "t0"))
    assert "No rule" in str(findings_html([], "t0"))
