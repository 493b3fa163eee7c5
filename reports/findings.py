"""Findings of the diagnosis as HTML."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from profrun.contract.units import bytes_text, percent_text, time_text
from profrun.reports.html import Html, el

if TYPE_CHECKING:
    from profrun.analysis.rules.diagnose import RuleFinding


def findings_html(findings: Sequence[RuleFinding]) -> Html:
    """Each finding: what, what it means, what to do, and the evidence; the grave ones open."""
    if not findings:
        return el("p", "No rule's threshold is exceeded.")
    return el("div", (_finding(finding) for finding in findings), class_="findings")


def _finding(finding: RuleFinding) -> Html:
    quality = None
    if finding.quality:
        quality = el("p", "Rests on doubtful numbers: ", ", ".join(finding.quality), class_="doubtful-line")
    evidence = evidence_lines(finding.evidence)
    return el(
        "details",
        el("summary", el("b", finding.severity, class_=f"chip {finding.severity}"), " ",
           el("strong", finding.title), ": ", finding.what),
        quality,
        el("p", finding.why),
        el("p", el("b", "Advice: "), finding.fix),
        el("dl", ((el("dt", name), el("dd", text)) for name, text in evidence), class_="evidence"),
        el("p", f"Rule {finding.code}; it fires: {finding.threshold}", class_="note"),
        open=finding.severity == "critical",
        class_="finding",
    )  # fmt: skip


def evidence_lines(evidence: Mapping[str, Any], *, most: int = 5) -> list[tuple[str, str]]:
    """(name, value with its unit) of each number; lists are cut and say so. What ``*_of`` says stands behind
    the number it belongs to."""
    found = []
    for name, value in evidence.items():
        if name.endswith("_of") or value is None or value in ([], {}):
            continue
        of = evidence.get(f"{name}_of") or evidence.get(f"{name.removesuffix('_share')}_of")
        text = evidence_text(name, value, most)
        if of and not isinstance(of, list):
            known = evidence.get(str(of))
            text += f" of {evidence_text(str(of), known, most) if isinstance(known, int | float) else of}"
        found.append((_title(name), text))
    return found


def _title(name: str) -> str:
    for unit in ("_ns", "_bytes", "gb_s"):
        name = name.removesuffix(unit).replace(f"{unit}_per_", "_per_")
    return name.replace("_", " ").strip() or "rate"


def evidence_text(name: str, value: Any, most: int = 5) -> str:
    """One piece of evidence; the unit is in its name."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        more = f" and {len(value) - most} more" if len(value) > most else ""
        return ", ".join(str(item) for item in value[:most]) + more
    if isinstance(value, dict):
        return ", ".join(f"{key} {json.dumps(item)}" for key, item in value.items())
    if isinstance(value, (int, float)):
        if name.endswith("_ns") or "_ns_" in name:
            return time_text(value)
        if "bytes" in name:
            return bytes_text(value)
        if "share" in name or name in ("utilization", "occupancy"):
            return percent_text(value)
        if name.endswith("gb_s"):
            return f"{value:.4g} GB/s"
        return f"{value:.4g}" if isinstance(value, float) else str(value)
    return str(value)
