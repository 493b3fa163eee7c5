"""The diagnosis as text: for each finding a line with its gain and what to change; the rest on demand."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from profrun.analysis.rules.finding import numbered
from profrun.contract.denominator import NO_STEPS
from profrun.contract.units import count_text, percent_text, time_text
from profrun.reports.evidence import evidence_lines
from profrun.reports.terminal_layout import PLAIN, Laid, Part, Prose, Style, Table, lay_out
from profrun.reports.tones import toned

if TYPE_CHECKING:
    from profrun.analysis.rules.finding import RuleFinding
    from profrun.analysis.rules.rule import Rule
    from profrun.analysis.rules.step_cost import Basis
    from profrun.contract.denominator import Denominator

ROWS = 5
"""Rows of a finding that are shown."""
MORE = "-v: reasons, advice and evidence of all; --explain 1: those of number 1"


def diagnose_text(
    findings: Sequence[RuleFinding], style: Style = PLAIN, *, verbose: bool = False, trace: str = "TRACE"
) -> str:
    """The findings of the diagnosis, each in one line; with ``verbose`` each with its reasons as well.

    Args:
        findings: as ``diagnose`` gives them: each is followed by those that it explains.
        style: how text is laid out.
        verbose: with meaning, advice, evidence and threshold of each.
        trace: the trace as the user called it, for the commands that show the slices.
    """
    if not findings:
        return lay_out(["nothing found: no rule's threshold is exceeded"], style)
    parts: list[Part] = [*_overview(findings, style)]
    if not verbose:
        return lay_out([*parts, "", MORE], style)
    for finding in findings:
        if not _is_line(finding):
            parts += ["", *_finding(finding, findings, style, trace)]
    return lay_out(parts, style)


def explain_text(
    rule: Rule, findings: Sequence[RuleFinding], style: Style = PLAIN, *, trace: str = "TRACE"
) -> str:
    """What one rule looks for, and what it found.

    Args:
        rule: the rule.
        findings: all findings of the trace, as ``diagnose`` gives them.
        style, trace: as for ``diagnose_text``.
    """
    mine = next((one for one in findings if one.code == rule.id), None)
    parts: list[Part] = [Prose(rule.title, rule.id)]
    if mine is None:
        parts += [
            f"  {rule.meaning}",
            Prose(rule.advice, "advice", "  "),
            Prose(rule.threshold, "fires when", "  "),
            "",
            "not found in this trace",
        ]
    else:
        parts += ["", *_finding(mine, findings, style, trace)]
    return lay_out(parts, style)


def _overview(findings: Sequence[RuleFinding], style: Style) -> list[Part]:
    """What gains are a part of, and a line for each finding; two where one does not fit."""
    known = next((one for one in findings if one.basis is not None), None)
    head: list[Part] = []
    if known is not None and known.basis is not None:
        head.append(Prose(_gains_of(known.denominator, known.basis, time_text(known.step_ns))))
    depth, rows, extents = _depths(findings), [], []
    for rank, one in numbered(findings):
        number = "" if rank is None else str(rank)
        gain = time_text(one.gain_ns) if one.gain_ns is not None else ""
        share = percent_text(one.gain_share) if one.gain_ns is not None else ""
        rows.append(
            (number, toned(one.severity), gain, share, "  " * depth[one.code] + one.title, one.remedy)
        )
        extents.append(one.extent)
    header = ("", "", "at most", "share", "finding", "what to change")
    full = [
        (*row[:4], f"{row[4]}: {extent}" if extent else row[4], row[5])
        for row, extent in zip(rows, extents, strict=True)
    ]
    whole = Table(header, full, right=(0, 2, 3), indent="")
    wide = max(map(len, whole.lines(PLAIN)))
    if style.width is None or wide <= style.width:
        return [*head, whole]
    short = Table(header[:-1], [row[:-1] for row in rows], right=(0, 2, 3), indent="")
    narrow = short.lines(style)
    lines: list[Part] = [Laid(narrow[0])]
    for line, row, extent in zip(narrow[1:], rows, extents, strict=True):
        lines.append(Laid(line))
        told = " ".join(part for part in (extent, f"-> {row[5]}" if row[5] else "") if part)
        if told:
            lines.append(Prose(f"{' ' * (4 + len(row[4]) - len(row[4].lstrip()))}{told}"))
    return [*head, *lines]


def _gains_of(of: Denominator, basis: Basis, time: str) -> str:
    """Which time gains are a part of."""
    if basis == "recording":
        return f"no steps are recorded; gains are of the whole recording, {time}, set-up included"
    why = f"; {NO_STEPS}, set-up included" if of.of == "run" else ""
    if basis == "profiled":
        return (
            f"{of.one} takes {time} in this recording, the profiler's cost included; gains are of that{why}"
        )
    per = "per step, of that" if of.several else "of that"
    return f"{of.one} takes {time} without a profiler; gains are {per}{why}"


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


def _finding(finding: RuleFinding, every: Sequence[RuleFinding], style: Style, trace: str) -> list[Part]:
    quality = f" (doubtful: {', '.join(finding.quality)})" if finding.quality else ""
    left_out = {"slices", *(("names",) if finding.rows else ())}
    shown = {key: value for key, value in finding.evidence.items() if key not in left_out}
    told = "; ".join(f"{name} {text}" for name, text in evidence_lines(shown, most=3))
    because = f" Explained by {finding.explained_by}: {finding.because}." if finding.explained_by else ""
    parts: list[Part] = [Prose(f"{finding.title}: {finding.what}{quality}", finding.severity)]
    if finding.gain is not None:
        parts.append(Prose(f"{finding.gain.text}. {finding.bound}", "gain", "  "))
    parts += [
        f"  {finding.why}{because}",
        Prose(finding.fix, "advice", "  "),
        Prose(finding.threshold, "fires when", "  "),
    ]
    if told:
        parts.append(Prose(told, "evidence", "  "))
    parts += _slices(finding, style, trace)
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


def _slices(finding: RuleFinding, style: Style, trace: str) -> list[Part]:
    """The command that shows the slices of the evidence; on two lines of the shell where it is long."""
    slices = finding.evidence.get("slices")
    if not slices:
        return []
    start = f"profrun query {shlex.quote(trace)}"
    sql = f'"{slices_sql(slices)}"'
    if style.width is None or len(start) + len(sql) + 13 <= style.width:
        return [Prose(f"{start} {sql}", "slices", "  ", whole=True)]
    return [Prose(f"{start} \\", "slices", "  ", whole=True), Prose(f"    {sql}", whole=True)]


def slices_sql(slices: Sequence[int]) -> str:
    """SQL that shows these slices."""
    return f"select * from slices where slice in ({', '.join(map(str, slices))})"


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
