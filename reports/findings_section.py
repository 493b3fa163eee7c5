"""The section on the findings of the diagnosis as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from profrun.reports.evidence import evidence_lines
from profrun.reports.html import Html, el

if TYPE_CHECKING:
    from profrun.analysis.rules.diagnose import Finding


def findings_html(findings: Sequence[Finding]) -> Html:
    """Each finding with its meaning, advice and evidence, folded; critical ones are open."""
    if not findings:
        return el("p", "No rule's threshold is exceeded.")
    return el("div", (_finding(finding) for finding in findings), class_="findings")


def _finding(finding: Finding) -> Html:
    chip = el("b", finding.severity, class_=f"chip {finding.severity}")
    doubts = None
    if finding.doubts:
        doubts = el("p", "Rests on doubtful numbers: ", ", ".join(finding.doubts), class_="doubtful-line")
    evidence = ((el("dt", name), el("dd", text)) for name, text in evidence_lines(finding.evidence))
    return el(
        "details",
        el("summary", chip, " ", el("strong", finding.title), ": ", finding.message),
        doubts,
        el("p", finding.meaning),
        el("p", el("b", "Advice: "), finding.advice),
        el("dl", evidence, class_="evidence"),
        el("p", f"Rule {finding.rule}; it fires: {finding.threshold}", class_="note"),
        open=finding.severity == "critical",
        class_="finding",
    )
