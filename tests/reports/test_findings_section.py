"""The findings in the HTML report."""

from __future__ import annotations

from dataclasses import replace

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
    assert '<td>aten::op6</td><td class="n">6</td><td class="n">6.000</td><td>waited for</td>' in text
    assert '<th class="n">time us</th>' in text


def test_a_finding_without_a_gain_has_no_line_of_it() -> None:
    assert "Gain" not in str(findings_html([FINE], "t0"))
    assert "Gain" in str(findings_html([LOADER], "t0"))
    assert "No rule" in str(findings_html([], "t0"))


def test_the_gain_stands_in_the_title_and_slices_and_lines_of_code_are_shown() -> None:
    seen = replace(
        LOADER, evidence={**LOADER.evidence, "slices": [7, 9], "python_lines": ["train.py(3): fit"]}
    )
    text = str(findings_html([seen], "t0"))
    assert "(at most 35.72 ms = 92 %)" in text
    assert 'href="#t0-slice-7"' in text
    assert 'href="#t0-slice-9"' in text
    assert '<code class="codeline">train.py(3): fit</code>' in text
    assert f'id="t0-finding-{LOADER.code}"' in text
    tiny = replace(LOADER, gain_share=0.0002)
    assert "(at most 35.72 ms)" in str(findings_html([tiny], "t0"))
