"""The section on the findings of the diagnosis as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from profrun.reports.evidence import evidence_lines
from profrun.reports.html import Html, el

if TYPE_CHECKING:
    from profrun.analysis.rules.diagnose import RuleFinding


def findings_html(findings: Sequence[RuleFinding]) -> Html:
    """Each finding with its meaning, advice and evidence, folded; critical ones are open."""
    if not findings:
        return el("p", "No rule's threshold is exceeded.")
    return el("div", (_finding(finding) for finding in findings), class_="findings")


def _finding(finding: RuleFinding) -> Html:
    chip = el("b", finding.severity, class_=f"chip {finding.severity}")
    quality = None
    if finding.quality:
        quality = el("p", "Rests on doubtful numbers: ", ", ".join(finding.quality), class_="doubtful-line")
    evidence = ((el("dt", name), el("dd", text)) for name, text in evidence_lines(finding.evidence))
    return el(
        "details",
        el("summary", chip, " ", el("strong", finding.title), ": ", finding.what),
        quality,
        el("p", finding.why),
        el("p", el("b", "Advice: "), finding.fix),
        el("dl", evidence, class_="evidence"),
        el("p", f"Rule {finding.code}; it fires: {finding.threshold}", class_="note"),
        open=finding.severity == "critical",
        class_="finding",
    )
