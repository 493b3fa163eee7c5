"""The diagnosis as text: a line for each finding with what could be gained, then each with its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from profrun.contract.units import count_text, percent_text, time_text
from profrun.reports.evidence import evidence_lines
from profrun.reports.terminal_layout import PLAIN, Part, Prose, Style, Table, lay_out

if TYPE_CHECKING:
    from profrun.analysis.rules.finding import RuleFinding

ROWS = 5
"""Rows of a finding that are shown."""
STEP = {
    "unprofiled": "a step takes {} without a profiler, as other trials of this run tell; gains are of that",
    "profiled": "a step takes {} in this recording, the profiler's cost included; gains are of that",
    "recording": "no steps are recorded; gains are of the whole recording, {}, set-up included",
}
"""Which time gains are a part of, by the basis of the findings."""


def diagnose_text(findings: Sequence[RuleFinding], style: Style = PLAIN) -> str:
    """The findings of the diagnosis: an overview, then each with its meaning, advice and evidence.

    Args:
        findings: as ``diagnose`` gives them: each is followed by those that it explains.
        style: how text is laid out.
    """
    if not findings:
        return lay_out(["nothing found: no rule's threshold is exceeded"], style)
    parts: list[Part] = [*_overview(findings)]
    for finding in findings:
        if not _is_line(finding):
            parts += ["", *_finding(finding, findings)]
    return lay_out(parts, style)


def _overview(findings: Sequence[RuleFinding]) -> list[Part]:
    """What gains are a part of, and a line for each finding."""
    known = next((one for one in findings if one.basis is not None), None)
    head: list[Part] = []
    if known is not None and known.basis is not None:
        head.append(Prose(STEP[known.basis].format(time_text(known.step_ns))))
    depth = _depths(findings)
    rows = [
        (
            one.severity,
            time_text(one.gain_ns),
            percent_text(one.gain_share),
            "  " * depth[one.code] + one.title,
        )
        for one in findings
    ]
    return [*head, Table(("", "at most", "share", "finding"), rows, right=(1, 2), indent="")]


def _depths(findings: Sequence[RuleFinding]) -> dict[str, int]:
    """How many findings each one is below, by code."""
    above = {one.code: one.explained_by for one in findings}
    found = {}
    for code in above:
        depth, at = 0, above[code]
        while at is not None and depth < len(above):
            depth, at = depth + 1, above.get(at)
        found[code] = depth
    return found


def _is_line(finding: RuleFinding) -> bool:
    """Is it told in one line of the finding that explains it?"""
    return finding.explained_by is not None and finding.severity == "info"


def _finding(finding: RuleFinding, every: Sequence[RuleFinding]) -> list[Part]:
    quality = f" (doubtful: {', '.join(finding.quality)})" if finding.quality else ""
    shown = {key: value for key, value in finding.evidence.items() if key != "names" or not finding.rows}
    told = "; ".join(f"{name} {text}" for name, text in evidence_lines(shown, most=3))
    because = f" Explained by {finding.explained_by}: {finding.because}." if finding.explained_by else ""
    parts: list[Part] = [Prose(f"{finding.title}: {finding.what}{quality}", finding.severity)]
    if finding.gain is not None:
        parts.append(Prose(f"{finding.gain.text}. {finding.bound}", "gain", "  "))
    parts += [f"  {finding.why}{because}", Prose(finding.fix, "advice", "  ")]
    if told:
        parts.append(Prose(told, "evidence", "  "))
    parts += _rows(finding)
    below = [one for one in every if _is_line(one) and one.explained_by == finding.code]
    for one in below:
        parts.append(Prose(f"{one.title}: {one.what} ({one.because})", "explains", "  "))
        parts += [
            Prose(f"{two.title}: {two.what} ({two.because})", "explains", "    ")
            for two in every
            if _is_line(two) and two.explained_by == one.code
        ]
    return parts


def _rows(finding: RuleFinding) -> list[Part]:
    """The things that a finding is about, as a table."""
    if not finding.rows:
        return []
    shown = [
        (row.name, count_text(row.calls), time_text(row.total_ns), row.detail) for row in finding.rows[:ROWS]
    ]
    more = len(finding.rows) - ROWS
    table = Table(("what", "calls", "time", ""), shown, right=(1, 2), indent="    ")
    return [table, *([f"    ... and {more} more (--json shows all)"] if more > 0 else [])]
